//! A MaxMind-format database. All of it is verified when it is opened; after that a look-up gives an
//! answer or nothing.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use maxminddb::{MaxMindDbError, PathElement, Reader};

use super::continent;
use super::database::{Fault, Wanted};

type Field = [PathElement<'static>];

const ASN: &Field = &[PathElement::Key("autonomous_system_number")];
const COUNTRY: &Field = &[PathElement::Key("country"), PathElement::Key("iso_code")];
const CONTINENT: &Field = &[PathElement::Key("continent"), PathElement::Key("code")];

/// What the metadata begin with; they are within this many bytes of the end.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
const METADATA: usize = 128 << 10;

/// How many networks are looked at before a database is said not to hold what is wanted.
const SAMPLE: usize = 10_000;

/// A database that was verified.
pub struct MaxMind {
    reader: Reader<Arc<[u8]>>,
    /// What the reader reads.
    bytes: Arc<[u8]>,
}

/// Whether this looks like a database of this format.
pub fn is_marked(bytes: &[u8]) -> bool {
    let tail = bytes.len().saturating_sub(METADATA);
    let tail = bytes.get(tail..).unwrap_or_default();
    memchr::memmem::find(tail, MARKER).is_some()
}

// === impl MaxMind ===

impl MaxMind {
    /// Verifies the whole search tree and every record that it leads to.
    pub fn new(bytes: Vec<u8>) -> Result<Self, Fault> {
        let bytes: Arc<[u8]> = bytes.into();
        let reader = Reader::from_source(bytes.clone()).map_err(damaged)?;
        reader.verify().map_err(damaged)?;
        Ok(Self { reader, bytes })
    }

    /// Whether some record has what is wanted.
    pub fn holds(&self, wanted: Wanted) -> bool {
        let Ok(networks) = self.reader.networks(Default::default()) else {
            return false;
        };
        let mut networks = networks.take(SAMPLE).filter_map(Result::ok);
        networks.any(|network| match wanted {
            Wanted::Asn => matches!(network.decode_path::<u32>(ASN), Ok(Some(_))),
            Wanted::Country => matches!(network.decode_path::<&str>(COUNTRY), Ok(Some(_))),
        })
    }

    /// What it says it is.
    pub fn kind(&self) -> &str {
        &self.reader.metadata().database_type
    }

    /// The autonomous system of `ip`. Number 0 is none (RFC 7607).
    pub fn asn(&self, ip: IpAddr) -> Option<u32> {
        let found = self.reader.lookup(ip).ok()?;
        let asn: Option<u32> = found.decode_path(ASN).ok()?;
        asn.filter(|asn| *asn != 0)
    }

    /// The country of `ip`.
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.code(ip, COUNTRY)
    }

    /// The continent of `ip`; that of its country where the record has none.
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

fn damaged(error: MaxMindDbError) -> Fault {
    Fault::Damaged(error.to_string())
}
