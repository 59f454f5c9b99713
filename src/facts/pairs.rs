//! Names and values in a request's text: split when they are asked for, kept if that is often.
//! What a name or a value means is not known here.

use std::cell::{Cell, OnceCell};

use memchr::memchr;

/// So many single values are looked for in the text itself. Most requests are asked for no more,
/// and take no memory for the rest.
const LOOKS: u8 = 8;

/// All pairs of a request, once they are worth their memory.
#[derive(Debug)]
pub(super) struct Pairs<T> {
    all: OnceCell<Vec<T>>,
    looks: Cell<u8>,
}

/// The parts of `text`, of which there is at least one.
pub(super) fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr(separator, text) else {
            return rest.take();
        };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

// === impl Pairs ===

impl<T> Pairs<T> {
    /// All of them.
    pub(super) fn all(&self, parse: impl FnOnce() -> Vec<T>) -> &[T] {
        self.all.get_or_init(parse)
    }

    /// All of them for one look, if that is cheaper than to look for one in the text.
    pub(super) fn for_look(&self, parse: impl FnOnce() -> Vec<T>) -> Option<&[T]> {
        let looks = self.looks.get();
        if looks < LOOKS {
            self.looks.set(looks + 1);
            return self.all.get().map(Vec::as_slice);
        }
        Some(self.all(parse))
    }
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self {
            all: OnceCell::new(),
            looks: Cell::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_splits_as_the_standard_library_does(text in "[ab;]{0,12}") {
            let expected: Vec<_> = text.as_bytes().split(|byte| *byte == b';').collect();
            prop_assert_eq!(split(text.as_bytes(), b';').collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn all_are_kept_once_that_is_worth_it() {
        let pairs = Pairs::default();
        assert!((0..LOOKS).all(|_| pairs.for_look(|| vec![1]).is_none()));
        assert_eq!(pairs.for_look(|| vec![1]), Some(&[1][..]));
        assert_eq!(pairs.for_look(|| vec![2]), Some(&[1][..]));
        let pairs = Pairs::default();
        pairs.all(|| vec![1]);
        assert_eq!(pairs.for_look(|| vec![2]), Some(&[1][..]));
    }
}
