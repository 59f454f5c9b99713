//! SipHash-1-3 with 128 bits over a number and a byte slice. It has no buffer for partial input, unlike a
//! general hasher.

/// The four state words.
#[derive(Clone, Copy)]
pub(super) struct SipState([u64; 4]);

/// The initial words for 128-bit output, before the key is mixed in.
const BEGINNING: [u64; 4] = [
    0x736f_6d65_7073_6575,
    0x646f_7261_6e64_6f6d ^ 0xee,
    0x6c79_6765_6e65_7261,
    0x7465_6462_7974_6573,
];

// === impl SipState ===

impl SipState {
    /// Creates the initial state for this key.
    pub(super) fn keyed([low, high]: [u64; 2]) -> Self {
        let [a, b, c, d] = BEGINNING;
        Self([a ^ low, b ^ high, c ^ low, d ^ high])
    }

    /// Returns the key of an initial state.
    pub(super) fn key(self) -> [u64; 2] {
        let ([low, high, ..], [a, b, ..]) = (self.0, BEGINNING);
        [low ^ a, high ^ b]
    }

    /// Returns the first half of the hash of `number` and `bytes`, and the state that computes the second.
    #[inline(always)]
    pub(super) fn hash(mut self, number: u64, bytes: &[u8]) -> (u64, SipState) {
        self.take(number);
        let mut rest = bytes;
        while let Some((word, after)) = rest.split_first_chunk() {
            self.take(u64::from_le_bytes(*word));
            rest = after;
        }
        let end = match bytes.last_chunk() {
            // The last eight bytes, without those already consumed.
            Some(last) => u64::from_le_bytes(*last) >> 1 >> (63 - 8 * rest.len() % 64),
            None => tail(rest),
        };
        // The length includes the number's eight bytes; only its lowest byte is used.
        let length = (bytes.len() as u64).wrapping_add(8) << 56;
        self.take(length | end);
        self.0[2] ^= 0xee;
        (self.half(), self)
    }

    /// Returns the second half of the hash.
    pub(super) fn second(mut self) -> u64 {
        self.0[1] ^= 0xdd;
        self.half()
    }

    #[inline(always)]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    fn half(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }

    #[inline(always)]
    fn round(&mut self) {
        let [a, b, c, d] = &mut self.0;
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}

/// Reads fewer than eight bytes as a little-endian number.
#[inline]
fn tail(rest: &[u8]) -> u64 {
    let (start, rest, mut at) = match rest.split_first_chunk::<4>() {
        Some((four, rest)) => (u32::from_le_bytes(*four).into(), rest, 32),
        None => (0, rest, 0),
    };
    rest.iter().fold(start, |word, byte| {
        let more = u64::from(*byte) << at;
        at += 8;
        word | more
    })
}
