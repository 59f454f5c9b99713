//! Base64 (RFC 4648 §4 and §5) to bytes. Reads both alphabets, with or without padding: who hides
//! something in Base64 chooses the form, and all forms mean the same bytes.

/// The bytes that `text` stands for; `None` if it is not Base64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits = unpadded(text)?;
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let sum = group
            .iter()
            .try_fold(0u32, |sum, &byte| Some(sum << 6 | digit(byte)?))?;
        let missing = u32::try_from(4 - group.len()).ok()?;
        let [_, bytes @ ..] = (sum << (6 * missing)).to_be_bytes();
        // Two digits hold one byte, three hold two; one alone holds none.
        let whole = group.len().checked_sub(1).filter(|whole| *whole > 0)?;
        out.extend_from_slice(bytes.get(..whole)?);
    }
    Some(out)
}

/// The digits without `=`, which stands only where it fills the last group.
fn unpadded(text: &[u8]) -> Option<&[u8]> {
    let digits = match text {
        [digits @ .., b'=', b'='] | [digits @ .., b'='] => digits,
        _ => return Some(text),
    };
    text.len().is_multiple_of(4).then_some(digits)
}

fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}
