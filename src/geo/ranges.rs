//! Values of address ranges, stored as steps: each is valid from its first address to the next step. A lookup is
//! one binary search, no matter how many ranges there are or how they are nested.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{DatabaseUse, continent};
use crate::expr::canonical_network;

/// The ranges of both address families. An address in no range has the default value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IpRanges<V> {
    v4: Steps<u32, V>,
    v6: Steps<u128, V>,
}

/// Steps in columns, so that a search reads only addresses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Steps<T, V> {
    firsts: Vec<T>,
    values: Vec<V>,
}

/// A table of ranges that do not overlap.
pub(super) type Table = IpRanges<GeoLocation>;

/// The value of a range in a table; zeros if unknown. Six bytes without alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GeoLocation {
    asn: [u8; 4],
    country: [u8; 2],
}

/// A row of a table: its first and last address, their location, and the line number.
pub(super) type Row<T> = (T, T, GeoLocation, u32);

/// The configured location of a network. `None` for values that the databases provide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeoOverride {
    /// The autonomous system.
    pub asn: Option<u32>,
    /// The country's code, in capitals.
    pub country: Option<[u8; 2]>,
    /// The continent's code, in capitals. If it is `None` and a country is set, that of the country.
    pub continent: Option<[u8; 2]>,
}

/// All overrides. A nested network replaces its part of the outer one.
pub(super) type Overrides = IpRanges<OverriddenLocation>;

/// The combined overrides of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OverriddenLocation {
    pub(super) asn: Option<u32>,
    pub(super) country: Option<[u8; 2]>,
    /// `Some(None)` if the address is on no continent.
    pub(super) continent: Option<Option<[u8; 2]>>,
}

/// An address as a number.
trait Bits: Copy + Ord {
    /// The following address. `None` after the last.
    fn next(self) -> Option<Self>;
}

// === impl IpRanges ===

impl<V: Copy + Default> IpRanges<V> {
    /// Returns the value of `ip`.
    pub(super) fn get(&self, ip: IpAddr) -> V {
        match ip {
            IpAddr::V4(ip) => self.v4.get(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.get(ip.to_bits()),
        }
    }

    /// Returns whether a value satisfies `is`.
    pub(super) fn any(&self, is: impl Fn(&V) -> bool) -> bool {
        self.v4.values.iter().any(&is) || self.v6.values.iter().any(&is)
    }

    /// Returns the memory usage, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let values = self.v4.values.capacity() + self.v6.values.capacity();
        let firsts = self.v4.firsts.capacity() * 4 + self.v6.firsts.capacity() * 16;
        values * size_of::<V>() + firsts
    }
}

impl Table {
    /// Creates a table from rows in any order. The error is the line numbers of two rows that overlap, the
    /// earlier first.
    pub(super) fn of_rows(v4: Vec<Row<u32>>, v6: Vec<Row<u128>>) -> Result<Self, (u32, u32)> {
        Ok(Self {
            v4: steps_of_rows(v4)?,
            v6: steps_of_rows(v6)?,
        })
    }

    /// Returns whether a row has data of the wanted kind.
    pub(super) fn holds(&self, wanted: DatabaseUse) -> bool {
        self.any(|location| match wanted {
            DatabaseUse::Asn => location.asn().is_some(),
            DatabaseUse::Country => location.country().is_some(),
        })
    }
}

impl Overrides {
    /// Combines overrides. For each setting, the most specific network wins.
    pub(super) fn of_networks(overrides: Vec<(IpNet, GeoOverride)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (net, value) in overrides {
            match canonical_network(net) {
                IpNet::V4(n) => v4.push((n.network().to_bits(), n.broadcast().to_bits(), value)),
                IpNet::V6(n) => v6.push((n.network().to_bits(), n.broadcast().to_bits(), value)),
            }
        }
        Self {
            v4: steps_of_networks(v4),
            v6: steps_of_networks(v6),
        }
    }
}

// === impl Steps ===

impl<T: Bits, V: Copy + Default> Steps<T, V> {
    fn get(&self, ip: T) -> V {
        let after = self.firsts.partition_point(|first| *first <= ip);
        let step = after.checked_sub(1).and_then(|at| self.values.get(at));
        step.copied().unwrap_or_default()
    }
}

impl<T: Bits, V: Copy + Default + PartialEq> FromIterator<(T, V)> for Steps<T, V> {
    /// Collects steps in ascending order. Of two steps from one address, the later replaces the earlier.
    fn from_iter<I: IntoIterator<Item = (T, V)>>(steps: I) -> Self {
        let (mut firsts, mut values) = (Vec::new(), Vec::<V>::new());
        for (first, value) in steps {
            if firsts.last() == Some(&first) {
                firsts.pop();
                values.pop();
            }
            if values.last().copied().unwrap_or_default() != value {
                firsts.push(first);
                values.push(value);
            }
        }
        firsts.shrink_to_fit();
        values.shrink_to_fit();
        Self { firsts, values }
    }
}

fn steps_of_rows<T: Bits>(mut rows: Vec<Row<T>>) -> Result<Steps<T, GeoLocation>, (u32, u32)> {
    rows.sort_by_key(|(first, ..)| *first);
    for ((_, last, _, one), (first, _, _, other)) in rows.iter().zip(rows.iter().skip(1)) {
        if first <= last {
            return Err((*one.min(other), *one.max(other)));
        }
    }
    let steps = rows.into_iter().flat_map(|(first, last, location, _)| {
        let gap = last.next().map(|after| (after, GeoLocation::default()));
        [Some((first, location)), gap].into_iter().flatten()
    });
    Ok(steps.collect())
}

/// Converts networks, which are either nested or disjoint, to steps.
fn steps_of_networks<T: Bits>(
    mut networks: Vec<(T, T, GeoOverride)>,
) -> Steps<T, OverriddenLocation> {
    networks.sort_by_key(|(first, last, _)| (*first, std::cmp::Reverse(*last)));
    let mut steps = Vec::new();
    // The networks around the current one, the innermost last.
    let mut around: Vec<(T, OverriddenLocation)> = Vec::new();
    let innermost =
        |around: &[(T, OverriddenLocation)]| around.last().map(|it| it.1).unwrap_or_default();
    for (first, last, value) in networks {
        while let Some((end, _)) = around.pop_if(|(end, _)| *end < first) {
            steps.extend(end.next().map(|after| (after, innermost(&around))));
        }
        let value = value.within(innermost(&around));
        steps.push((first, value));
        around.push((last, value));
    }
    while let Some((end, _)) = around.pop() {
        steps.extend(end.next().map(|after| (after, innermost(&around))));
    }
    steps.into_iter().collect()
}

// === impl GeoLocation ===

impl GeoLocation {
    /// Creates a location; zeros mean unknown.
    pub(super) fn new(asn: u32, country: [u8; 2]) -> Self {
        let asn = asn.to_be_bytes();
        Self { asn, country }
    }

    /// Returns the autonomous system. Number 0 is none (RFC 7607).
    pub(super) fn asn(self) -> Option<u32> {
        Some(u32::from_be_bytes(self.asn)).filter(|asn| *asn != 0)
    }

    pub(super) fn country(self) -> Option<[u8; 2]> {
        Some(self.country).filter(|country| *country != [0; 2])
    }
}

// === impl GeoOverride ===

impl GeoOverride {
    /// Completes this override with those of the networks around it.
    fn within(&self, around: OverriddenLocation) -> OverriddenLocation {
        // A country also sets its continent, because the database's continent belongs to the overridden country.
        let continent = match (self.continent, self.country) {
            (Some(continent), _) => Some(Some(continent)),
            (None, Some(country)) => Some(continent::of(country)),
            (None, None) => around.continent,
        };
        OverriddenLocation {
            asn: self.asn.or(around.asn),
            country: self.country.or(around.country),
            continent,
        }
    }
}

// === impl Bits ===

impl Bits for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Bits for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}
