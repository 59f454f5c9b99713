//! Where addresses are: autonomous systems, countries and continents from MaxMind-format
//! databases, and overrides that win over them.
//!
//! A database is read whole and checked when it is opened; after that a look-up gives an answer or
//! nothing. Files are not memory-mapped: a mapped file that someone truncates ends the process.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use crate::facts::GeoSource;
use crate::facts::networks;
use database::Database;
pub use database::Fault;

mod database;

/// Where addresses are looked up.
#[derive(Debug, Default)]
pub struct Geo {
    asn: Option<Database>,
    country: Option<Database>,
    /// The longest prefixes first.
    overrides: Vec<(IpNet, Override)>,
}

/// What is said about a network by hand; `None`: what the databases say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The autonomous system.
    pub asn: Option<u32>,
    /// The country's code, in capitals.
    pub country: Option<[u8; 2]>,
    /// The continent's code, in capitals.
    pub continent: Option<[u8; 2]>,
}

/// A database that cannot be used.
#[derive(Debug)]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

// === impl Geo ===

impl Geo {
    /// Reads and checks the databases, and says what is wrong with each. Reads whole files: not
    /// for a thread that serves requests.
    pub fn open(
        asn: Option<&Path>,
        country: Option<&Path>,
        overrides: Vec<(IpNet, Override)>,
    ) -> Result<Self, Vec<Error>> {
        let open = |path: Option<&Path>, wanted| {
            let open = |path: &Path| {
                Database::open(path, wanted).map_err(|fault| Error {
                    path: path.to_owned(),
                    fault,
                })
            };
            path.map(open).transpose()
        };
        let opened = (open(asn, &database::ASN), open(country, &database::COUNTRY));
        match opened {
            (Ok(asn), Ok(country)) => Ok(Self {
                asn,
                country,
                overrides: sorted(overrides),
            }),
            (asn, country) => Err(asn.err().into_iter().chain(country.err()).collect()),
        }
    }

    /// Whether any address has an autonomous system here.
    pub fn knows_asn(&self) -> bool {
        self.asn.is_some() || self.overrides.iter().any(|(_, said)| said.asn.is_some())
    }

    /// Whether any address has a country here.
    pub fn knows_country(&self) -> bool {
        let said = |said: &Override| said.country.is_some();
        self.country.is_some() || self.overrides.iter().any(|(_, o)| said(o))
    }

    /// Whether any address has a continent here.
    pub fn knows_continent(&self) -> bool {
        let said = |said: &Override| said.continent.is_some();
        self.country.is_some() || self.overrides.iter().any(|(_, o)| said(o))
    }

    /// The value of the most specific override that has one.
    fn overridden<T>(&self, ip: IpAddr, value: impl Fn(&Override) -> Option<T>) -> Option<T> {
        let holding = self.overrides.iter().filter(|(net, _)| net.contains(&ip));
        holding.filter_map(|(_, said)| value(said)).next()
    }
}

impl GeoSource for Geo {
    fn asn(&self, ip: IpAddr) -> Option<u32> {
        let ip = ip.to_canonical();
        let looked_up = || self.asn.as_ref()?.asn(ip);
        self.overridden(ip, |said| said.asn).or_else(looked_up)
    }

    fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let ip = ip.to_canonical();
        let looked_up = || self.country.as_ref()?.country(ip);
        self.overridden(ip, |said| said.country).or_else(looked_up)
    }

    fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let ip = ip.to_canonical();
        let looked_up = || self.country.as_ref()?.continent(ip);
        self.overridden(ip, |said| said.continent)
            .or_else(looked_up)
    }
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.fault)
    }
}

impl std::error::Error for Error {}

fn sorted(overrides: Vec<(IpNet, Override)>) -> Vec<(IpNet, Override)> {
    let unmapped = overrides.into_iter();
    let mut overrides: Vec<_> = unmapped
        .map(|(net, said)| (networks::unmapped(net), said))
        .collect();
    overrides.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
    overrides
}

#[cfg(test)]
mod tests;
