//! What is never kept of an answer: cookies, places, and anything like a token.

use http::HeaderName;
use http::header;

/// Parts of a name that speak of secrets.
const WORDS: [&str; 16] = [
    "token",
    "session",
    "auth",
    "csrf",
    "xsrf",
    "secret",
    "cookie",
    "credential",
    "passw",
    "jwt",
    "signature",
    "nonce",
    "otp",
    "bearer",
    "saml",
    "apikey",
];
/// The same, where it is a whole word.
const WHOLE_WORDS: [&str; 5] = ["key", "sid", "sess", "sig", "pin"];
/// Names whose long values are public: hashes of what everybody gets.
const PUBLIC: [&str; 14] = [
    "etag",
    "content-security-policy",
    "content-security-policy-report-only",
    "permissions-policy",
    "link",
    "nel",
    "report-to",
    "reporting-endpoints",
    "accept-ch",
    "x-version",
    "x-revision",
    "x-commit",
    "x-build",
    "x-release",
];
/// A run of letters and digits as long as this may be a secret.
const LONG: usize = 20;

/// Whether a field's value is never looked at.
pub(super) fn is_private(name: &HeaderName) -> bool {
    if matches!(
        *name,
        header::SET_COOKIE | header::LOCATION | header::CONTENT_LOCATION | header::REFRESH
    ) {
        return true;
    }
    let text = name.as_str();
    WORDS.iter().any(|word| text.contains(word))
        || text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| WHOLE_WORDS.contains(&part))
}

/// Whether a value may be a token, so that it is neither kept nor repeated.
pub(super) fn is_like_a_token(name: &HeaderName, value: &[u8]) -> bool {
    if is_jwt(value) {
        return true;
    }
    let mut runs = value.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    !PUBLIC.contains(&name.as_str()) && runs.any(is_mixed)
}

/// `eyJ…` is `{"` in base64: the head of a JSON Web Token (RFC 7519).
fn is_jwt(value: &[u8]) -> bool {
    value.windows(3).any(|w| w == b"eyJ") && value.iter().filter(|b| **b == b'.').count() >= 2
}

/// Words are letters, in one case but for a few; a long run of anything else may be a secret.
fn is_mixed(run: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| run.iter().filter(|byte| is(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    run.len() >= LONG && (count(u8::is_ascii_digit) >= 2 || upper.min(lower) >= 4)
}
