//! A short list. As many items as most requests have are kept in place, so that a decision takes no
//! memory of its own.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list with room for `N` items in place.
#[derive(Clone)]
pub struct Few<T, const N: usize>(Kept<T, N>);

#[derive(Clone)]
enum Kept<T, const N: usize> {
    /// The first so many of them.
    Here([T; N], usize),
    /// They have become more than `N`.
    Moved(Vec<T>),
}

// === impl Few ===

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        match &mut self.0 {
            Kept::Here(items, length) => match items.get_mut(*length) {
                Some(free) => {
                    *free = item;
                    *length += 1;
                }
                None => self.push_more(item),
            },
            Kept::Moved(items) => items.push(item),
        }
    }

    /// Drops the items that are not to be kept.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        let mut keep = keep;
        *self = self.iter().copied().filter(|item| keep(item)).collect();
    }

    #[cold]
    fn push_more(&mut self, item: T) {
        let mut items = Vec::with_capacity(2 * N.max(1));
        items.extend_from_slice(self);
        items.push(item);
        self.0 = Kept::Moved(items);
    }
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self(Kept::Here([T::default(); N], 0))
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Kept::Here(items, length) => items.get(..*length).unwrap_or_default(),
            Kept::Moved(items) => items,
        }
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Kept::Here(items, length) => items.get_mut(..*length).unwrap_or_default(),
            Kept::Moved(items) => items,
        }
    }
}

impl<T: Copy + Default, const N: usize> Extend<T> for Few<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut few = Self::default();
        few.extend(items);
        few
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Few<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Few<T, N> {}

impl<T: PartialEq, const N: usize, const M: usize> PartialEq<[T; M]> for Few<T, N> {
    fn eq(&self, other: &[T; M]) -> bool {
        **self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_however_long() {
        for length in 0..10 {
            let mut few: Few<u16, 3> = (0..length).collect();
            assert_eq!(*few, (0..length).collect::<Vec<_>>());
            few.retain(|item| item % 2 == 0);
            assert_eq!(*few, (0..length).step_by(2).collect::<Vec<_>>());
            few.iter_mut().for_each(|item| *item += 1);
            few.push(7);
            let expected: Vec<_> = (1..=length).step_by(2).chain([7]).collect();
            assert_eq!(*few, expected);
        }
    }

    #[test]
    fn lists_are_equal_by_what_is_in_them() {
        let mut long: Few<u16, 2> = (0..5).collect();
        long.retain(|item| *item < 2);
        assert_eq!(long, [0, 1]);
        let list = |end| -> Few<u16, 2> { (0..end).collect() };
        assert_eq!((long == list(2), long == list(3)), (true, false));
        assert_eq!(format!("{long:?}"), "[0, 1]");
    }
}
