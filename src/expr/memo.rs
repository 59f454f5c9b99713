//! Strings that one request's rules have read: most of them ask for the same few.

use std::array;
use std::cell::Cell;

use super::FieldId;

/// How many strings are kept; a power of two.
const SLOTS: usize = 8;

/// Fields and their strings. One that takes another's slot only costs a second reading of it.
pub struct Memo<'a>([Cell<(FieldId, &'a [u8])>; SLOTS]);

/// A field and its slot.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    field: FieldId,
    slot: u8,
}

// === impl Spot ===

impl Spot {
    /// The fields that rules read most, which are the first and those about the client, have a
    /// slot each.
    pub(super) fn of(field: FieldId) -> Spot {
        let FieldId(number) = field;
        Spot {
            field,
            slot: (number ^ number >> 4) as u8 % SLOTS as u8,
        }
    }

    #[inline]
    pub(super) fn field(self) -> FieldId {
        self.field
    }
}

// === impl Memo ===

impl<'a> Memo<'a> {
    /// What was kept of the field.
    #[inline(always)]
    pub(super) fn get(&self, spot: Spot) -> Option<&'a [u8]> {
        let (kept, text) = self.0.get(usize::from(spot.slot) % SLOTS)?.get();
        (kept == spot.field).then_some(text)
    }

    /// Keeps the string of the field.
    #[inline]
    pub(super) fn keep(&self, spot: Spot, text: &'a [u8]) {
        if let Some(slot) = self.0.get(usize::from(spot.slot) % SLOTS) {
            slot.set((spot.field, text));
        }
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
        let [path, other, third] = [4, 5, 12].map(|field| Spot::of(FieldId(field)));
        assert_eq!(memo.get(path), None);
        memo.keep(path, b"path");
        memo.keep(other, b"other");
        assert_eq!(memo.get(path), Some(&b"path"[..]));
        memo.keep(third, b"same slot");
        assert_eq!(memo.get(path), None);
        assert_eq!(memo.get(third), Some(&b"same slot"[..]));
    }
}
