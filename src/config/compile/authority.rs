//! `client_ca` and `upstreams.tls.ca`: checks whether the authorities are valid now.

use std::ops::Range;

use super::CompileContext;
use crate::clock::Rfc3339;
use crate::config::LintCode;
use crate::tls::ValidityPeriod;

/// Warns of certificates that are not valid now, once per file. TLS does not check the dates of a
/// trusted authority (RFC 5280, section 6.1), but an expired one was probably forgotten in the
/// file.
pub fn warn_of_lifetimes(pem: &[u8], span: &Range<usize>, cx: &mut CompileContext<'_>) {
    let now = cx.now;
    let all: Vec<_> = ValidityPeriod::all_in(pem).collect();
    let which = match all.len() {
        1 => "this certificate",
        _ => "a certificate in this file",
    };
    let (message, help) = if let Some(old) = all.iter().find(|one| now > one.until) {
        let until = Rfc3339(old.until);
        let message = format!("{which} has expired: it was valid until {until}");
        (message, "replace it with a valid certificate")
    } else if let Some(new) = all.iter().find(|one| now < one.from) {
        let from = Rfc3339(new.from);
        let message = format!("{which} is not valid yet: it is valid from {from}");
        (message, "check the clock of this machine")
    } else {
        return;
    };
    cx.diagnostics
        .warning(LintCode::CertificateExpiry, span.clone(), message)
        .help(help);
}
