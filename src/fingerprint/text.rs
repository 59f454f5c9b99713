//! Numbers written into one growing string, without `format!`: this runs once a connection.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends `value` in decimal.
pub(super) fn push_decimal(out: &mut String, value: u16) {
    let mut divisor = 10_000;
    while divisor > 1 && value < divisor {
        divisor /= 10;
    }
    while divisor > 0 {
        out.push(digit(value / divisor % 10));
        divisor /= 10;
    }
}

/// Appends `value` as four hexadecimal digits.
pub(super) fn push_hex16(out: &mut String, value: u16) {
    push_hex(out, &value.to_be_bytes());
}

/// Appends two hexadecimal digits a byte.
pub(super) fn push_hex(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        out.push(digit((byte >> 4).into()));
        out.push(digit((byte & 15).into()));
    }
}

/// The hexadecimal digit of the low four bits.
pub(super) fn digit(value: u16) -> char {
    DIGITS
        .get(usize::from(value & 15))
        .map_or('0', |&d| char::from(d))
}
