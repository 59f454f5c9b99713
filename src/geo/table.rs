//! What a table of ranges says, kept as steps: each holds from its first address to the next step.
//! A look-up is one binary search.

use std::net::IpAddr;

use super::database::Wanted;

/// What is said about a range. Zeros: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The autonomous system.
    pub asn: u32,
    /// The country.
    pub country: [u8; 2],
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<T> {
    /// The first address.
    pub first: T,
    /// The last address.
    pub last: T,
    /// What is said about them.
    pub said: Said,
    /// Where it stands in the file.
    pub line: u32,
}

/// Two rows that say something about one address, by their lines: the earlier, the later.
#[derive(Debug, PartialEq, Eq)]
pub struct Overlap(pub u32, pub u32);

/// Ranges of both families.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    v4: Steps<u32>,
    v6: Steps<u128>,
}

/// In columns, so that what is not wanted takes no memory and a search touches only addresses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Steps<T> {
    firsts: Vec<T>,
    asns: Option<Vec<u32>>,
    countries: Option<Vec<[u8; 2]>>,
}

/// An address as a number.
pub trait Bits: Copy + Ord {
    /// The address after this one; `None` after the last.
    fn next(self) -> Option<Self>;
}

// === impl Table ===

impl Table {
    /// A table of rows in any order, with what is `wanted` of them.
    pub fn new(v4: Vec<Row<u32>>, v6: Vec<Row<u128>>, wanted: &[Wanted]) -> Result<Self, Overlap> {
        Ok(Self {
            v4: Steps::new(v4, wanted)?,
            v6: Steps::new(v6, wanted)?,
        })
    }

    /// Whether some row has what is wanted.
    pub fn holds(&self, wanted: Wanted) -> bool {
        self.v4.holds(wanted) || self.v6.holds(wanted)
    }

    /// The autonomous system of `ip`.
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        let asn = match ip {
            IpAddr::V4(ip) => self.v4.asn(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.asn(ip.to_bits()),
        };
        asn.filter(|asn| *asn != Said::default().asn)
    }

    /// The country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let country = match ip {
            IpAddr::V4(ip) => self.v4.country(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.country(ip.to_bits()),
        };
        country.filter(|country| *country != Said::default().country)
    }

    /// How much memory it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.v4.bytes() + self.v6.bytes()
    }
}

// === impl Steps ===

impl<T: Bits> Steps<T> {
    fn new(mut rows: Vec<Row<T>>, wanted: &[Wanted]) -> Result<Self, Overlap> {
        rows.sort_by_key(|row| row.first);
        for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
            if next.first <= row.last {
                let (a, b) = (row.line, next.line);
                return Err(Overlap(a.min(b), a.max(b)));
            }
        }
        let mut steps = Self {
            firsts: Vec::new(),
            asns: wanted.contains(&Wanted::Asn).then(Vec::new),
            countries: wanted.contains(&Wanted::Country).then(Vec::new),
        };
        for row in rows {
            steps.push(row.first, row.said);
            if let Some(after) = row.last.next() {
                steps.push(after, Said::default());
            }
        }
        steps.shrink();
        Ok(steps)
    }

    /// Adds a step, unless it says what the one before says.
    fn push(&mut self, first: T, said: Said) {
        // A gap of no width: the row before ended where this one begins.
        if self.firsts.last() == Some(&first) {
            self.firsts.pop();
            self.asns.as_mut().map(Vec::pop);
            self.countries.as_mut().map(Vec::pop);
        }
        let said = self.wanted(said);
        if said == self.last() {
            return;
        }
        self.firsts.push(first);
        if let Some(asns) = &mut self.asns {
            asns.push(said.asn);
        }
        if let Some(countries) = &mut self.countries {
            countries.push(said.country);
        }
    }

    fn wanted(&self, said: Said) -> Said {
        let unknown = Said::default();
        Said {
            asn: self.asns.as_ref().map_or(unknown.asn, |_| said.asn),
            country: (self.countries.as_ref()).map_or(unknown.country, |_| said.country),
        }
    }

    /// What the last step says.
    fn last(&self) -> Said {
        let asn = self.asns.as_ref().and_then(|asns| asns.last());
        let country = self.countries.as_ref().and_then(|all| all.last());
        Said {
            asn: asn.copied().unwrap_or_default(),
            country: country.copied().unwrap_or_default(),
        }
    }

    fn shrink(&mut self) {
        self.firsts.shrink_to_fit();
        self.asns.as_mut().map(Vec::shrink_to_fit);
        self.countries.as_mut().map(Vec::shrink_to_fit);
    }

    fn holds(&self, wanted: Wanted) -> bool {
        let unknown = Said::default();
        match wanted {
            Wanted::Asn => self.asns.iter().flatten().any(|asn| *asn != unknown.asn),
            Wanted::Country => {
                let mut countries = self.countries.iter().flatten();
                countries.any(|country| *country != unknown.country)
            }
        }
    }

    fn asn(&self, ip: T) -> Option<u32> {
        self.asns.as_ref()?.get(self.step(ip)?).copied()
    }

    fn country(&self, ip: T) -> Option<[u8; 2]> {
        self.countries.as_ref()?.get(self.step(ip)?).copied()
    }

    fn step(&self, ip: T) -> Option<usize> {
        let after = self.firsts.partition_point(|first| *first <= ip);
        after.checked_sub(1)
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let asns = self.asns.as_ref().map_or(0, Vec::capacity);
        let countries = self.countries.as_ref().map_or(0, Vec::capacity);
        self.firsts.capacity() * size_of::<T>() + asns * 4 + countries * 2
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
