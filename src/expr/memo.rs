//! Strings that one request's rules have read: most of them ask for the same few.

use std::array;
use std::cell::Cell;

use super::FieldId;

/// How many strings are kept; a power of two.
const SLOTS: usize = 8;

/// Fields and their strings. One that takes another's slot only costs a second reading of it.
pub struct Memo<'a>([Cell<(FieldId, &'a [u8])>; SLOTS]);

// === impl Memo ===

impl<'a> Memo<'a> {
    /// What was kept of `field`.
    #[inline(always)]
    pub(super) fn get(&self, field: FieldId) -> Option<&'a [u8]> {
        let (kept, text) = self.slot(field)?.get();
        (kept == field).then_some(text)
    }

    /// Keeps the string of `field`.
    #[inline]
    pub(super) fn keep(&self, field: FieldId, text: &'a [u8]) {
        if let Some(slot) = self.slot(field) {
            slot.set((field, text));
        }
    }

    /// The fields that rules read most, which are the first and those about the client, have one
    /// each.
    #[inline(always)]
    fn slot(&self, FieldId(field): FieldId) -> Option<&Cell<(FieldId, &'a [u8])>> {
        self.0.get(usize::from(field ^ field >> 4) % SLOTS)
    }
}

impl Default for Memo<'_> {
    #[inline]
    fn default() -> Self {
        Memo(array::from_fn(|_| Cell::new((FieldId(u16::MAX), &[][..]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_kept_until_another_takes_its_slot() {
        let memo = Memo::default();
        assert_eq!(memo.get(FieldId(4)), None);
        memo.keep(FieldId(4), b"path");
        memo.keep(FieldId(5), b"other");
        assert_eq!(memo.get(FieldId(4)), Some(&b"path"[..]));
        memo.keep(FieldId(12), b"same slot");
        assert_eq!(memo.get(FieldId(4)), None);
        assert_eq!(memo.get(FieldId(12)), Some(&b"same slot"[..]));
    }
}
