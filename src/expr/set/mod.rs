//! Sets of integers, addresses and strings that answer fast however many values they have. Shared,
//! so that a list of 100,000 blocks is held once.

mod ranges;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;
use ranges::Ranges;

use super::literal::canonical_network;

/// Up to this many, a scan is cheaper than anything clever.
const SCAN: usize = 8;

/// A set of integers.
#[derive(Clone, Debug)]
pub struct IntSet(Ints);

#[derive(Clone, Debug)]
enum Ints {
    Near(Near),
    Far(Ranges<i64>),
}

/// Integers within 64 of the least: status codes, neighbouring networks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    least: i64,
    bits: u64,
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
    Many(Arc<Many>),
}

#[derive(Debug)]
struct Many {
    values: HashSet<Box<[u8]>>,
    /// What is longer need not be hashed, however long a client makes it.
    longest: usize,
}

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
                Ints::Near(Near {
                    least,
                    bits: inside.fold(0, |bits, bit| bits | 1 << bit),
                })
            }
            _ => Ints::Far(ranges),
        })
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        match &self.0 {
            Ints::Near(near) => near.contains(value),
            Ints::Far(ranges) => ranges.contains(value),
        }
    }

    /// The whole set, where it is small enough for two words.
    pub(super) fn near(&self) -> Option<Near> {
        match self.0 {
            Ints::Near(near) => Some(near),
            Ints::Far(_) => None,
        }
    }

    /// Its ranges, if they are at most `most`.
    pub(super) fn ranges(&self, most: usize) -> Option<Vec<(i64, i64)>> {
        match &self.0 {
            Ints::Near(near) => {
                let values = (0..64).filter_map(|above| near.least.checked_add(above));
                let values = values.filter(|value| self.contains(*value));
                Some(values.map(|value| (value, value)).collect())
            }
            Ints::Far(ranges) => Some(ranges.few(most)?.to_vec()),
        }
    }

    /// A number that two big sets share only if one is a copy of the other.
    pub fn id(&self) -> usize {
        match &self.0 {
            Ints::Near(_) => 0,
            Ints::Far(ranges) => ranges.id(),
        }
    }
}

// === impl Near ===

impl Near {
    #[inline]
    pub(super) fn contains(self, value: i64) -> bool {
        let above = value.wrapping_sub(self.least).cast_unsigned();
        above < 64 && self.bits >> above & 1 == 1
    }
}

// === impl IpSet ===

impl IpSet {
    /// The addresses of all inclusive `ranges`; a range from one family to the other is empty.
    pub fn new(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> IpSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (low, high) in ranges {
            match (low.to_canonical(), high.to_canonical(), low, high) {
                (IpAddr::V4(low), IpAddr::V4(high), ..) => v4.push((low.to_bits(), high.to_bits())),
                // One end alone may look IPv4-mapped: `::/80` ends in `::ffff:255.255.255.255`.
                (_, _, IpAddr::V6(low), IpAddr::V6(high)) => {
                    v6.push((low.to_bits(), high.to_bits()));
                }
                _ => {}
            }
        }
        IpSet {
            v4: Ranges::new(v4),
            v6: Ranges::new(v6),
        }
    }

    /// The addresses of all `networks`.
    pub fn of_networks(networks: impl IntoIterator<Item = IpNet>) -> IpSet {
        let ranges = networks.into_iter().map(canonical_network);
        IpSet::new(ranges.map(|network| (network.network(), network.broadcast())))
    }

    /// Whether it holds no address.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether `ip` is in the set.
    #[inline]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.contains(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.contains(ip.to_bits()),
        }
    }

    /// Its ranges, if neither family has more than `most`.
    pub(super) fn ranges(&self, most: usize) -> Option<Vec<(IpAddr, IpAddr)>> {
        let v4 = self.v4.few(most)?.iter().map(|&(low, high)| {
            let ip = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
            (ip(low), ip(high))
        });
        let v6 = self.v6.few(most)?.iter().map(|&(low, high)| {
            let ip = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
            (ip(low), ip(high))
        });
        Some(v4.chain(v6).collect())
    }

    /// Two numbers that two sets share only if one is a copy of the other.
    pub fn id(&self) -> [usize; 2] {
        [self.v4.id(), self.v6.id()]
    }
}

// === impl StringSet ===

impl StringSet {
    /// The set of `values`.
    pub fn new(values: impl IntoIterator<Item = Box<[u8]>>) -> StringSet {
        let set: HashSet<Box<[u8]>> = values.into_iter().collect();
        match set.len() <= SCAN {
            true => StringSet(Strings::Few(set.into_iter().collect())),
            false => StringSet(Strings::Many(Arc::new(Many {
                longest: set.iter().map(|value| value.len()).max().unwrap_or(0),
                values: set,
            }))),
        }
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: &[u8]) -> bool {
        match &self.0 {
            Strings::Few(values) => values.iter().any(|one| **one == *value),
            Strings::Many(many) => value.len() <= many.longest && many.values.contains(value),
        }
    }

    /// Its values, if they are at most `most`.
    pub(super) fn values(&self, most: usize) -> Option<Vec<&[u8]>> {
        let values: Vec<&[u8]> = match &self.0 {
            Strings::Few(values) => values.iter().map(|value| &**value).collect(),
            Strings::Many(many) if many.values.len() > most => return None,
            Strings::Many(many) => many.values.iter().map(|value| &**value).collect(),
        };
        Some(values)
    }

    /// A number that two big sets share only if one is a copy of the other.
    pub fn id(&self) -> usize {
        match &self.0 {
            Strings::Few(values) => Arc::as_ptr(values).cast::<()>().addr(),
            Strings::Many(many) => Arc::as_ptr(many).addr(),
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
