//! The buffer that keys are written to. It stores as many bytes inline as most requests need.

use std::fmt;
use std::ops::{Deref, Range};

/// The number of bytes stored inline.
const HERE: usize = 128;

/// A byte buffer with inline storage.
#[derive(Clone)]
pub struct KeyBuffer {
    here: [u8; HERE],
    /// The number of bytes.
    length: usize,
    /// All bytes, if they do not fit inline.
    moved: Vec<u8>,
}

// === impl KeyBuffer ===

impl KeyBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds `bytes` at the end.
    #[inline(always)]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.here.get_mut(self.length..end) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.extend_moved(bytes),
        }
    }

    /// The bytes in a range. Empty if the range is out of bounds.
    #[inline(always)]
    pub fn part(&self, range: Range<usize>) -> &[u8] {
        let here = self.here.get(..self.length);
        match here.and_then(|here| here.get(range.clone())) {
            Some(part) => part,
            None => self.part_moved(range),
        }
    }

    /// Adds a byte at the end.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Drops the bytes after the first `length`.
    pub fn truncate(&mut self, length: usize) {
        if self.length <= HERE {
            self.length = self.length.min(length);
            return;
        }
        let kept = std::mem::take(&mut self.moved);
        self.length = 0;
        self.extend_from_slice(kept.get(..length).unwrap_or(&kept));
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    #[cold]
    fn extend_moved(&mut self, bytes: &[u8]) {
        let mut moved = if self.length > HERE {
            std::mem::take(&mut self.moved)
        } else {
            self.to_vec()
        };
        moved.extend_from_slice(bytes);
        self.length = moved.len();
        self.moved = moved;
    }

    /// `moved` is empty while all bytes are inline, so a range that is out of bounds is empty.
    #[cold]
    fn part_moved(&self, range: Range<usize>) -> &[u8] {
        self.moved.get(range).unwrap_or_default()
    }
}

impl Default for KeyBuffer {
    #[inline]
    fn default() -> Self {
        Self {
            here: [0; HERE],
            length: 0,
            moved: Vec::new(),
        }
    }
}

impl Deref for KeyBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.here.get(..self.length).unwrap_or(&self.moved)
    }
}

impl fmt::Debug for KeyBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_buffer_behaves_like_a_vec_at_any_length(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..8),
            length in 0..300usize,
            range in (0..300usize, 0..300usize).prop_map(|(start, end)| start..end),
        ) {
            let (mut written, mut expected) = (KeyBuffer::new(), Vec::new());
            for part in &parts {
                written.extend_from_slice(part);
                written.push(7);
                expected.extend_from_slice(part);
                expected.push(7);
                prop_assert_eq!(&*written, &*expected);
                let range = range.start.min(range.end)..range.end;
                let part = expected.get(range.clone()).unwrap_or_default();
                prop_assert_eq!(written.part(range), part);
            }
            written.truncate(length);
            expected.truncate(length);
            prop_assert_eq!(&*written, &*expected);
            written.push(1);
            expected.push(1);
            prop_assert_eq!(&*written, &*expected);
            written.clear();
            prop_assert!(written.is_empty());
        }
    }
}
