//! Reads the record of a key as the scripts have written it (records.lua), without a script.

use super::ban_index::BanRecordPart;
use super::encode::algorithm_code;
use super::sync_reply::counter_of;
use crate::clock::Timestamp;
use crate::limit::{Counter, CounterShape, Limiter};

/// The first byte of the record of a ban, and the flags of a record with further parts.
const BANNED: u8 = 128;
const HAS_OFFENCES: u8 = 64;
const HAS_NODES: u8 = 32;

/// The lengths of these parts, and of a record with sub-windows apart from their counts.
const OFFENCES_BYTES: usize = 9;
const NODES_BYTES: usize = 30;
const SLICES_BYTES: usize = 13;

/// What the shared store has of a key.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct KeyRecord {
    /// When the ban of the key ends. `None` if it is not banned.
    pub(in crate::store) banned_until: Option<Timestamp>,
    /// The counter. `None` if the key has none, or one of another algorithm.
    pub(in crate::store) counter: Option<Counter>,
}

// === impl KeyRecord ===

impl KeyRecord {
    /// Reads the record of a key that `limiter` counts, at the server's time `now`.
    pub(super) fn read(record: &[u8], limiter: &Limiter, now: Timestamp) -> Self {
        Self {
            banned_until: BanRecordPart::read(record, now).until,
            counter: counter(record, limiter),
        }
    }
}

fn counter(record: &[u8], limiter: &Limiter) -> Option<Counter> {
    let (kind, mut rest) = record.split_first()?;
    let mut kind = *kind;
    if kind >= BANNED {
        return None;
    }
    for (flag, bytes) in [(HAS_OFFENCES, OFFENCES_BYTES), (HAS_NODES, NODES_BYTES)] {
        if kind & flag != 0 {
            kind &= !flag;
            rest = rest.get(..rest.len().checked_sub(bytes)?)?;
        }
    }
    let has_length = limiter.shape() != CounterShape::Slices
        || rest.len() + 1 == SLICES_BYTES + 4 * (usize::from(limiter.slices) + 1);
    if kind != algorithm_code(limiter) || !has_length {
        return None;
    }
    counter_of(&[&[kind], rest].concat())
}
