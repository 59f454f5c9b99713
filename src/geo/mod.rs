//! Looks up addresses: autonomous systems, countries and continents from databases in MaxMind's format or tables
//! of iptoasn.com, and overrides that take precedence.
//!
//! A database is read whole and checked when it is opened; after that, a lookup cannot fail. Files are not
//! memory-mapped: truncating a mapped file would kill the process.

use std::fmt;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipnet::IpNet;

use crate::facts::GeoSource;
use database::GeoDatabase;
pub use database::{DatabaseError, DatabaseUse};
pub use ranges::GeoOverride;
use ranges::Overrides;

pub mod continent;
mod database;
mod ranges;
mod tsv;

/// Databases and overrides for looking up addresses.
#[derive(Debug, Default)]
pub struct GeoLookup {
    asn: Option<Arc<GeoDatabase>>,
    country: Option<Arc<GeoDatabase>>,
    overrides: Overrides,
}

/// A database that cannot be used.
#[derive(Debug)]
pub struct GeoError {
    /// The file.
    pub path: PathBuf,
    /// The wanted data; the first kind if the file was to provide both.
    pub wanted: DatabaseUse,
    /// The error.
    pub fault: DatabaseError,
}

// === impl GeoLookup ===

impl GeoLookup {
    /// Reads and checks the databases; returns an error for each that fails. One file for both is opened once.
    /// Reads whole files: not for a thread that serves requests.
    pub fn open(
        asn: Option<&Path>,
        country: Option<&Path>,
        overrides: Vec<(IpNet, GeoOverride)>,
    ) -> Result<Self, Vec<GeoError>> {
        let mut errors = Vec::new();
        let (asn, country) = match (asn, country) {
            (Some(asn), Some(country)) if is_same_file(asn, country) => {
                let both = open(asn, &[DatabaseUse::Asn, DatabaseUse::Country], &mut errors);
                (both.clone(), both)
            }
            (asn, country) => (
                asn.and_then(|path| open(path, &[DatabaseUse::Asn], &mut errors)),
                country.and_then(|path| open(path, &[DatabaseUse::Country], &mut errors)),
            ),
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            asn,
            country,
            overrides: Overrides::of_networks(overrides),
        })
    }

    /// Replaces each database that equals one of `other` with that one, so that both share its memory.
    pub fn sharing(mut self, other: &GeoLookup) -> Self {
        for (own, other) in [
            (&mut self.asn, &other.asn),
            (&mut self.country, &other.country),
        ] {
            if own.is_some() && own == other {
                own.clone_from(other);
            }
        }
        self
    }

    /// Returns whether both share their databases' memory.
    pub fn shares(&self, other: &GeoLookup) -> bool {
        let same = |a: &Option<Arc<GeoDatabase>>, b: &Option<Arc<GeoDatabase>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        same(&self.asn, &other.asn) && same(&self.country, &other.country)
    }

    /// Returns whether a database or an override can provide an autonomous system.
    pub fn knows_asn(&self) -> bool {
        self.asn.is_some() || self.overrides.any(|entry| entry.asn.is_some())
    }

    /// Returns the name of the autonomous system of `ip`, for people. `None` if it is unknown.
    pub fn as_name(&self, ip: IpAddr) -> Option<String> {
        let ip = ip.to_canonical();
        if self.overrides.get(ip).asn.is_some() {
            return None;
        }
        self.asn.as_ref()?.as_name(ip)
    }

    /// Returns whether a database or an override can provide a country.
    pub fn knows_country(&self) -> bool {
        self.country.is_some() || self.overrides.any(|entry| entry.country.is_some())
    }

    /// Returns whether a database or an override can provide a continent.
    pub fn knows_continent(&self) -> bool {
        self.country.is_some()
            || self
                .overrides
                .any(|entry| entry.continent.flatten().is_some())
    }
}

impl GeoSource for GeoLookup {
    fn asn(&self, ip: IpAddr) -> Option<u32> {
        let ip = ip.to_canonical();
        let looked_up = || self.asn.as_ref()?.asn(ip);
        self.overrides.get(ip).asn.or_else(looked_up)
    }

    fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let ip = ip.to_canonical();
        let looked_up = || self.country.as_ref()?.country(ip);
        self.overrides.get(ip).country.or_else(looked_up)
    }

    fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let ip = ip.to_canonical();
        let looked_up = || self.country.as_ref()?.continent(ip);
        let entry = self.overrides.get(ip).continent;
        entry.unwrap_or_else(looked_up)
    }
}

// === impl GeoError ===

impl GeoError {
    /// Returns whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(&self.fault, DatabaseError::Unreadable(error) if error.kind() == ErrorKind::NotFound)
    }
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            DatabaseError::Line { number, why } => write!(f, "{path}:{number}: {why}"),
            fault => write!(f, "{path}: {fault}"),
        }
    }
}

impl std::error::Error for GeoError {}

fn open(
    path: &Path,
    wanted: &[DatabaseUse],
    errors: &mut Vec<GeoError>,
) -> Option<Arc<GeoDatabase>> {
    let mut refuse = |wanted: Option<&DatabaseUse>, fault| {
        errors.push(GeoError {
            path: path.to_owned(),
            wanted: wanted.copied().unwrap_or(DatabaseUse::Asn),
            fault,
        });
    };
    match GeoDatabase::open(path, wanted) {
        Ok(database) => {
            for one in wanted {
                if let Err(fault) = database.must_hold(*one) {
                    refuse(Some(one), fault);
                }
            }
            Some(Arc::new(database))
        }
        Err(fault) => {
            refuse(wanted.first(), fault);
            None
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

#[cfg(test)]
mod tests;
