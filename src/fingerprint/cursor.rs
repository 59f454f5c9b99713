//! A reader over bytes that hands out the parts of TLS structures (RFC 8446, section 3). A read
//! past the end is `None`; nothing is indexed.

/// The bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

// === impl Cursor ===

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let (&bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(bytes))
    }

    pub(super) fn u24(&mut self) -> Option<usize> {
        let (&[a, b, c], rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }

    /// A vector with a length of one byte.
    pub(super) fn vec8(&mut self) -> Option<&'a [u8]> {
        let count = self.u8()?;
        self.take(count.into())
    }

    /// A vector with a length of two bytes.
    pub(super) fn vec16(&mut self) -> Option<&'a [u8]> {
        let count = self.u16()?;
        self.take(count.into())
    }
}
