//! `gcra`: the generic cell rate algorithm. Each unit takes `period / limit`; the theoretical
//! arrival time is when all admitted units are paid for; a unit fits while that time is at most
//! `burst` units ahead of now.
//!
//! That time is `now` plus the time until a token bucket of `burst` is full again, so both
//! algorithms decide equally and share the arithmetic. A count of units instead of a time needs no
//! rounding if `period / limit` is not a whole number.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub(crate) use super::token_bucket::TokenBucketMath as Cells;
