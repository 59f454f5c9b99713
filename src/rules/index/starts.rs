//! A few strings that a value may be or start with: its first eight bytes, beside those of each.

use super::Marks;
use crate::expr::Hint;

/// With more of them than this, hashes are faster.
const FEW: usize = 16;

/// Strings by how they begin, without case. That two strings may begin alike costs a look at a
/// rule that does not match.
pub(super) struct Starts(Box<[Start]>);

struct Start {
    /// Bits of the bytes that the string has.
    mask: u64,
    /// What they are.
    bytes: u64,
    /// How long the value is, if it is the whole string.
    whole: Option<usize>,
    rule: u16,
}

// === impl Starts ===

impl Starts {
    /// `None`: they are too many.
    pub(super) fn new(hints: &[(&Hint, u16)]) -> Option<Starts> {
        let start = |(hint, rule): &(&Hint, u16)| match hint {
            Hint::Exact(text) => Some(Start::new(text, Some(text.len()), *rule)),
            Hint::Prefix(text) => Some(Start::new(text, None, *rule)),
            _ => None,
        };
        let starts = (hints.len() <= FEW).then(|| hints.iter().filter_map(start));
        Some(Starts(starts?.collect()))
    }

    pub(super) fn ask(&self, value: &[u8], marks: &mut Marks<'_>) {
        let bytes = first(value);
        for start in &self.0 {
            let whole = || start.whole.is_none_or(|length| length == value.len());
            if bytes & start.mask == start.bytes && whole() {
                marks.add(&[start.rule]);
            }
        }
    }
}

// === impl Start ===

impl Start {
    fn new(text: &[u8], whole: Option<usize>, rule: u16) -> Start {
        let absent = 8 - text.len().min(8);
        let mask = u64::MAX.checked_shr(8 * absent as u32).unwrap_or(0);
        Start {
            mask,
            bytes: first(text) & mask,
            whole,
            rule,
        }
    }
}

/// The first eight bytes, where capitals are as small letters; and some other bytes are alike too.
fn first(text: &[u8]) -> u64 {
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let bytes = match text.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => text
            .iter()
            .rev()
            .fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)),
    };
    bytes | SMALL
}
