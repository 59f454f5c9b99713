//! `gcra`: the generic cell rate algorithm. Each unit is worth `period / limit`; the theoretical
//! arrival time is when all that came is paid for; a unit fits while that time lies no more than
//! `burst` units ahead of now.
//!
//! That time is `now` plus what a token bucket of `burst` needs to be full again, so the two say
//! the same of every request, and the arithmetic stands in one place. Kept as units and not as a
//! time, it needs no rounding where `period / limit` is no whole number.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub(crate) use super::token_bucket::TokenBucketMath as Cells;
