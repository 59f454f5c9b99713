//! The format of a counter snapshot. No file access: it reads from and writes to any stream.
//!
//! A header, records in any number and order (rules before their counters and bans), an end marker, and then the
//! number of preceding bytes and their SHA-256. All numbers are little-endian. Input is untrusted: lengths are
//! checked against a limit, and memory is allocated as bytes arrive.

use super::bans::BanRecord;
use crate::clock::Timestamp;
use crate::limit::{ShareCounter, State};
use crate::rules::registry::RegisteredRule;
use crate::store::ExemptionEntry;

mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::RecordReader;
pub(super) use write::RecordWriter;

/// The first bytes of a snapshot.
const MAGIC: [u8; 8] = *b"lockgate";
/// The format version. It changes with every change of a record, of the meaning of a limiter's words and of the
/// key hash.
const VERSION: u32 = 3;
/// The oldest version that is read. Its bans have no id, beginning or author, and it has no exemptions.
const OLDEST_VERSION: u32 = 2;

/// The maximum length of a rule's name, in bytes.
const LONGEST_NAME: usize = 255;
/// The maximum number of sub-windows of a counter, plus one.
const MOST_SLICES: usize = 1 << 16;

/// The types of records.
const END: u8 = 0;
const RULE: u8 = 1;
const BAN: u8 = 2;
const WORDS: u8 = 3;
const SLICES: u8 = 4;
const LOG: u8 = 5;
const SHARE: u8 = 6;
const EXEMPTION: u8 = 7;

/// The author of a ban.
const BY_RULE: u8 = 0;
const BY_HAND: u8 = 1;

/// The snapshot's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedHeader {
    /// The secret under which its keys are hashed.
    pub(super) secret: [u8; 16],
    /// When saving started.
    pub(super) taken: Timestamp,
    /// The maximum lifetime of a counter, in seconds.
    pub(super) longest: u32,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SavedRecord {
    /// A rule with counters or bans; counters refer to it by its slot.
    Rule(RegisteredRule),
    Ban(SavedBan),
    Counter(SavedCounter),
    Exemption(ExemptionEntry),
}

/// A ban, in force or past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedBan {
    /// The complete hash of the key.
    pub(super) hash: u128,
    /// The ban. Only the identity of its rule is saved.
    pub(super) sentence: BanRecord,
    /// Whether the ban has ended and counts as a past offence.
    pub(super) past: bool,
}

/// The counter of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedCounter {
    pub(super) tag: u64,
    pub(super) expires: u32,
    pub(super) slot: u16,
    pub(super) fill: u8,
    pub(super) count: SavedCount,
}

/// The state of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SavedCount {
    Words(State),
    Share(ShareCounter),
    /// The index of the newest sub-window and the counts of all, oldest first.
    Slices {
        index: u64,
        counts: Vec<u32>,
    },
    /// The time up to which the log is complete, and its timestamps with their units.
    Log {
        at: Timestamp,
        entries: Vec<(Timestamp, u32)>,
    },
}

/// Why a snapshot cannot be used.
#[derive(Debug)]
pub enum SnapshotError {
    /// The file is not a snapshot.
    Foreign,
    /// The format version is not supported.
    Version(u32),
    /// The file is truncated, or data follows its end.
    Length,
    /// The content does not match the checksum.
    Checksum,
    /// A record is invalid.
    Nonsense(&'static str),
    /// Reading failed.
    Io(std::io::Error),
}

// === impl SavedRecord ===

impl SavedRecord {
    /// Returns a sort key unrelated to the table's order: filling a table bucket by bucket would exhaust it
    /// early.
    pub(super) fn order(&self) -> u64 {
        match self {
            SavedRecord::Counter(counter) => counter.tag,
            SavedRecord::Rule(_) | SavedRecord::Ban(_) | SavedRecord::Exemption(_) => 0,
        }
    }
}

// === impl SnapshotError ===

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotError::Foreign => f.write_str("it is not a snapshot of lockgate's counters"),
            SnapshotError::Version(found) => write!(
                f,
                "it has format {found}, and this version of lockgate reads format {VERSION}"
            ),
            SnapshotError::Length => f.write_str("it was cut off or something was added to it"),
            SnapshotError::Checksum => {
                f.write_str("its checksum is wrong: it was changed or damaged")
            }
            SnapshotError::Nonsense(what) => write!(f, "it is damaged: it has {what}"),
            SnapshotError::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<std::io::Error> for SnapshotError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => SnapshotError::Length,
            _ => SnapshotError::Io(error),
        }
    }
}
