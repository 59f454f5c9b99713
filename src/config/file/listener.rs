//! `[[listeners]]`.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use super::{UNKNOWN, optional_name};
use crate::config::scalar::{boolean, choice, path, path_or_none, socket};
use crate::config::section::SectionReader;
use crate::config::{Spanned, Text};
use crate::tls::{AlpnProtocol, MinVersion};

/// One of `[[listeners]]`.
#[derive(Clone, Debug)]
pub struct ListenerSection {
    /// The header of the section.
    pub span: Range<usize>,
    /// The name in routes, logs and metrics. `None` for the address.
    pub name: Option<Text>,
    /// The address to listen on; `[::]` covers both families.
    pub address: Spanned<SocketAddr>,
    /// The accepted protocols, in ALPN order, without duplicates. Default h2, then HTTP/1.1.
    pub protocols: Vec<Spanned<AlpnProtocol>>,
    /// Whether connections start with a PROXY header, from trusted proxies only. Default false.
    pub proxy_protocol: Spanned<bool>,
    /// Whether requests are redirected to the first TLS listener. Default false.
    pub redirect_to_https: Spanned<bool>,
    /// The TLS settings. `None` for plain HTTP.
    pub tls: Option<TlsSettings>,
}

/// `[listeners.tls]`.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// Certificates; the first one is the default. Empty for a self-signed development certificate.
    pub certificates: Vec<CertificateSettings>,
    /// The minimum TLS version. Default 1.2.
    pub min_version: Spanned<MinVersion>,
    /// A PEM file of authorities for client certificates. `None` requests no client certificate.
    pub client_ca: Spanned<Option<PathBuf>>,
    /// Whether a client without a certificate is refused. Default true.
    pub client_auth: Spanned<bool>,
    /// A PEM file with the revocation lists of client certificates. `None`, the default: revocation is not checked.
    pub client_crl: Spanned<Option<PathBuf>>,
}

/// The PEM files of a certificate and its key. A missing one was reported by the reader.
#[derive(Clone, Debug)]
pub struct CertificateSettings {
    /// The certificate chain.
    pub cert: Option<Spanned<PathBuf>>,
    /// The private key.
    pub key: Option<Spanned<PathBuf>>,
}

const PROTOCOLS: &[(&str, AlpnProtocol)] =
    &[("h2", AlpnProtocol::H2), ("http/1.1", AlpnProtocol::Http1)];
const CLIENTS: &[(&str, bool)] = &[("required", true), ("optional", false)];
const VERSIONS: &[(&str, MinVersion)] = &[("1.2", MinVersion::Tls12), ("1.3", MinVersion::Tls13)];

/// Reads all listeners. A file without a listener is refused.
pub(super) fn listeners(root: &mut SectionReader<'_, '_>) -> Vec<ListenerSection> {
    let listeners = root.tables("listeners", listener);
    let message = "no listener is configured";
    let help = "add `[[listeners]]` with `address = \"0.0.0.0:8443\"`";
    if root.lacks("listeners") {
        root.none(&["listeners"], message, help);
    }
    root.not_empty("listeners", message, help);
    listeners
}

fn listener(s: &mut SectionReader<'_, '_>) -> ListenerSection {
    let span = s.span();
    let address = s.required("address", socket(), "\"0.0.0.0:8443\"");
    let listener = ListenerSection {
        name: optional_name(s),
        address: address.unwrap_or(Spanned::new(UNKNOWN, span.clone())),
        span,
        protocols: protocols(s),
        proxy_protocol: s.or("proxy_protocol", boolean(), false),
        redirect_to_https: s.or("redirect_to_https", boolean(), false),
        tls: s.table("tls", tls),
    };
    if let (true, Some(tls)) = (listener.redirect_to_https.value, &listener.tls) {
        let message = "`redirect_to_https` is only for a listener without TLS";
        s.out
            .error(listener.redirect_to_https.span.clone(), message)
            .related(tls.span.clone(), "this listener has TLS")
            .help("remove it, and set it on the plain HTTP listener");
    }
    listener
}

// === impl ListenerSection ===

impl ListenerSection {
    /// The name, or else the address.
    pub fn label(&self) -> String {
        let name = self.name.as_ref().map(|name| name.value.clone());
        name.unwrap_or_else(|| self.address.value.to_string())
    }
}

fn protocols(s: &mut SectionReader<'_, '_>) -> Vec<Spanned<AlpnProtocol>> {
    let words = choice(PROTOCOLS, &[]);
    let protocols = s.array_or("protocols", words, [AlpnProtocol::H2, AlpnProtocol::Http1]);
    let example = "for example `protocols = [\"h2\", \"http/1.1\"]`";
    s.not_empty(
        "protocols",
        "a listener needs at least one protocol",
        example,
    );
    s.each_once("protocols", protocols, "a protocol is listed twice")
}

fn tls(s: &mut SectionReader<'_, '_>) -> TlsSettings {
    let tls = TlsSettings {
        span: s.span(),
        certificates: certificates(s),
        min_version: s.or("min_version", choice(VERSIONS, &[]), MinVersion::Tls12),
        client_ca: s.or("client_ca", path_or_none(), None),
        client_auth: s.or("client_auth", choice(CLIENTS, &[]), true),
        client_crl: s.or("client_crl", path_or_none(), None),
    };
    let crl = tls.client_crl.value.as_ref();
    for (key, is_set) in [("client_auth", true), ("client_crl", crl.is_some())] {
        let span = s.key_span(key).filter(|_| is_set);
        if let (None, Some(span)) = (&tls.client_ca.value, span) {
            s.out
                .lacks(span, format!("`{key}` has no effect without `client_ca`"))
                .help(format!(
                    "add `client_ca = \"clients.pem\"`, or remove `{key}`"
                ));
        }
    }
    tls
}

/// Reads the certificates. If all were refused, keeps an empty one so that no development certificate is used.
fn certificates(s: &mut SectionReader<'_, '_>) -> Vec<CertificateSettings> {
    let mut certificates = s.tables("certificates", certificate);
    if certificates.is_empty() && s.holds("certificates") {
        certificates.push(CertificateSettings {
            cert: None,
            key: None,
        });
    }
    certificates
}

fn certificate(s: &mut SectionReader<'_, '_>) -> CertificateSettings {
    CertificateSettings {
        cert: s.required("cert", path(), "\"site.pem\""),
        key: s.required("key", path(), "\"site.key\""),
    }
}
