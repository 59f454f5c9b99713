//! Walks DER just far enough to find an element (X.690). What cannot be read ends the walk; whether
//! a certificate is sound is checked elsewhere.

/// The inside of the first element that has this tag.
pub(super) fn first(der: &[u8], tag: u8) -> Option<&[u8]> {
    elements(der)
        .find(|&(found, _)| found == tag)
        .map(|(_, body)| body)
}

/// Tag and inside of each element; ends at the first that cannot be read.
pub(super) fn elements(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&tag, rest) = der.split_first()?;
        let (length, rest) = length(rest)?;
        let (body, rest) = rest.split_at_checked(length)?;
        der = rest;
        Some((tag, body))
    })
}

/// A definite length in the short or the long form (X.690, section 8.1.3).
fn length(der: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = der.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    let (bytes, rest) = rest.split_at_checked((first & 0x7f).into())?;
    let length = bytes.iter().try_fold(0_usize, |length, &byte| {
        Some(length.checked_mul(256)? + usize::from(byte))
    })?;
    Some((length, rest))
}
