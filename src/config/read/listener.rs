//! Reads `[[listeners]]`.

use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::{Certificate, Listener, Protocol, Tls, TlsVersion};
use crate::config::scalar::{choice, path, socket};
use crate::config::section::Section;

const PROTOCOLS: &[(&str, Protocol)] = &[("h2", Protocol::H2), ("http/1.1", Protocol::Http11)];
const VERSIONS: &[(&str, TlsVersion)] = &[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)];

/// All listeners; a gateway without one is of no use.
pub(super) fn listeners(root: &mut Section<'_, '_>) -> Vec<Listener> {
    let before = root.out.count();
    let listeners = root.tables("listeners", listener);
    if listeners.is_empty() && root.out.count() == before {
        nothing_listens(root);
    }
    listeners.into_iter().flatten().collect()
}

fn nothing_listens(root: &mut Section<'_, '_>) {
    let span = root.key_span("listeners").unwrap_or(root.span());
    root.out
        .error(span, "there is no listener")
        .help("add `[[listeners]]` with `address = \"0.0.0.0:8443\"`");
}

fn listener(s: &mut Section<'_, '_>) -> Option<Listener> {
    s.later(&["proxy_protocol"]);
    let span = s.span();
    let address = s.required("address", socket, "\"0.0.0.0:8443\"");
    let protocols = protocols(s);
    let tls = s.table("tls", tls);
    address.map(|address| Listener {
        span,
        address,
        protocols,
        tls,
    })
}

fn protocols(s: &mut Section<'_, '_>) -> Vec<Spanned<Protocol>> {
    let span = s.span();
    let before = s.out.count();
    let Some(protocols) = s.array("protocols", choice(PROTOCOLS, &[])) else {
        let defaults = defaults::PROTOCOLS.into_iter();
        return defaults.map(|p| Spanned::new(p, span.clone())).collect();
    };
    if protocols.is_empty() && s.out.count() == before {
        let span = s.key_span("protocols").unwrap_or(span);
        s.out
            .error(span, "a listener needs a protocol")
            .help("for example `protocols = [\"h2\", \"http/1.1\"]`");
    }
    each_once(s, protocols)
}

fn each_once(s: &mut Section<'_, '_>, protocols: Vec<Spanned<Protocol>>) -> Vec<Spanned<Protocol>> {
    let mut seen: Vec<Spanned<Protocol>> = Vec::new();
    for protocol in protocols {
        match seen.iter().find(|p| p.value == protocol.value) {
            None => seen.push(protocol),
            Some(first) => {
                s.out
                    .error(protocol.span, "a protocol is listed twice")
                    .related(first.span.clone(), "here already");
            }
        }
    }
    seen
}

fn tls(s: &mut Section<'_, '_>) -> Tls {
    s.later(&["client_ca", "client_auth"]);
    Tls {
        span: s.span(),
        certificates: s
            .tables("certificates", certificate)
            .into_iter()
            .flatten()
            .collect(),
        min_version: s.or("min_version", choice(VERSIONS, &[]), defaults::MIN_VERSION),
    }
}

fn certificate(s: &mut Section<'_, '_>) -> Option<Certificate> {
    let cert = s.required("cert", path, "\"site.pem\"");
    let key = s.required("key", path, "\"site.key\"");
    Some(Certificate {
        cert: cert?,
        key: key?,
    })
}
