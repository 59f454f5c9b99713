//! `upstreams.protocol` and `upstreams.tls`: the protocol to origin servers, and their authentication.

use super::{CompileContext, authority};
use crate::config::LintCode;
use crate::config::file::{self, OriginTls};
use crate::upstream::{
    ServerEndpoint, ServerLocation, TlsError, TrustedRoots, UpstreamProtocol, UpstreamTls, is_name,
};

/// Returns the protocol and TLS settings for an upstream's servers. Reports errors.
pub fn speech(
    written: &file::UpstreamSettings,
    cx: &mut CompileContext<'_>,
) -> (UpstreamProtocol, Option<UpstreamTls>) {
    let protocol = written.protocol.value;
    let tls = written.tls.value.as_ref();
    let secure = tls.and_then(|tls| secure(written, tls, protocol, cx));
    match (protocol, tls) {
        // Without TLS there is no ALPN to negotiate HTTP/2.
        (UpstreamProtocol::Auto, None) => (UpstreamProtocol::Http1, None),
        _ => (protocol, secure),
    }
}

fn secure(
    written: &file::UpstreamSettings,
    tls: &OriginTls,
    protocol: UpstreamProtocol,
    cx: &mut CompileContext<'_>,
) -> Option<UpstreamTls> {
    let roots = match &tls.unverified {
        Some(span) => {
            contradiction(tls, cx);
            let message = "any certificate is accepted: an attacker on the network path can impersonate the origin";
            cx.diagnostics
                .warning(LintCode::UnverifiedOrigin, span.clone(), message)
                .help("remove `verify`, and name the CA of the origin: `ca = \"origin-ca.pem\"`");
            Some(None)
        }
        None => roots(written, tls, cx).map(Some),
    };
    nameless(written, tls, cx);
    // Drop an invalid name after reporting it, so that other errors are still found.
    let name = tls.server_name.as_ref();
    let name = name.filter(|name| match is_name(&name.value) {
        Ok(()) => true,
        Err(error) => {
            report(&error, written, tls, cx);
            false
        }
    });
    let name = name.map(|name| name.value.as_str());
    let made = UpstreamTls::new(roots?, name, protocol);
    made.map_err(|error| report(&error, written, tls, cx)).ok()
}

/// Reports a Unix socket without `server_name`: it has no name that a certificate could match.
fn nameless(written: &file::UpstreamSettings, tls: &OriginTls, cx: &mut CompileContext<'_>) {
    let sockets = written.servers.iter().map(|server| &server.address);
    let mut sockets = sockets.filter(|address| {
        matches!(
            address.value,
            ServerLocation::Endpoint(ServerEndpoint::Unix(_))
        )
    });
    let (None, None, Some(socket)) = (&tls.server_name, &tls.unverified, sockets.next()) else {
        return;
    };
    let message = "a Unix socket has no host name to verify the certificate against";
    cx.diagnostics
        .error(socket.span.clone(), message)
        .help("add the name in the certificate: `tls = { server_name = \"app.example.com\" }`");
}

fn contradiction(tls: &OriginTls, cx: &mut CompileContext<'_>) {
    if let Some(ca) = &tls.ca {
        let message = "`ca` has no effect with `verify = false`";
        let reported = cx.diagnostics.error(ca.span.clone(), message);
        reported.help("remove one of them");
    }
}

fn roots(
    written: &file::UpstreamSettings,
    tls: &OriginTls,
    cx: &mut CompileContext<'_>,
) -> Option<TrustedRoots> {
    let roots = match &tls.ca {
        None => TrustedRoots::of_system(),
        Some(ca) => {
            let pem = cx.read(&ca.value, &ca.span)?;
            authority::warn_of_lifetimes(&pem, &ca.span, cx);
            TrustedRoots::from_pem(&pem)
        }
    };
    roots.map_err(|error| report(&error, written, tls, cx)).ok()
}

fn report(
    error: &TlsError,
    written: &file::UpstreamSettings,
    tls: &OriginTls,
    cx: &mut CompileContext<'_>,
) {
    let (name, ca) = (tls.server_name.as_ref(), tls.ca.as_ref());
    let span = match (error.is_name(), name, ca) {
        (true, Some(name), _) => name.span.clone(),
        (false, _, Some(ca)) => ca.span.clone(),
        _ => written.tls.span.clone(),
    };
    let message = match ca {
        Some(ca) if !error.is_name() => format!("cannot use `{}`: {error}", ca.value.display()),
        None if !error.is_name() => format!("cannot use the system's root certificates: {error}"),
        _ => error.to_string(),
    };
    let reported = cx.diagnostics.error(span, message);
    if ca.is_none() && !error.is_name() {
        reported.help(
            "install the package `ca-certificates`, or name the CA of the origin: `tls = { ca = \"…\" }`",
        );
    }
}
