//! `a × b / c`, exactly: in 64 bits where the product fits, else in 128.
//!
//! A result past 64 bits, and one over nothing, is `u64::MAX`.

/// `a × b / c`, rounded down.
#[inline]
pub(super) fn down(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product.checked_div(c).unwrap_or(u64::MAX),
        None => wide(a, b, c, 0),
    }
}

/// `a × b / c`, rounded up.
#[inline]
pub(super) fn up(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(0) => 0,
        Some(_) if c == 0 => u64::MAX,
        Some(product) => product.div_ceil(c),
        None => wide(a, b, c, c.saturating_sub(1)),
    }
}

#[cold]
fn wide(a: u64, b: u64, c: u64, more: u64) -> u64 {
    let product = u128::from(a) * u128::from(b) + u128::from(more);
    product
        .checked_div(u128::from(c))
        .map_or(u64::MAX, |ratio| u64::try_from(ratio).unwrap_or(u64::MAX))
}
