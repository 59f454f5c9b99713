//! Reads and writes credentials as text: base64url without padding, and hexadecimal digits.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// Decodes base64url into the start of `buffer`. `None` if `text` has a character outside the alphabet, padding or
/// non-zero trailing bits, or does not fit.
pub(super) fn decode<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let length = BASE64_URL_SAFE_NO_PAD.decode_slice(text, buffer).ok()?;
    buffer.get(..length)
}

/// Encodes `bytes` as base64url without padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the byte that two hexadecimal digits stand for.
pub(super) fn hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Splits a big-endian number from the start of `bytes`.
pub(super) fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}
