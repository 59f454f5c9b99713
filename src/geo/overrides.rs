//! What is said by hand about networks, made flat: networks inside others are cut out of them, so
//! that a look-up is one binary search however many there are.

use std::net::IpAddr;

use ipnet::IpNet;

use super::continent;
use super::table::Bits;
use crate::facts::networks;

/// What is said about a network by hand; `None`: what the databases say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The autonomous system.
    pub asn: Option<u32>,
    /// The country's code, in capitals.
    pub country: Option<[u8; 2]>,
    /// The continent's code, in capitals. `None` with a country: that of the country.
    pub continent: Option<[u8; 2]>,
}

/// What all overrides of an address say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The autonomous system.
    pub asn: Option<u32>,
    /// The country.
    pub country: Option<[u8; 2]>,
    /// The continent; `Some(None)`: they say that there is none.
    pub continent: Option<Option<[u8; 2]>>,
}

/// All overrides.
#[derive(Debug, Default)]
pub struct Overrides {
    v4: Vec<(u32, Together)>,
    v6: Vec<(u128, Together)>,
}

// === impl Overrides ===

impl Overrides {
    /// The most specific network wins, for each thing that is said.
    pub fn new(overrides: Vec<(IpNet, Override)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (net, said) in overrides {
            match networks::unmapped(net) {
                IpNet::V4(n) => v4.push((n.network().to_bits(), n.broadcast().to_bits(), said)),
                IpNet::V6(n) => v6.push((n.network().to_bits(), n.broadcast().to_bits(), said)),
            }
        }
        Self {
            v4: flat(v4),
            v6: flat(v6),
        }
    }

    /// What is said about `ip`.
    pub fn of(&self, ip: IpAddr) -> Together {
        match ip {
            IpAddr::V4(ip) => find(&self.v4, ip.to_bits()),
            IpAddr::V6(ip) => find(&self.v6, ip.to_bits()),
        }
    }

    /// Whether `says` is true of what is said about some address.
    pub fn any(&self, says: impl Fn(&Together) -> bool) -> bool {
        let v4 = self.v4.iter().map(|(_, said)| said);
        let mut all = v4.chain(self.v6.iter().map(|(_, said)| said));
        all.any(says)
    }
}

// === impl Override ===

impl Override {
    /// This, and what the networks around it say about the rest.
    fn within(&self, around: Together) -> Together {
        Together {
            asn: self.asn.or(around.asn),
            country: self.country.or(around.country),
            continent: self.place().or(around.continent),
        }
    }

    /// The continent, if this says where the network is. A country says it too: the continent of
    /// the database belongs to the country that is overridden.
    fn place(&self) -> Option<Option<[u8; 2]>> {
        match (self.continent, self.country) {
            (Some(continent), _) => Some(Some(continent)),
            (None, Some(country)) => Some(continent::of(country)),
            (None, None) => None,
        }
    }
}

/// Steps in order, each up to the next. Networks lie within each other or apart.
fn flat<T: Bits>(mut networks: Vec<(T, T, Override)>) -> Vec<(T, Together)> {
    networks.sort_by_key(|(first, last, _)| (*first, std::cmp::Reverse(*last)));
    let mut steps = Vec::new();
    let mut around: Vec<(T, Together)> = Vec::new();
    for (first, last, said) in networks {
        while let Some(ended) = around.pop_if(|(end, _)| *end < first) {
            leave(ended.0, &around, &mut steps);
        }
        let said = said.within(innermost(&around));
        step(first, said, &mut steps);
        around.push((last, said));
    }
    while let Some((end, _)) = around.pop() {
        leave(end, &around, &mut steps);
    }
    steps
}

fn innermost<T>(around: &[(T, Together)]) -> Together {
    around.last().map(|(_, said)| *said).unwrap_or_default()
}

/// After `end`, the network around holds again.
fn leave<T: Bits>(end: T, around: &[(T, Together)], steps: &mut Vec<(T, Together)>) {
    if let Some(after) = end.next() {
        step(after, innermost(around), steps);
    }
}

/// A later step from the same address replaces the one before.
fn step<T: Bits>(first: T, said: Together, steps: &mut Vec<(T, Together)>) {
    steps.pop_if(|(last, _)| *last == first);
    steps.push((first, said));
}

fn find<T: Bits>(steps: &[(T, Together)], ip: T) -> Together {
    let after = steps.partition_point(|(first, _)| *first <= ip);
    let at = after.checked_sub(1).and_then(|at| steps.get(at));
    at.map(|(_, said)| *said).unwrap_or_default()
}
