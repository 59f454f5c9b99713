//! Sets of integers, addresses and strings with fast lookup for any number of values. Clones share
//! their data, so that a list of 100,000 blocks is stored once.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;

use super::literal::canonical_network;

/// Up to this many strings, a scan is cheaper than a hash.
const SCAN: usize = 8;

/// A set of integers.
#[derive(Clone, Debug)]
pub struct IntSet(RangeSet<i64>);

/// A set of addresses. IPv4-mapped IPv6 addresses are IPv4.
#[derive(Clone, Debug)]
pub struct IpSet {
    v4: RangeSet<u32>,
    v6: RangeSet<u128>,
}

/// Inclusive ranges: sorted, disjoint.
#[derive(Clone, Debug)]
struct RangeSet<T>(Arc<[(T, T)]>);

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
    /// The longest value; a longer string is not hashed, whatever its length.
    longest: usize,
}

// === impl IntSet ===

impl IntSet {
    /// The integers of all inclusive `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = (i64, i64)>) -> IntSet {
        IntSet(RangeSet::new(ranges.into_iter().collect()))
    }

    /// Whether `value` is in the set.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        self.0.contains(value)
    }

    /// The ranges. `None` if there are more than `most`.
    pub(super) fn ranges(&self, most: usize) -> Option<Vec<(i64, i64)>> {
        self.0.few(most).map(<[_]>::to_vec)
    }

    /// A number that two sets share only if one is a clone of the other.
    pub fn id(&self) -> usize {
        self.0.id()
    }
}

// === impl IpSet ===

impl IpSet {
    /// The addresses of all inclusive `ranges`; a range across families is empty.
    pub fn new(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> IpSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (low, high) in ranges {
            match (low.to_canonical(), high.to_canonical(), low, high) {
                (IpAddr::V4(low), IpAddr::V4(high), ..) => v4.push((low.to_bits(), high.to_bits())),
                // Only one end may look IPv4-mapped: `::/80` ends in `::ffff:255.255.255.255`.
                (_, _, IpAddr::V6(low), IpAddr::V6(high)) => {
                    v6.push((low.to_bits(), high.to_bits()));
                }
                _ => {}
            }
        }
        IpSet {
            v4: RangeSet::new(v4),
            v6: RangeSet::new(v6),
        }
    }

    /// The addresses of all `networks`.
    pub fn of_networks(networks: impl IntoIterator<Item = IpNet>) -> IpSet {
        let ranges = networks.into_iter().map(canonical_network);
        IpSet::new(ranges.map(|network| (network.network(), network.broadcast())))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.v4.0.is_empty() && self.v6.0.is_empty()
    }

    /// Whether `ip` is in the set.
    #[inline]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.contains(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.contains(ip.to_bits()),
        }
    }

    /// The ranges. `None` if either family has more than `most`.
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

    /// Two numbers that two sets share only if one is a clone of the other.
    pub fn id(&self) -> [usize; 2] {
        [self.v4.id(), self.v6.id()]
    }
}

// === impl RangeSet ===

impl<T: Copy + Ord> RangeSet<T> {
    fn new(mut ranges: Vec<(T, T)>) -> RangeSet<T> {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
        RangeSet(ranges.into())
    }

    /// The ranges. `None` if there are more than `most`.
    fn few(&self, most: usize) -> Option<&[(T, T)]> {
        Some(&*self.0).filter(|ranges| ranges.len() <= most)
    }

    /// A number that only clones share.
    fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }

    #[inline]
    fn contains(&self, value: T) -> bool {
        let begun = self.0.partition_point(|&(low, _)| low <= value);
        let last = begun.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|&(_, high)| value <= high)
    }
}

// === impl StringSet ===

impl StringSet {
    /// The set of `values`.
    pub fn new(values: impl IntoIterator<Item = Box<[u8]>>) -> StringSet {
        let set: HashSet<Box<[u8]>> = values.into_iter().collect();
        if set.len() <= SCAN {
            StringSet(Strings::Few(set.into_iter().collect()))
        } else {
            StringSet(Strings::Many(Arc::new(Many {
                longest: set.iter().map(|value| value.len()).max().unwrap_or(0),
                values: set,
            })))
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

    /// The values. `None` if there are more than `most`.
    pub(super) fn values(&self, most: usize) -> Option<Vec<&[u8]>> {
        let values: Vec<&[u8]> = match &self.0 {
            Strings::Few(values) => values.iter().map(|value| &**value).collect(),
            Strings::Many(many) if many.values.len() > most => return None,
            Strings::Many(many) => many.values.iter().map(|value| &**value).collect(),
        };
        Some(values)
    }

    /// A number that two big sets share only if one is a clone of the other.
    pub fn id(&self) -> usize {
        match &self.0 {
            Strings::Few(values) => Arc::as_ptr(values).cast::<()>().addr(),
            Strings::Many(many) => Arc::as_ptr(many).addr(),
        }
    }

    /// The values of a small set. `None` for a big one.
    pub(super) fn few(&self) -> Option<&[Box<[u8]>]> {
        match &self.0 {
            Strings::Few(values) => Some(values),
            Strings::Many(_) => None,
        }
    }
}
