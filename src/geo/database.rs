//! One database of either format, read whole and checked. The format is told by the name where the
//! name says it, else by the content; whether it is compressed, by the content alone.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use super::maxmind::{self, MaxMind};
use super::table::Table;
use super::{continent, tsv, unpack};

/// A database that was checked.
#[derive(Debug, PartialEq, Eq)]
pub enum Database {
    /// MaxMind's format.
    MaxMind(MaxMind),
    /// A table of iptoasn.com.
    Table(Table),
}

/// What a database is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Autonomous systems.
    Asn,
    /// Countries, and continents with them.
    Country,
}

/// What is wrong with a database.
#[derive(Debug)]
pub enum Fault {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// The file is larger than any such database, maybe only once it is unpacked.
    TooLarge,
    /// The file is compressed and damaged.
    Packed(String),
    /// The file is of no known format.
    Strange,
    /// The file is not a MaxMind database, or a damaged one.
    Damaged(String),
    /// A line of a table cannot be used.
    Line {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// It is a database of something else.
    Foreign {
        /// What it calls itself, if it has a name for itself.
        kind: Option<String>,
        /// What was wanted.
        wanted: Wanted,
    },
}

enum Format {
    MaxMind,
    Table,
}

// === impl Database ===

impl Database {
    /// Reads a file and checks all of it. A table keeps only what is wanted of it.
    pub fn open(path: &Path, wanted: &[Wanted]) -> Result<Self, Fault> {
        let bytes = unpack::read(path)?;
        match Format::of(path, &bytes).ok_or(Fault::Strange)? {
            Format::MaxMind => MaxMind::new(bytes).map(Database::MaxMind),
            Format::Table => tsv::parse(&bytes, wanted).map(Database::Table),
        }
    }

    /// Refuses a database that has nothing of what is wanted.
    pub fn must_hold(&self, wanted: Wanted) -> Result<(), Fault> {
        let (holds, kind) = match self {
            Database::MaxMind(database) => (database.holds(wanted), Some(database.kind())),
            Database::Table(table) => (table.holds(wanted), None),
        };
        match holds {
            true => Ok(()),
            false => Err(Fault::Foreign {
                kind: kind.map(str::to_owned),
                wanted,
            }),
        }
    }

    /// The autonomous system of `ip`.
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        match self {
            Database::MaxMind(database) => database.asn(ip),
            Database::Table(table) => table.asn(ip),
        }
    }

    /// The country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        match self {
            Database::MaxMind(database) => database.country(ip),
            Database::Table(table) => table.country(ip),
        }
    }

    /// The continent of `ip`.
    pub fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        match self {
            Database::MaxMind(database) => database.continent(ip),
            Database::Table(table) => continent::of(table.country(ip)?),
        }
    }
}

// === impl Format ===

impl Format {
    fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        if name.ends_with(".mmdb") {
            return Some(Format::MaxMind);
        }
        if name.ends_with(".tsv") {
            return Some(Format::Table);
        }
        if maxmind::is_marked(bytes) {
            return Some(Format::MaxMind);
        }
        tsv::looks_like_one(bytes).then_some(Format::Table)
    }
}

// === impl Wanted ===

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wanted::Asn => "autonomous system numbers",
            Wanted::Country => "countries",
        })
    }
}

// === impl Fault ===

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Fault::TooLarge => write!(
                f,
                "is larger than 1 GiB, unpacked; no database of networks is"
            ),
            Fault::Packed(why) => write!(f, "is a damaged gzip file: {why}; fetch it again"),
            Fault::Strange => write!(
                f,
                "is neither a MaxMind database (.mmdb) nor a table of iptoasn.com (.tsv, .tsv.gz)"
            ),
            Fault::Damaged(why) => write!(
                f,
                "is not a MaxMind database or is damaged: {why}; fetch it again"
            ),
            Fault::Line { number, why } => write!(f, "line {number}: {why}"),
            Fault::Foreign { kind, wanted } => match kind {
                Some(kind) => write!(f, "holds no {wanted}; it is a database of type `{kind}`"),
                None => write!(f, "holds no {wanted}; `ip2asn-combined.tsv` has them"),
            },
        }
    }
}
