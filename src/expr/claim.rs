//! Claims of a JSON web token (RFC 7519). They are read, never verified: anyone can write a token,
//! so a claim names a client only where the origin refuses tokens that are not signed.

use super::base64;
use super::json::{self, Step};

/// A longer token is not read.
const MAX_TOKEN: usize = 8 << 10;

/// The claim at `path` of a signed token (RFC 7515 §3.1), with or without `Bearer ` before it: a
/// string as it is, an integer or a boolean as text.
pub(super) fn claim(token: &[u8], path: &[Step]) -> Option<Vec<u8>> {
    let token = bare(token);
    if token.len() > MAX_TOKEN {
        return None;
    }
    let mut parts = token.split(|byte| *byte == b'.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let claims = base64::decode(claims)?;
    let claim = json::find(&claims, path)?.plain()?;
    Some(claim.into_owned())
}

/// The token without its scheme, whose case does not matter (RFC 9110 §11.1).
fn bare(token: &[u8]) -> &[u8] {
    match token.split_at_checked("bearer ".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest.trim_ascii_start(),
        _ => token,
    }
}
