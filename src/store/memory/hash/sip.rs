//! SipHash-1-3 with 128 bits, of a number and the bytes after it: what a key's hash is, without
//! what a hasher for anything in any pieces has to keep.

/// The four words.
struct Sip([u64; 4]);

/// The two halves of the hash of `number` and `bytes`.
#[inline]
pub(super) fn hash([low, high]: [u64; 2], number: u64, bytes: &[u8]) -> [u64; 2] {
    let mut sip = Sip([
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ]);
    sip.take(number);
    let (words, rest) = bytes.as_chunks::<8>();
    words
        .iter()
        .for_each(|word| sip.take(u64::from_le_bytes(*word)));
    // The number counts as well; of the length, the lowest byte is taken.
    let length = (bytes.len() as u64).wrapping_add(8) << 56;
    sip.take(length | tail(rest));
    sip.end()
}

/// Less than eight bytes as a number.
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

// === impl Sip ===

impl Sip {
    #[inline(always)]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline(always)]
    fn end(mut self) -> [u64; 2] {
        self.0[2] ^= 0xee;
        let first = self.half();
        self.0[1] ^= 0xdd;
        [first, self.half()]
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
