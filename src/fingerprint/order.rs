//! Sixteen-bit numbers in ascending order. The lists of a hello are short, unordered and lie close
//! together; a bit for each number puts them in order in fewer steps than comparing them.

/// How many different blocks of 64 numbers there is room for. The most of any client seen is 12.
const ROOM: usize = 32;

/// Which numbers there are.
pub(super) struct Order {
    /// A bit a block of 64 numbers that has any.
    blocks: [u64; 16],
    /// Where a block's bits are.
    places: [u8; 1024],
    /// A bit a number. The first place belongs to no block.
    bits: [u64; ROOM],
    /// Places in use.
    next: u8,
}

// === impl Order ===

impl Order {
    /// No numbers.
    pub(super) fn new() -> Self {
        Self {
            blocks: [0; 16],
            places: [0; 1024],
            bits: [0; ROOM],
            next: 0,
        }
    }

    /// Puts `number` in; `false`: it is in already, or there is no room.
    #[inline]
    pub(super) fn insert(&mut self, number: u16) -> bool {
        let bit = 1 << (number & 63);
        let place = self.place(number >> 6);
        let Some(bits) = self.bits.get_mut(place) else {
            return false;
        };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// Calls `visit` with each number, in ascending order.
    #[inline]
    pub(super) fn each(&self, mut visit: impl FnMut(u16)) {
        for (above, blocks) in (0u16..).zip(self.blocks) {
            ones(blocks, |block| {
                let block = above << 6 | block;
                let place = self.places.get(usize::from(block)).copied().unwrap_or(0);
                let bits = self.bits.get(usize::from(place)).copied().unwrap_or(0);
                ones(bits, |bit| visit(block << 6 | bit));
            });
        }
    }

    /// Where the bits of `block` are.
    #[inline]
    fn place(&mut self, block: u16) -> usize {
        let Some(place) = self.places.get_mut(usize::from(block)) else {
            return ROOM;
        };
        if *place == 0 {
            self.next += 1;
            *place = self.next;
            if let Some(blocks) = self.blocks.get_mut(usize::from(block >> 6)) {
                *blocks |= 1 << (block & 63);
            }
        }
        usize::from(*place)
    }
}

/// Calls `visit` with the place of each bit that is set, the lowest first.
#[inline]
fn ones(mut bits: u64, mut visit: impl FnMut(u16)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as u16);
        bits &= bits - 1;
    }
}
