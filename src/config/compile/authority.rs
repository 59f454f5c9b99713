//! `client_ca` and `upstreams.tls.ca`: whether the authorities in them are valid now.

use std::ops::Range;

use super::CompileContext;
use crate::clock::Rfc3339;
use crate::config::LintCode;
use crate::tls::ValidityPeriod;

/// Warns of certificates that are not valid now, once a file. TLS looks at no dates of an
/// authority that it is told to trust (RFC 5280, section 6.1), but what is in such a file and is
/// over was forgotten there.
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
        (message, "put its successor into the file")
    } else if let Some(new) = all.iter().find(|one| now < one.from) {
        let from = Rfc3339(new.from);
        let message = format!("{which} is not valid yet: it will be from {from}");
        (message, "is this machine's clock right?")
    } else {
        return;
    };
    cx.diagnostics
        .warning(LintCode::CertificateExpiry, span.clone(), message)
        .help(help);
}
