//! A list whose places are used again.

use std::rc::Rc;

/// Values, each in a place of its own until it is removed.
#[derive(Debug)]
pub(super) struct Slots<T> {
    entries: Vec<Option<Rc<T>>>,
    free: Vec<usize>,
}

// === impl Slots ===

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Puts `entry` into a free place.
    pub(super) fn insert(&mut self, entry: Rc<T>) -> usize {
        let slot = self.free.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(slot) {
            Some(place) => *place = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        slot
    }

    /// Takes what is in a place.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Rc<T>> {
        let entry = self.entries.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(entry)
    }

    /// What is in its places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.entries.iter().flatten()
    }

    /// How many places are taken.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
