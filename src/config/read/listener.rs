//! Reads `[[listeners]]`.

use super::UNKNOWN;
use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{Certificate, ClientAuth, Listener, Protocol, Tls, TlsVersion};
use crate::config::scalar::{boolean, choice, path, path_or_none, socket};
use crate::config::section::Section;

const PROTOCOLS: &[(&str, Protocol)] = &[("h2", Protocol::H2), ("http/1.1", Protocol::Http11)];
const CLIENTS: &[(&str, ClientAuth)] = &[
    ("required", ClientAuth::Required),
    ("optional", ClientAuth::Optional),
];
const VERSIONS: &[(&str, TlsVersion)] = &[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)];

/// All listeners; a gateway without one is of no use.
pub(super) fn listeners(root: &mut Section<'_, '_>) -> Vec<Listener> {
    let listeners = root.tables("listeners", listener);
    let (absent, empty) = (root.lacks("listeners"), root.is_empty("listeners"));
    if absent || empty {
        nothing_listens(root);
    }
    listeners
}

fn nothing_listens(root: &mut Section<'_, '_>) {
    let span = root.key_span("listeners").unwrap_or(root.span());
    root.out
        .lacks(span, "there is no listener")
        .help("add `[[listeners]]` with `address = \"0.0.0.0:8443\"`");
}

fn listener(s: &mut Section<'_, '_>) -> Listener {
    let span = s.span();
    let address = s.required("address", socket(), "\"0.0.0.0:8443\"");
    let protocols = protocols(s);
    let proxy_protocol = s.or("proxy_protocol", boolean(), defaults::PROXY_PROTOCOL);
    let tls = s.table("tls", tls);
    Listener {
        address: address.unwrap_or(Spanned::new(UNKNOWN, span.clone())),
        span,
        protocols,
        proxy_protocol,
        tls,
    }
}

fn protocols(s: &mut Section<'_, '_>) -> Vec<Spanned<Protocol>> {
    let words = choice(PROTOCOLS, &[]);
    let protocols = s.array_or("protocols", words, defaults::PROTOCOLS);
    if s.is_empty("protocols") {
        let span = s.key_span("protocols").unwrap_or(s.span());
        s.out
            .error(span, "a listener needs a protocol")
            .help("for example `protocols = [\"h2\", \"http/1.1\"]`");
    }
    s.each_once("protocols", protocols, "a protocol is listed twice")
}

fn tls(s: &mut Section<'_, '_>) -> Tls {
    let tls = Tls {
        span: s.span(),
        certificates: certificates(s),
        min_version: s.or("min_version", choice(VERSIONS, &[]), defaults::MIN_VERSION),
        client_ca: s.or("client_ca", path_or_none(), None),
        client_auth: s.or("client_auth", choice(CLIENTS, &[]), defaults::CLIENT_AUTH),
    };
    if let (None, Some(span)) = (&tls.client_ca.value, s.key_span("client_auth")) {
        s.out
            .lacks(
                span,
                "`client_auth` has no meaning for a listener without `client_ca`",
            )
            .help("name the authorities: `client_ca = \"clients.pem\"`");
    }
    tls
}

/// Those that were refused count: who names some wants none for development.
fn certificates(s: &mut Section<'_, '_>) -> Vec<Certificate> {
    let mut certificates = s.tables("certificates", certificate);
    if certificates.is_empty() && s.holds("certificates") {
        certificates.push(Certificate {
            cert: None,
            key: None,
        });
    }
    certificates
}

fn certificate(s: &mut Section<'_, '_>) -> Certificate {
    Certificate {
        cert: s.required("cert", path(), "\"site.pem\""),
        key: s.required("key", path(), "\"site.key\""),
    }
}
