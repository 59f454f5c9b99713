//! `[client_ip]` and `[geo]`: the client's address, its network and its country.

use std::path::PathBuf;

use http::HeaderName;
use ipnet::IpNet;

use crate::config::scalar::{
    continent, country, header_name, integer, network, parse_network, path, warn_of_host_bits,
};
use crate::config::section::{Raw, SectionReader};
use crate::config::{LintCode, Spanned, Text, schema};
use crate::geo::GeoOverride;

/// `[client_ip]`.
#[derive(Clone, Debug)]
pub struct ClientIpSettings {
    /// The trusted proxies. Only their forwarding header is used. Default none.
    pub trusted_proxies: Vec<Spanned<IpNet>>,
    /// The forwarding header. Default `x-forwarded-for`.
    pub header: Spanned<HeaderName>,
    /// Bits of an IPv4 address that make a counter key, 0 to 32. Default 32.
    pub ipv4_prefix: Spanned<u8>,
    /// Bits of an IPv6 address that make a counter key, 0 to 128. Default 64.
    pub ipv6_prefix: Spanned<u8>,
}

/// `[geo]`.
#[derive(Clone, Debug)]
pub struct GeoSettings {
    /// The path of a database of autonomous systems, in either format.
    pub asn_database: Option<Spanned<PathBuf>>,
    /// The path of a database of countries, in either format. It may equal `asn_database`.
    pub country_database: Option<Spanned<PathBuf>>,
    /// Overrides that take precedence over the databases. Each network is unique.
    pub overrides: Vec<(Spanned<IpNet>, GeoOverride)>,
}

pub(super) fn client_ip(s: &mut SectionReader<'_, '_>) -> ClientIpSettings {
    let trusted = s.array_or("trusted_proxies", network(), []);
    report_untrusted_header(s, &trusted);
    ClientIpSettings {
        trusted_proxies: trusted.into_iter().map(|net| whole(s, net)).collect(),
        header: s.or(
            "header",
            header_name(),
            HeaderName::from_static("x-forwarded-for"),
        ),
        ipv4_prefix: s.or("ipv4_prefix", integer(0..=32), 32u8),
        ipv6_prefix: s.or("ipv6_prefix", integer(0..=128), 64u8),
    }
}

/// A `header` without `trusted_proxies` is an oversight. A written, empty `trusted_proxies` is intended.
fn report_untrusted_header(s: &mut SectionReader<'_, '_>, trusted: &[Spanned<IpNet>]) {
    let header = s.key_span("header");
    if let (Some(span), true, false) = (header, trusted.is_empty(), s.has("trusted_proxies")) {
        s.out
            .warning(
                LintCode::NoTrustedProxy,
                span,
                "`header` is never read without `trusted_proxies`",
            )
            .help("list the proxies that set the header: `trusted_proxies = [\"10.0.0.0/8\"]`");
    }
}

/// Clears the host bits of a network and warns if there are any.
fn whole(s: &mut SectionReader<'_, '_>, written: Spanned<IpNet>) -> Spanned<IpNet> {
    warn_of_host_bits(written.value, &written.span, s.out);
    written.map(|net| net.trunc())
}

pub(super) fn geo(s: &mut SectionReader<'_, '_>) -> GeoSettings {
    GeoSettings {
        asn_database: s.optional("asn_database", path()),
        country_database: s.optional("country_database", path()),
        overrides: s.table("overrides", overrides).unwrap_or_default(),
    }
}

fn overrides(s: &mut SectionReader<'_, '_>) -> Vec<(Spanned<IpNet>, GeoOverride)> {
    let mut list: Vec<(Spanned<IpNet>, GeoOverride)> = Vec::new();
    for (key, raw) in s.entries(schema::NETWORK) {
        let Some(new) = one_override(s, &key, raw) else {
            continue;
        };
        let network = &new.0.value;
        if let Some((old, _)) = list.iter().find(|(old, _)| old.value == *network) {
            s.out
                .error(key.span, format!("{network} is defined twice"))
                .related(old.span.clone(), "first defined here");
            continue;
        }
        list.push(new);
    }
    list
}

fn one_override(
    s: &mut SectionReader<'_, '_>,
    key: &Text,
    raw: &Raw<'_>,
) -> Option<(Spanned<IpNet>, GeoOverride)> {
    let network = parse_network(&key.value).map_err(|wrong| s.wrong(key.span.clone(), wrong));
    let location = s.entry_table(raw, location)?;
    let network = Spanned::new(network.ok()?, key.span.clone());
    Some((whole(s, network), location))
}

fn location(s: &mut SectionReader<'_, '_>) -> GeoOverride {
    let location = GeoOverride {
        asn: s.optional("asn", integer(0..=u32::MAX)).map(|s| s.value),
        country: s.optional("country", country()).map(|s| s.value),
        continent: s.optional("continent", continent()).map(|s| s.value),
    };
    let example = "{ asn = 64500, country = \"ZZ\" }";
    s.at_least_one("an override", &["asn", "country", "continent"], example);
    location
}
