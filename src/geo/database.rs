//! One MaxMind-format database.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use maxminddb::{MaxMindDbError, PathElement, Reader};

type Field = [PathElement<'static>];

/// What the gateway wants of a database.
#[derive(Debug)]
pub struct Wanted {
    /// In messages.
    name: &'static str,
    /// A field that some record must have.
    field: &'static Field,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Text,
}

const ASN_FIELD: &Field = &[PathElement::Key("autonomous_system_number")];
const COUNTRY_FIELD: &Field = &[PathElement::Key("country"), PathElement::Key("iso_code")];
const CONTINENT_FIELD: &Field = &[PathElement::Key("continent"), PathElement::Key("code")];

/// A database of autonomous systems.
pub const ASN: Wanted = Wanted {
    name: "autonomous system numbers",
    field: ASN_FIELD,
    kind: Kind::Number,
};

/// A database of countries.
pub const COUNTRY: Wanted = Wanted {
    name: "countries",
    field: COUNTRY_FIELD,
    kind: Kind::Text,
};

/// How many networks are looked at before a database is said not to hold what is wanted.
const SAMPLE: usize = 10_000;

/// A database that was checked.
pub struct Database(Reader<Vec<u8>>);

/// What is wrong with a database.
#[derive(Debug)]
pub enum Fault {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// The file is not a MaxMind database, or a damaged one.
    Damaged(String),
    /// It is a database of something else.
    Foreign {
        /// What it calls itself.
        kind: String,
        /// What was wanted.
        wanted: &'static str,
    },
}

// === impl Database ===

impl Database {
    /// Reads a file and checks all of it.
    pub fn open(path: &Path, wanted: &Wanted) -> Result<Self, Fault> {
        let bytes = std::fs::read(path).map_err(Fault::Unreadable)?;
        let reader = Reader::from_source(bytes).map_err(damaged)?;
        reader.verify().map_err(damaged)?;
        let database = Self(reader);
        match database.holds(wanted)? {
            true => Ok(database),
            false => Err(Fault::Foreign {
                kind: database.0.metadata().database_type.clone(),
                wanted: wanted.name,
            }),
        }
    }

    /// The autonomous system of `ip`.
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        let found = self.0.lookup(ip).ok()?;
        found.decode_path(ASN_FIELD).ok()?
    }

    /// The country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.code(ip, COUNTRY_FIELD)
    }

    /// The continent of `ip`.
    pub fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.code(ip, CONTINENT_FIELD)
    }

    fn code(&self, ip: IpAddr, field: &Field) -> Option<[u8; 2]> {
        let found = self.0.lookup(ip).ok()?;
        let code: Option<&str> = found.decode_path(field).ok()?;
        code?.as_bytes().try_into().ok()
    }

    fn holds(&self, wanted: &Wanted) -> Result<bool, Fault> {
        let networks = self.0.networks(Default::default()).map_err(damaged)?;
        for network in networks.take(SAMPLE) {
            let network = network.map_err(damaged)?;
            let found = match wanted.kind {
                Kind::Number => matches!(network.decode_path::<u32>(wanted.field), Ok(Some(_))),
                Kind::Text => matches!(network.decode_path::<&str>(wanted.field), Ok(Some(_))),
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.0.metadata().database_type;
        f.debug_tuple("Database").field(kind).finish()
    }
}

// === impl Fault ===

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Fault::Damaged(why) => write!(f, "is not a MaxMind database or is damaged: {why}"),
            Fault::Foreign { kind, wanted } => {
                write!(f, "holds no {wanted}; it is a database of type `{kind}`")
            }
        }
    }
}

fn damaged(error: MaxMindDbError) -> Fault {
    Fault::Damaged(error.to_string())
}
