//! The context in which compiled expressions run: the facts of one request, the item of a list, and a
//! memo of the strings that the request's rules have read, because most rules read a few common fields.

use std::array;
use std::borrow::Cow;
use std::cell::Cell;

use super::super::{FieldFacts, FieldId};

/// The number of strings in a memo; a power of two.
const SLOTS: usize = 8;

/// A memo of fields and their strings. A slot collision only costs another read of the field.
pub struct FieldMemo<'a>([Cell<(FieldId, &'a [u8])>; SLOTS]);

/// A field and its slot.
#[derive(Clone, Copy)]
pub(super) struct MemoSlot {
    field: FieldId,
    slot: u8,
}

/// The input of a compiled closure.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    pub(super) facts: &'a dyn FieldFacts,
    memo: Option<&'a FieldMemo<'a>>,
    pub(super) item: &'a [u8],
    /// The results of the tests that `any` or `all` evaluates once, one bit each.
    pub(super) kept: u64,
}

// === impl EvalContext ===

impl<'a> EvalContext<'a> {
    /// A context of the facts, without an item.
    #[inline]
    pub fn of(facts: &'a dyn FieldFacts) -> EvalContext<'a> {
        EvalContext {
            facts,
            memo: None,
            item: &[],
            kept: 0,
        }
    }

    /// A context for many tests, which store in `memo` what they read.
    #[inline]
    pub fn remembering(facts: &'a dyn FieldFacts, memo: &'a FieldMemo<'a>) -> EvalContext<'a> {
        EvalContext {
            memo: Some(memo),
            ..EvalContext::of(facts)
        }
    }

    /// The facts.
    #[inline]
    pub fn facts(&self) -> &'a dyn FieldFacts {
        self.facts
    }

    /// A field's string, from the memo if there is one. `None` if it is missing.
    pub fn text(&self, field: FieldId) -> Option<Cow<'a, [u8]>> {
        let Some(memo) = self.memo else {
            return self.facts.bytes(field);
        };
        let spot = MemoSlot::of(field);
        match memo.get(spot) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.read(spot, memo),
        }
    }

    /// Runs `test` on a field's string; `false` if it is missing.
    #[inline(always)]
    pub(super) fn on_field(&self, spot: MemoSlot, test: impl Fn(&[u8]) -> bool) -> bool {
        let Some(memo) = self.memo else {
            return (self.facts.bytes(spot.field())).is_some_and(|text| test(&text));
        };
        match memo.get(spot) {
            Some(text) => test(text),
            None => self.read(spot, memo).is_some_and(|text| test(&text)),
        }
    }

    /// Reads a field's string and stores it in the memo.
    #[inline(never)]
    fn read(&self, spot: MemoSlot, memo: &FieldMemo<'a>) -> Option<Cow<'a, [u8]>> {
        let text = self.facts.bytes(spot.field())?;
        if let Cow::Borrowed(text) = &text {
            memo.keep(spot, text);
        }
        Some(text)
    }

    /// A context of these facts with `item`.
    #[inline]
    pub(super) fn at<'i>(&self, item: &'i [u8]) -> EvalContext<'i>
    where
        'a: 'i,
    {
        EvalContext {
            facts: self.facts,
            memo: None,
            item,
            kept: self.kept,
        }
    }
}

// === impl MemoSlot ===

impl MemoSlot {
    /// The slot of a field. The most common fields, the first ones and those of the client, have
    /// distinct slots.
    pub(super) fn of(field: FieldId) -> MemoSlot {
        let FieldId(number) = field;
        MemoSlot {
            field,
            slot: (number ^ number >> 4) as u8 % SLOTS as u8,
        }
    }

    #[inline]
    pub(super) fn field(self) -> FieldId {
        self.field
    }
}

// === impl FieldMemo ===

impl<'a> FieldMemo<'a> {
    /// The stored string of the field. `None` if there is none.
    #[inline(always)]
    pub(super) fn get(&self, spot: MemoSlot) -> Option<&'a [u8]> {
        let (kept, text) = self.0.get(usize::from(spot.slot) % SLOTS)?.get();
        (kept == spot.field).then_some(text)
    }

    /// Stores the string of the field.
    #[inline]
    pub(super) fn keep(&self, spot: MemoSlot, text: &'a [u8]) {
        if let Some(slot) = self.0.get(usize::from(spot.slot) % SLOTS) {
            slot.set((spot.field, text));
        }
    }
}

impl Default for FieldMemo<'_> {
    #[inline]
    fn default() -> Self {
        FieldMemo(array::from_fn(|_| Cell::new((FieldId(u16::MAX), &[][..]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memoized_string_stays_until_another_uses_its_slot() {
        let memo = FieldMemo::default();
        let [path, other, third] = [4, 5, 12].map(|field| MemoSlot::of(FieldId(field)));
        assert_eq!(memo.get(path), None);
        memo.keep(path, b"path");
        memo.keep(other, b"other");
        assert_eq!(memo.get(path), Some(&b"path"[..]));
        memo.keep(third, b"same slot");
        assert_eq!(memo.get(path), None);
        assert_eq!(memo.get(third), Some(&b"same slot"[..]));
    }
}
