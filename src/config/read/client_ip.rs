//! Reads `[client_ip]` and `[geo]`.

use http::HeaderName;
use ipnet::IpNet;

use crate::config::defaults;
use crate::config::file::{ClientIp, Geo, Override};
use crate::config::scalar::{
    continent, country, header_name, host_bits, integer, network, parse_network, path,
};
use crate::config::section::{Raw, Section};
use crate::config::{Spanned, Text, schema};

pub(super) fn client_ip(s: &mut Section<'_, '_>) -> ClientIp {
    let trusted = s.array_or("trusted_proxies", network(), []);
    nobody_is_believed(s, &trusted);
    ClientIp {
        trusted_proxies: trusted.into_iter().map(|net| whole(s, net)).collect(),
        header: s.or(
            "header",
            header_name(),
            HeaderName::from_static(defaults::CLIENT_IP_HEADER),
        ),
        ipv4_prefix: s.or("ipv4_prefix", integer(0..=32), defaults::IPV4_PREFIX),
        ipv6_prefix: s.or("ipv6_prefix", integer(0..=128), defaults::IPV6_PREFIX),
    }
}

/// Who writes the header but trusts nobody has forgotten something; who writes that too has not.
fn nobody_is_believed(s: &mut Section<'_, '_>, trusted: &[Spanned<IpNet>]) {
    let header = s.key_span("header");
    if let (Some(span), true, false) = (header, trusted.is_empty(), s.has("trusted_proxies")) {
        s.out
            .warning(span, "nobody is believed: this header is never read")
            .help("name the proxies that set it: `trusted_proxies = [\"10.0.0.0/8\"]`");
    }
}

/// The network that is meant. One that is written as one of its hosts is pointed at.
fn whole(s: &mut Section<'_, '_>, written: Spanned<IpNet>) -> Spanned<IpNet> {
    if let Some(wrong) = host_bits(written.value) {
        let warning = s.out.warning(written.span.clone(), wrong.message);
        warning.help.extend(wrong.help);
    }
    written.map(|net| net.trunc())
}

pub(super) fn geo(s: &mut Section<'_, '_>) -> Geo {
    Geo {
        asn_database: s.optional("asn_database", path()),
        country_database: s.optional("country_database", path()),
        overrides: s.table("overrides", overrides).unwrap_or_default(),
    }
}

fn overrides(s: &mut Section<'_, '_>) -> Vec<Override> {
    let mut list: Vec<Override> = Vec::new();
    for (key, raw) in s.entries(schema::NETWORK) {
        let Some(new) = one_override(s, &key, raw) else {
            continue;
        };
        let same = |old: &&Override| old.network.value == new.network.value;
        if let Some(old) = list.iter().find(same) {
            s.out
                .error(key.span, format!("{} is given twice", new.network.value))
                .related(old.network.span.clone(), "here already");
            continue;
        }
        list.push(new);
    }
    list
}

fn one_override(s: &mut Section<'_, '_>, key: &Text, raw: &Raw<'_>) -> Option<Override> {
    let network = parse_network(&key.value).map_err(|wrong| s.wrong(key.span.clone(), wrong));
    let (asn, country, continent) = s.entry_table(raw, place)?;
    Some(Override {
        network: whole(s, Spanned::new(network.ok()?, key.span.clone())),
        asn,
        country,
        continent,
    })
}

type Place = (Option<Spanned<u32>>, Option<Text>, Option<Text>);

fn place(s: &mut Section<'_, '_>) -> Place {
    let asn = s.optional("asn", integer(0..=u32::MAX));
    let country = s.optional("country", country());
    let continent = s.optional("continent", continent());
    let example = "{ asn = 64500, country = \"ZZ\" }";
    s.at_least_one("an override", &["asn", "country", "continent"], example);
    (asn, country, continent)
}
