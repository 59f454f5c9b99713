//! `listeners.tls.certificates`: reads certificates and matches them with their private keys.

use std::path::PathBuf;

use super::CompileContext;
use crate::clock::{Rfc3339, Timestamp};
use crate::config::file;
use crate::config::{LintCode, Spanned};
use crate::tls::{Certificate, CertificateChain, PrivateKey, TlsConfigError};

/// Days before expiry at which to warn. certbot renews at 30 days, so it has failed for two weeks by then.
const FEW_DAYS: u64 = 14;
const DAY: u64 = 86_400;

/// A PEM file that the configuration names, and its content.
struct Pem<'a> {
    written: &'a Spanned<PathBuf>,
    text: Vec<u8>,
}

/// Reads a certificate. `None` after an error. Checks both files, even if one of them has errors.
pub(in crate::config::compile) fn certificate(
    written: &file::CertificateSettings,
    cx: &mut CompileContext<'_>,
) -> Option<Certificate> {
    let cert = Pem::read(written.cert.as_ref(), cx);
    let key = Pem::read(written.key.as_ref(), cx);
    if let (Some(cert), Some(key)) = (&cert, &key)
        && are_swapped(cert, key)
    {
        swapped(cert, key, cx);
        return None;
    }
    let chain = cert
        .as_ref()
        .and_then(|pem| pem.parse(CertificateChain::from_pem, cx));
    let secret = key
        .as_ref()
        .and_then(|pem| pem.parse(PrivateKey::from_pem, cx));
    let (cert, key) = (cert?, key?);
    let made = Certificate::of(chain?, secret?).map_err(|error| {
        let at = if error.is_key() { &key } else { &cert };
        at.report(&error, cx);
    });
    let made = made.ok()?;
    warn_of_lifetime(&made, &cert, cx);
    Some(made)
}

fn are_swapped(cert: &Pem<'_>, key: &Pem<'_>) -> bool {
    CertificateChain::from_pem(&cert.text).is_err()
        && PrivateKey::from_pem(&cert.text).is_ok()
        && CertificateChain::from_pem(&key.text).is_ok()
}

fn swapped(cert: &Pem<'_>, key: &Pem<'_>, cx: &mut CompileContext<'_>) {
    let (first, second) = (cert.written.value.display(), key.written.value.display());
    cx.diagnostics
        .error(
            cert.written.span.clone(),
            "the certificate and the private key are swapped",
        )
        .related(key.written.span.clone(), "this is the certificate")
        .help(format!("write `cert = \"{second}\", key = \"{first}\"`"));
}

/// Warns of the lifetime. It is not an error, because a new certificate may be about to be installed.
fn warn_of_lifetime(certificate: &Certificate, cert: &Pem<'_>, cx: &mut CompileContext<'_>) {
    let Some(lifetime) = certificate.lifetime() else {
        return;
    };
    let (now, until, from) = (cx.now, Rfc3339(lifetime.until), Rfc3339(lifetime.from));
    let (message, help) = if now > lifetime.until {
        let message = format!("this certificate has expired: it was valid until {until}");
        (message, "renew it: clients reject it")
    } else if let Some(days) = days_left(now, lifetime.until) {
        let days = counted(days);
        let message = format!("this certificate expires in {days}: it is valid until {until}");
        (message, "renew it, then reload the gateway (SIGHUP)")
    } else if now < lifetime.from {
        let message = format!("this certificate is not valid yet: it is valid from {from}");
        let help = "clients reject it until then; check the clock of this machine";
        (message, help)
    } else {
        return;
    };
    cx.diagnostics
        .warning(
            LintCode::CertificateExpiry,
            cert.written.span.clone(),
            message,
        )
        .help(help);
}

/// Returns the whole days until expiry. `None` from `FEW_DAYS` on.
fn days_left(now: Timestamp, until: Timestamp) -> Option<u64> {
    let days = until.since(now).as_secs() / DAY;
    (days < FEW_DAYS).then_some(days)
}

fn counted(days: u64) -> String {
    match days {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

// === impl Pem ===

impl<'a> Pem<'a> {
    /// Reads the file. Reports a file that is missing or unreadable and returns `None`.
    fn read(written: Option<&'a Spanned<PathBuf>>, cx: &mut CompileContext<'_>) -> Option<Self> {
        let written = written?;
        let text = cx.read(&written.value, &written.span)?;
        Some(Self { written, text })
    }

    fn parse<T>(
        &self,
        parse: impl FnOnce(&[u8]) -> Result<T, TlsConfigError>,
        cx: &mut CompileContext<'_>,
    ) -> Option<T> {
        let parsed = parse(&self.text);
        parsed.map_err(|error| self.report(&error, cx)).ok()
    }

    fn report(&self, error: &TlsConfigError, cx: &mut CompileContext<'_>) {
        let message = format!("cannot use `{}`: {error}", self.written.value.display());
        cx.diagnostics.error(self.written.span.clone(), message);
    }
}
