//! Sets of integers, addresses and strings that answer fast: sorted merged ranges for what has an
//! order, a hash for many strings. Shared, so that a list of 100,000 blocks is held once.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Up to this many, a scan is cheaper than anything clever.
const SCAN: usize = 8;

/// A set of integers.
#[derive(Clone, Debug)]
pub struct IntSet(Ints);

#[derive(Clone, Debug)]
enum Ints {
    /// All within 64 of the least: status codes, neighbouring networks.
    Near {
        least: i64,
        bits: u64,
    },
    Far(Ranges<i64>),
}

/// A set of addresses. IPv4-mapped IPv6 addresses are IPv4.
#[derive(Clone, Debug)]
pub struct IpSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

/// A set of strings.
#[derive(Clone, Debug)]
pub struct StringSet(Strings);

#[derive(Clone, Debug)]
enum Strings {
    Few(Arc<[Box<[u8]>]>),
    Many(Arc<HashSet<Box<[u8]>>>),
}

/// Inclusive ranges: sorted, disjoint.
#[derive(Clone, Debug)]
struct Ranges<T>(Arc<[(T, T)]>);

// === impl IntSet ===

impl IntSet {
    /// The integers of all inclusive `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = (i64, i64)>) -> IntSet {
        let ranges = Ranges::new(ranges.into_iter().collect());
        IntSet(match ranges.bounds() {
            Some((least, most)) if most.abs_diff(least) < 64 => {
                let inside = (0..64).filter(|bit| {
                    least
                        .checked_add(*bit)
                        .is_some_and(|value| ranges.contains(value))
                });
                Ints::Near {
                    least,
                    bits: inside.fold(0, |bits, bit| bits | 1 << bit),
                }
            }
            _ => Ints::Far(ranges),
        })
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        match &self.0 {
            Ints::Near { least, bits } => {
                let above = value.wrapping_sub(*least).cast_unsigned();
                above < 64 && bits >> above & 1 == 1
            }
            Ints::Far(ranges) => ranges.contains(value),
        }
    }
}

// === impl IpSet ===

impl IpSet {
    /// The addresses of all inclusive `ranges`; a range from one family to the other is empty.
    pub fn new(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> IpSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (low, high) in ranges {
            match (low.to_canonical(), high.to_canonical()) {
                (IpAddr::V4(low), IpAddr::V4(high)) => v4.push((low.to_bits(), high.to_bits())),
                (IpAddr::V6(low), IpAddr::V6(high)) => v6.push((low.to_bits(), high.to_bits())),
                _ => {}
            }
        }
        IpSet {
            v4: Ranges::new(v4),
            v6: Ranges::new(v6),
        }
    }

    /// Whether `ip` is in the set.
    #[inline]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.contains(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.contains(ip.to_bits()),
        }
    }
}

// === impl StringSet ===

impl StringSet {
    /// The set of `values`.
    pub fn new(values: impl IntoIterator<Item = Box<[u8]>>) -> StringSet {
        let values: HashSet<_> = values.into_iter().collect();
        match values.len() <= SCAN {
            true => StringSet(Strings::Few(values.into_iter().collect())),
            false => StringSet(Strings::Many(Arc::new(values))),
        }
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: &[u8]) -> bool {
        match &self.0 {
            Strings::Few(values) => values.iter().any(|one| **one == *value),
            Strings::Many(values) => values.contains(value),
        }
    }

    /// The length of every value, when they are few and of one length; else 0.
    pub(super) fn one_length(&self) -> usize {
        let mut lengths = self
            .few()
            .unwrap_or_default()
            .iter()
            .map(|value| value.len());
        match lengths.next() {
            Some(first) if lengths.all(|length| length == first) => first,
            _ => 0,
        }
    }

    /// The values, when they are few.
    pub(super) fn few(&self) -> Option<&[Box<[u8]>]> {
        match &self.0 {
            Strings::Few(values) => Some(values),
            Strings::Many(_) => None,
        }
    }
}

// === impl Ranges ===

impl<T: Copy + Ord> Ranges<T> {
    fn new(mut ranges: Vec<(T, T)>) -> Ranges<T> {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ranges(merged.into())
    }

    fn bounds(&self) -> Option<(T, T)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    #[inline]
    fn contains(&self, value: T) -> bool {
        if self.0.len() <= SCAN {
            return self
                .0
                .iter()
                .any(|&(low, high)| low <= value && value <= high);
        }
        let after = self.0.partition_point(|&(low, _)| low <= value);
        after
            .checked_sub(1)
            .and_then(|at| self.0.get(at))
            .is_some_and(|&(_, high)| value <= high)
    }
}
