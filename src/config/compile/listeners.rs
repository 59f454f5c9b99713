//! `[[listeners]]`: the protocols and certificates of each listener.

mod certificate;

pub(super) use certificate::certificate as read_certificate;

use std::ops::Range;
use std::path::Path;

use super::{CompileContext, authority};
use crate::config::file;
use crate::config::{Diagnostic, LintCode};
use crate::snapshot::ListenerSettings;
use crate::tls::{
    AlpnProtocol, Certificate, ClientAuth, TerminatorSettings, TlsConfigError, TlsTerminator,
};

/// The names and addresses of the development certificate.
const DEVELOPMENT: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Compiles the listeners. Reports and omits those with an error.
pub fn listeners(
    written: &[file::ListenerSection],
    cx: &mut CompileContext<'_>,
) -> Vec<ListenerSettings> {
    let compiled = written.iter().filter_map(|one| listener(one, cx));
    compiled.collect()
}

fn listener(
    written: &file::ListenerSection,
    cx: &mut CompileContext<'_>,
) -> Option<ListenerSettings> {
    let speaks = |protocol| written.protocols.iter().any(|p| p.value == protocol);
    let tls = match &written.tls {
        Some(tls) => Some(terminator(written, tls, cx)?),
        None => None,
    };
    Some(ListenerSettings {
        name: written.name.as_ref().map(|name| name.value.as_str().into()),
        address: written.address.value,
        h2: speaks(AlpnProtocol::H2),
        h1: speaks(AlpnProtocol::Http1),
        proxy_protocol: written.proxy_protocol.value,
        tls,
    })
}

fn terminator(
    listener: &file::ListenerSection,
    written: &file::TlsSettings,
    cx: &mut CompileContext<'_>,
) -> Option<TlsTerminator> {
    // Evaluate each part separately, so that every error is reported.
    let certificates = certificates(written, cx);
    let clients = clients(written, cx);
    let (certificates, clients) = (certificates?, clients?);
    let settings = TerminatorSettings {
        listener: listener.address.value.to_string().into(),
        certificates,
        min_version: written.min_version.value,
        protocols: listener.protocols.iter().map(|one| one.value).collect(),
        clients,
    };
    TlsTerminator::new(settings)
        .map_err(|error| {
            cx.diagnostics
                .error(written.span.clone(), error.to_string());
        })
        .ok()
}

/// `None` after an error. `Some(None)` if the listener requests no client certificate.
fn clients(written: &file::TlsSettings, cx: &mut CompileContext<'_>) -> Option<Option<ClientAuth>> {
    let Some(path) = &written.client_ca.value else {
        return Some(None);
    };
    let span = &written.client_ca.span;
    let authorities = cx.read(path, span)?;
    authority::warn_of_lifetimes(&authorities, span, cx);
    let auth = ClientAuth::from_pem(&authorities, written.client_auth.value);
    let auth = auth
        .map_err(|error| {
            unusable(path, span, &error, cx);
        })
        .ok();
    let Some(path) = &written.client_crl.value else {
        return auth.map(Some);
    };
    let span = &written.client_crl.span;
    let lists = cx.read(path, span)?;
    auth?
        .with_revocations(&lists, cx.now)
        .map(Some)
        .map_err(|error| {
            let help = match error {
                TlsConfigError::ExpiredRevocationList(_) => "get the current list from the CA",
                _ => "`client_crl` is a PEM file with revocation lists (`X509 CRL`)",
            };
            unusable(path, span, &error, cx).help(help);
        })
        .ok()
}

fn unusable<'d>(
    path: &Path,
    span: &Range<usize>,
    error: &TlsConfigError,
    cx: &'d mut CompileContext<'_>,
) -> &'d mut Diagnostic {
    let message = format!("cannot use `{}`: {error}", path.display());
    cx.diagnostics.error(span.clone(), message)
}

fn certificates(
    written: &file::TlsSettings,
    cx: &mut CompileContext<'_>,
) -> Option<Vec<Certificate>> {
    if written.certificates.is_empty() {
        return Some(vec![development(written, cx)?]);
    }
    let read = written.certificates.iter();
    let read: Vec<_> = read.map(|one| certificate::certificate(one, cx)).collect();
    read.into_iter().collect()
}

fn development(written: &file::TlsSettings, cx: &mut CompileContext<'_>) -> Option<Certificate> {
    if !cx.diagnostics.may_lack(&written.span) {
        let message = "no certificates: the listener uses a self-signed development certificate";
        cx.diagnostics.warning(
            LintCode::DevelopmentCertificate,
            written.span.clone(),
            message,
        );
    }
    if cx.development.is_none() {
        match Certificate::self_signed(&DEVELOPMENT) {
            Ok(certificate) => cx.development = Some(certificate),
            Err(error) => {
                let span = written.span.clone();
                cx.diagnostics.error(span, error.to_string());
            }
        }
    }
    cx.development.clone()
}
