//! Reads the reply of sync.lua. A reply comes from the network and can be anything.

use redis::Value;

use super::decode::{BadReply, number};
use super::encode::NEVER;
use super::key_names::{FleetKey, NameHash};
use super::sync_call::{BAN_EVENT, EXEMPTIONS_EVENT, PackedEvents, UNBAN_EVENT, UnbanEvent};
use crate::clock::Timestamp;
use crate::limit::slices::SubWindows;
use crate::limit::{Algorithm, Counter, Limiter, ShareCounter};
use crate::store::async_mode::FleetView;

const EXHAUSTED_EVENT: u8 = 1;

/// What the store returned to a sync call.
#[derive(Debug, Default)]
pub(in crate::store) struct SyncReply {
    /// The server's time.
    pub(in crate::store) at: Timestamp,
    /// The number of nodes in the fleet. 0 if the call did not exchange events.
    pub(in crate::store) nodes: u32,
    /// One result per report.
    pub(in crate::store) results: Vec<ReportResult>,
    /// The events of other nodes and of this one, in their order.
    pub(in crate::store) events: Vec<FleetEvent>,
    /// The events as they were read.
    pub(in crate::store) packed_events: PackedEvents,
    /// The positions in the two streams after this call.
    pub(in crate::store) positions: StreamPositions,
}

/// Up to where a node has read the streams of events. Empty at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct StreamPositions {
    pub(super) bans: Vec<u8>,
    pub(super) exhausted: Vec<u8>,
}

/// What became of a report.
#[derive(Clone, Debug)]
pub(in crate::store) enum ReportResult {
    /// The units were charged.
    Merged(FleetView),
    /// The key is banned, or was banned because of this report. Its counter is gone.
    Banned {
        until: Timestamp,
        offence: u32,
        started: bool,
    },
}

/// Something that all nodes must know.
#[derive(Clone, Debug)]
pub(in crate::store) enum FleetEvent {
    /// A key has used up its capacity.
    Exhausted(FleetKey, FleetView),
    /// A key is banned.
    Ban {
        key: FleetKey,
        until: Timestamp,
        offence: u32,
    },
    /// A ban has ended early.
    Unban(UnbanEvent),
    /// The exemptions of the fleet have changed.
    Exemptions,
}

/// Bytes that are read from the front.
pub(super) struct ByteReader<'a>(&'a [u8]);

/// Reads a reply to a call with reports for `limiters`. `None` means that the deadline had passed and nothing was done.
pub(super) fn decode(
    reply: &Value,
    limiters: &[&Limiter],
) -> Result<(Timestamp, Option<SyncReply>), BadReply> {
    let Value::Array(parts) = reply else {
        return Err(BadReply);
    };
    let part = |index: usize| match parts.get(index) {
        Some(Value::BulkString(bytes)) => Ok(bytes.as_slice()),
        _ => Err(BadReply),
    };
    let mut packed = ByteReader(part(0)?);
    let at = packed.time().ok_or(BadReply)?;
    if parts.len() == 1 && packed.0.is_empty() {
        return Ok((at, None));
    }
    let nodes = packed.number(4).ok_or(BadReply)?;
    let results = limiters
        .iter()
        .map(|limiter| packed.result(limiter, at).ok_or(BadReply))
        .collect::<Result<_, _>>()?;
    if !packed.0.is_empty() {
        return Err(BadReply);
    }
    let (bans, exhausted) = (entries_of(part(1)?)?, entries_of(part(2)?)?);
    let entries = bans.iter().chain(&exhausted);
    let events = entries.flat_map(|entry| events_of(entry)).collect();
    let reply = SyncReply {
        at,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        results,
        events,
        packed_events: PackedEvents {
            bans: bans.concat(),
            exhausted: exhausted.concat(),
        },
        positions: StreamPositions {
            bans: part(3)?.to_vec(),
            exhausted: part(4)?.to_vec(),
        },
    };
    Ok((at, Some(reply)))
}

/// Splits the entries of a stream, each after its length.
fn entries_of(bytes: &[u8]) -> Result<Vec<&[u8]>, BadReply> {
    let mut reader = ByteReader(bytes);
    let mut entries = Vec::new();
    while !reader.0.is_empty() {
        let length = reader.number(4).ok_or(BadReply)?;
        let length = usize::try_from(length).map_err(|_| BadReply)?;
        entries.push(reader.take(length).ok_or(BadReply)?);
    }
    Ok(entries)
}

/// Reads the events of an entry. Whatever is no event that this version knows is skipped: another version, or another
/// program, may have written it.
fn events_of(entry: &[u8]) -> Vec<FleetEvent> {
    let mut reader = ByteReader(entry);
    let mut events = Vec::new();
    while let Some(kind) = reader.byte()
        && let Some(length) = reader.number(2)
        && let Some(rest) = reader.take(length as usize)
    {
        events.extend(ByteReader(rest).event(kind));
    }
    events
}

// === impl StreamPositions ===

impl StreamPositions {
    /// Moves back to the start of the streams. Reading an event twice does no harm.
    pub(in crate::store) fn reset(&mut self) {
        *self = Self::default();
    }
}

// === impl ByteReader ===

impl<'a> ByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| *byte)
    }

    pub(super) fn number(&mut self, width: usize) -> Option<u64> {
        self.take(width).map(number)
    }

    fn word(&mut self) -> Option<u32> {
        self.chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(super) fn time(&mut self) -> Option<Timestamp> {
        let micros = self.number(7)?;
        (micros < NEVER).then(|| Timestamp::from_micros(micros))
    }

    fn key(&mut self) -> Option<FleetKey> {
        FleetKey::from_bytes(self.chunk()?)
    }

    /// The windows of a rule with a ratio.
    fn share(&mut self, algorithm: Algorithm) -> Option<Counter> {
        let index = self.number(6)?;
        let (count, total) = ([self.word()?, self.word()?], [self.word()?, self.word()?]);
        Some(Counter::Share(ShareCounter::of_window(
            algorithm, index, count, total,
        )))
    }

    pub(super) fn offence(&mut self) -> Option<u32> {
        u32::try_from(self.number(2)?).ok()
    }

    fn result(&mut self, limiter: &Limiter, at: Timestamp) -> Option<ReportResult> {
        let status = self.byte()?;
        if status == 0 {
            let active_bits = u32::from(self.byte()?);
            let length = usize::try_from(self.number(2)?).ok()?;
            let counter = match self.take(length)? {
                [] => Counter::new(limiter.shape(), limiter),
                record => counter_of(record)?,
            };
            return Some(ReportResult::Merged(FleetView {
                counter,
                active_bits,
                at,
            }));
        }
        let started = match status {
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(ReportResult::Banned {
            until: self.time()?,
            offence: self.offence()?,
            started,
        })
    }

    /// Reads what follows the kind and the length of an event. `None` if this version does not know it.
    fn event(&mut self, kind: u8) -> Option<FleetEvent> {
        let key = self.key()?;
        let at = self.time()?;
        Some(match kind {
            EXHAUSTED_EVENT => {
                let active_bits = u32::from(self.byte()?);
                let length = usize::try_from(self.number(2)?).ok()?;
                let counter = counter_of(self.take(length)?)?;
                FleetEvent::Exhausted(
                    key,
                    FleetView {
                        counter,
                        active_bits,
                        at,
                    },
                )
            }
            BAN_EVENT => FleetEvent::Ban {
                key,
                until: self.time()?,
                offence: self.offence()?,
            },
            UNBAN_EVENT => FleetEvent::Unban(UnbanEvent {
                key,
                shown: NameHash::from_bytes(self.chunk()?),
            }),
            EXEMPTIONS_EVENT => FleetEvent::Exemptions,
            _ => return None,
        })
    }
}

/// Reads the record of a counter, which starts with its algorithm (limiters.lua). `None` if it is no such record.
pub(super) fn counter_of(record: &[u8]) -> Option<Counter> {
    let mut record = ByteReader(record);
    let counter = match record.byte()? {
        1 => Counter::of_sliding_window(record.number(6)?, record.word()?, record.word()?),
        2 => Counter::of_fixed_window(record.number(6)?, record.word()?),
        3 => {
            let (high, low) = (record.number(6)?, record.number(5)?);
            let drains_from = high.checked_mul(32)?.checked_add(low % 32)?;
            Counter::of_bucket(low / 32, Timestamp::from_micros(drains_from))
        }
        5 => {
            let (newest, _total) = (record.number(7)?, record.number(5)?);
            let mut counts = Vec::with_capacity(record.0.len() / 4);
            while !record.0.is_empty() {
                counts.push(record.word()?);
            }
            (counts.len() > 1).then(|| Counter::Slices(SubWindows::restored(newest, counts)))?
        }
        8 => record.share(Algorithm::SlidingWindow)?,
        9 => record.share(Algorithm::FixedWindow)?,
        _ => return None,
    };
    record.0.is_empty().then_some(counter)
}
