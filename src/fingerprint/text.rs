//! Numbers written into one growing buffer of ASCII, without `format!`: this runs once a
//! connection. A number is put together in a register and written whole, then cut to its length.

/// `00` to `99`, the first digit in the lower byte.
#[allow(clippy::indexing_slicing, reason = "checked when it is compiled")]
static PAIRS: [u16; 128] = {
    let mut pairs = [0; 128];
    let mut number = 0;
    while number < 100 {
        pairs[number as usize] = (b'0' as u16 + number / 10) | (b'0' as u16 + number % 10) << 8;
        number += 1;
    }
    pairs
};

/// Appends `value` in decimal, and `after`.
pub(super) fn push_decimal(out: &mut Vec<u8>, value: u16, after: u8) {
    let (high, low) = (value / 100, value % 100);
    let first = u64::from(b'0') + u64::from(high / 100);
    let ascii = first | two(high % 100) << 8 | two(low) << 24 | u64::from(after) << 40;
    // The lowest byte is written first: leading zeros are shifted out, the last digit stays.
    let zeros = match value {
        10_000.. => 0,
        1000.. => 1,
        100.. => 2,
        10.. => 3,
        _ => 4,
    };
    push_cut(out, ascii >> (zeros * 8), 6 - zeros);
}

/// Appends `value` as four hexadecimal digits, and `after`.
pub(super) fn push_hex16(out: &mut Vec<u8>, value: u16, after: u8) {
    let digits = four(value.to_be_bytes());
    push_cut(out, u64::from(digits) | u64::from(after) << 32, 5);
}

/// `value` as four hexadecimal digits.
#[inline]
pub(super) fn hex16(value: u16) -> [u8; 4] {
    four(value.to_be_bytes()).to_le_bytes()
}

/// Appends two hexadecimal digits a byte; an even number of bytes.
pub(super) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for &pair in bytes.as_chunks().0 {
        out.extend_from_slice(&four(pair).to_le_bytes());
    }
}

/// The hexadecimal digit of the low four bits.
pub(super) fn digit(value: u8) -> u8 {
    digits((value & 15).into()).to_le_bytes()[0]
}

/// The buffer as text. Only ASCII is ever written.
pub(super) fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap_or_default()
}

/// The two decimal digits of a number below a hundred, the first in the lowest byte.
#[inline]
fn two(number: u16) -> u64 {
    let pair = PAIRS.get(usize::from(number & 127));
    pair.map_or(0, |&pair| pair.into())
}

/// The four hexadecimal digits of two bytes, the first in the lowest byte.
#[inline]
fn four(bytes: [u8; 2]) -> u32 {
    let spread = u32::from(u16::from_le_bytes(bytes));
    // The bytes AB CD become the bytes A B C D.
    let pairs = (spread | spread << 8) & 0x00ff_00ff;
    digits((pairs >> 4 | pairs << 8) & 0x0f0f_0f0f)
}

/// Each byte, a number below sixteen, to its hexadecimal digit.
#[inline]
fn digits(nibbles: u32) -> u32 {
    // Adding six carries into the next bit from ten on: `a` is 39 beyond `9` + 1.
    let letters = (nibbles + 0x0606_0606) >> 4 & 0x0101_0101;
    nibbles + 0x3030_3030 + letters * 39
}

/// Appends the lowest `count` bytes of `bytes`, the lowest first.
#[inline]
fn push_cut(out: &mut Vec<u8>, bytes: u64, count: usize) {
    let end = out.len() + count;
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(end);
}
