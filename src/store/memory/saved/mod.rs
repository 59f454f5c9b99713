//! The store on paper: the format of a snapshot. Pure: it writes to and reads from anything.
//!
//! A header, records of any number and order (rules before what belongs to them), an end, and then
//! the number of bytes before and their SHA-256. All numbers are little-endian. Nothing that is
//! read is believed: a length is checked against a bound, and memory is taken as bytes arrive.

use super::bans::BanRecord;
use crate::clock::Timestamp;
use crate::limit::State;
use crate::rules::registry::RegisteredRule;

mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::RecordReader;
pub(super) use write::RecordWriter;

/// What a snapshot begins with.
const MAGIC: [u8; 8] = *b"lockgate";
/// The format. It changes with every change of a record, of what a limiter's words mean and of how
/// keys are hashed.
const VERSION: u32 = 2;

/// The longest name of a rule, in bytes.
const LONGEST_NAME: usize = 255;
/// The most sub-windows of a counter, and one.
const MOST_SLICES: usize = 1 << 16;

/// What begins a record.
const END: u8 = 0;
const RULE: u8 = 1;
const BAN: u8 = 2;
const WORDS: u8 = 3;
const SLICES: u8 = 4;
const LOG: u8 = 5;

/// What a snapshot says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedHeader {
    /// What its keys are hashed under.
    pub(super) secret: [u8; 16],
    /// When it was begun.
    pub(super) taken: Timestamp,
    /// How many seconds a counter can last.
    pub(super) longest: u32,
}

/// One thing that is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SavedRecord {
    /// A rule that something was counted for; counters name it by its slot.
    Rule(RegisteredRule),
    Ban(SavedBan),
    Counter(SavedCounter),
}

/// A ban, in force or past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedBan {
    /// The whole hash of the key.
    pub(super) hash: u128,
    /// The ban, whose rule is known by its identity alone.
    pub(super) sentence: BanRecord,
    /// It has ended, and counts.
    pub(super) past: bool,
}

/// What was counted of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedCounter {
    pub(super) tag: u64,
    pub(super) expires: u32,
    pub(super) slot: u16,
    pub(super) fill: u8,
    pub(super) count: SavedCount,
}

/// The numbers of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SavedCount {
    Words(State),
    /// The number of the newest sub-window and the counts of all, oldest first.
    Slices {
        index: u64,
        counts: Vec<u32>,
    },
    /// The moment up to which the log is complete, and its moments with their units.
    Log {
        at: Timestamp,
        entries: Vec<(Timestamp, u32)>,
    },
}

/// Why a snapshot cannot be used.
#[derive(Debug)]
pub enum SnapshotError {
    /// It is something else.
    Foreign,
    /// It has another format.
    Version(u32),
    /// It ends too early, or too late.
    Length,
    /// It is not what was written.
    Checksum,
    /// It says what cannot be.
    Nonsense(&'static str),
    /// It cannot be read.
    Io(std::io::Error),
}

// === impl SavedRecord ===

impl SavedRecord {
    /// Counters in an order that has nothing to do with their places: a table that is filled
    /// bucket after bucket is full before its time.
    pub(super) fn order(&self) -> u64 {
        match self {
            SavedRecord::Counter(counter) => counter.tag,
            SavedRecord::Rule(_) | SavedRecord::Ban(_) => 0,
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
