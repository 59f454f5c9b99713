//! One database of either format, read whole and checked. The file name determines the format, or else the
//! content; the content alone determines whether it is gzip (RFC 1952).
//!
//! A database in MaxMind's format is verified completely when it is opened.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use maxminddb::{MaxMindDbError, PathElement, Reader};

use super::ranges::Table;
use super::{continent, tsv};

/// The maximum size of a database, in bytes. A small gzip file can unpack to any size.
const LARGEST: u64 = 1 << 30;

const GZIP: &[u8] = &[0x1f, 0x8b];

type Field = [PathElement<'static>];

const ASN: &Field = &[PathElement::Key("autonomous_system_number")];
const AS_NAME: &Field = &[PathElement::Key("autonomous_system_organization")];
const COUNTRY: &Field = &[PathElement::Key("country"), PathElement::Key("iso_code")];
const CONTINENT: &Field = &[PathElement::Key("continent"), PathElement::Key("code")];

/// The start of the metadata, which are within [`METADATA`] bytes of the end.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
const METADATA: usize = 128 << 10;

/// The number of networks examined before a database without wanted data is rejected.
const SAMPLE: usize = 10_000;

/// A verified database.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GeoDatabase {
    /// MaxMind's format.
    MaxMind(MaxMind),
    /// A table of iptoasn.com.
    Table(Table),
}

/// What a database is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseUse {
    /// Autonomous systems.
    Asn,
    /// Countries, and continents with them.
    Country,
}

/// Why a database cannot be used.
#[derive(Debug)]
pub enum DatabaseError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The file is larger than the maximum, possibly only after unpacking.
    TooLarge,
    /// The file is compressed and damaged.
    Packed(String),
    /// The file has no known format.
    Strange,
    /// The file is not a MaxMind database, or it is damaged.
    Damaged(String),
    /// A line of a table cannot be used.
    Line {
        /// The line's number, counted from 1.
        number: usize,
        /// What is wrong with the line, and how to fix it.
        why: String,
    },
    /// The database has no data of the wanted kind.
    Foreign {
        /// The type in its metadata, if it has one.
        kind: Option<String>,
        /// The wanted data.
        wanted: DatabaseUse,
    },
}

/// A verified database in MaxMind's format.
pub(super) struct MaxMind {
    reader: Reader<Arc<[u8]>>,
    /// The bytes that the reader reads.
    bytes: Arc<[u8]>,
}

// === impl GeoDatabase ===

impl GeoDatabase {
    /// Reads and checks a whole file. A table keeps only the wanted data.
    pub fn open(path: &Path, wanted: &[DatabaseUse]) -> Result<Self, DatabaseError> {
        let bytes = read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let (mmdb, tsv) = (name.ends_with(".mmdb"), name.ends_with(".tsv"));
        if mmdb || (!tsv && is_marked(&bytes)) {
            MaxMind::new(bytes).map(GeoDatabase::MaxMind)
        } else if tsv || tsv::has_columns(&bytes) {
            tsv::parse(&bytes, wanted).map(GeoDatabase::Table)
        } else {
            Err(DatabaseError::Strange)
        }
    }

    /// Fails if the database has no data of the wanted kind.
    pub fn must_hold(&self, wanted: DatabaseUse) -> Result<(), DatabaseError> {
        let (holds, kind) = match self {
            GeoDatabase::MaxMind(database) => (database.holds(wanted), Some(database.kind())),
            GeoDatabase::Table(table) => (table.holds(wanted), None),
        };
        if holds {
            return Ok(());
        }
        let kind = kind.map(str::to_owned);
        Err(DatabaseError::Foreign { kind, wanted })
    }

    /// Returns the autonomous system of `ip`.
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        match self {
            GeoDatabase::MaxMind(database) => database.asn(ip),
            GeoDatabase::Table(table) => table.get(ip).asn(),
        }
    }

    /// Returns the name of the autonomous system of `ip`, for people. A table has none.
    pub fn as_name(&self, ip: IpAddr) -> Option<String> {
        match self {
            GeoDatabase::MaxMind(database) => database.as_name(ip),
            GeoDatabase::Table(_) => None,
        }
    }

    /// Returns the country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        match self {
            GeoDatabase::MaxMind(database) => database.country(ip),
            GeoDatabase::Table(table) => table.get(ip).country(),
        }
    }

    /// Returns the continent of `ip`.
    pub fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        match self {
            GeoDatabase::MaxMind(database) => database.continent(ip),
            GeoDatabase::Table(table) => continent::of(table.get(ip).country()?),
        }
    }
}

// === impl MaxMind ===

impl MaxMind {
    /// Verifies the whole search tree and every record that it refers to.
    pub fn new(bytes: Vec<u8>) -> Result<Self, DatabaseError> {
        let bytes: Arc<[u8]> = bytes.into();
        let reader = Reader::from_source(bytes.clone()).map_err(damaged)?;
        reader.verify().map_err(damaged)?;
        Ok(Self { reader, bytes })
    }

    /// Returns whether a record has data of the wanted kind.
    pub fn holds(&self, wanted: DatabaseUse) -> bool {
        let Ok(networks) = self.reader.networks(Default::default()) else {
            return false;
        };
        let mut networks = networks.take(SAMPLE).filter_map(Result::ok);
        networks.any(|network| match wanted {
            DatabaseUse::Asn => matches!(network.decode_path::<u32>(ASN), Ok(Some(_))),
            DatabaseUse::Country => matches!(network.decode_path::<&str>(COUNTRY), Ok(Some(_))),
        })
    }

    /// Returns the type in its metadata.
    pub fn kind(&self) -> &str {
        &self.reader.metadata().database_type
    }

    /// Returns the autonomous system of `ip`. Number 0 is none (RFC 7607).
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        let found = self.reader.lookup(ip).ok()?;
        let asn: Option<u32> = found.decode_path(ASN).ok()?;
        asn.filter(|asn| *asn != 0)
    }

    /// Returns the name of the autonomous system of `ip`.
    pub fn as_name(&self, ip: IpAddr) -> Option<String> {
        let found = self.reader.lookup(ip).ok()?;
        let name: Option<&str> = found.decode_path(AS_NAME).ok()?;
        name.map(str::to_owned)
    }

    /// Returns the country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.code(ip, COUNTRY)
    }

    /// Returns the continent of `ip`; that of its country if the record has none.
    pub fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.code(ip, CONTINENT)
            .or_else(|| continent::of(self.country(ip)?))
    }

    fn code(&self, ip: IpAddr, field: &Field) -> Option<[u8; 2]> {
        let found = self.reader.lookup(ip).ok()?;
        let code: Option<&str> = found.decode_path(field).ok()?;
        code?.as_bytes().try_into().ok()
    }
}

impl PartialEq for MaxMind {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for MaxMind {}

impl fmt::Debug for MaxMind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MaxMind").field(&self.kind()).finish()
    }
}

fn damaged(error: MaxMindDbError) -> DatabaseError {
    DatabaseError::Damaged(error.to_string())
}

/// Returns whether the bytes look like a MaxMind database.
fn is_marked(bytes: &[u8]) -> bool {
    let tail = bytes.len().saturating_sub(METADATA);
    let tail = bytes.get(tail..).unwrap_or_default();
    memchr::memmem::find(tail, MARKER).is_some()
}

/// Reads a whole file.
fn read(path: &Path) -> Result<Vec<u8>, DatabaseError> {
    // Opening a pipe would block until another process writes to it.
    let metadata = std::fs::metadata(path).map_err(DatabaseError::Unreadable)?;
    if metadata.file_type().is_fifo() {
        let error = io::Error::new(ErrorKind::InvalidInput, "it is a pipe, not a file");
        return Err(DatabaseError::Unreadable(error));
    }
    let file = File::open(path).map_err(DatabaseError::Unreadable)?;
    let bytes = bounded(file, LARGEST, DatabaseError::Unreadable)?;
    if bytes.starts_with(GZIP) {
        unpack(&bytes, LARGEST)
    } else {
        Ok(bytes)
    }
}

/// Unpacks up to `largest` bytes.
pub(super) fn unpack(packed: &[u8], largest: u64) -> Result<Vec<u8>, DatabaseError> {
    bounded(MultiGzDecoder::new(packed), largest, |error| {
        DatabaseError::Packed(match error.kind() {
            ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => error.to_string(),
        })
    })
}

fn bounded(
    source: impl Read,
    largest: u64,
    fault: impl Fn(io::Error) -> DatabaseError,
) -> Result<Vec<u8>, DatabaseError> {
    let mut bytes = Vec::new();
    let mut source = source.take(largest.saturating_add(1));
    source.read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > largest {
        Err(DatabaseError::TooLarge)
    } else {
        Ok(bytes)
    }
}

// === impl DatabaseUse ===

impl fmt::Display for DatabaseUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DatabaseUse::Asn => "autonomous system numbers",
            DatabaseUse::Country => "countries",
        })
    }
}

// === impl DatabaseError ===

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseError::Unreadable(error) => write!(f, "cannot be read: {error}"),
            DatabaseError::TooLarge => write!(
                f,
                "is larger than 1 GiB unpacked, too large for a database of networks"
            ),
            DatabaseError::Packed(why) => {
                write!(f, "is a damaged gzip file: {why}; download it again")
            }
            DatabaseError::Strange => write!(
                f,
                "is neither a MaxMind database (.mmdb) nor a table of iptoasn.com (.tsv, .tsv.gz)"
            ),
            DatabaseError::Damaged(why) => write!(
                f,
                "is not a MaxMind database or is damaged: {why}; download it again"
            ),
            DatabaseError::Line { number, why } => write!(f, "line {number}: {why}"),
            DatabaseError::Foreign { kind, wanted } => match kind {
                Some(kind) => write!(f, "contains no {wanted}; it is a database of type `{kind}`"),
                None => write!(f, "contains no {wanted}; `ip2asn-combined.tsv` has them"),
            },
        }
    }
}
