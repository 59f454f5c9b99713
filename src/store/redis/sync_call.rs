//! Packs a call of sync.lua: the reports of a node, and the events that it appends.

use std::time::Duration;

use super::encode::{ESCALATES, NEVER, algorithm_code, ban_lengths, micros, push, ratio};
use super::key_names::{FleetKey, KeyNames, NameHash};
use crate::clock::Timestamp;
use crate::limit::{Limiter, MAX_LIMIT};
use crate::rules::plan::BanLength;
use crate::store::async_mode::{FleetInfo, KeyReport};

/// The number of reports in one call.
pub(in crate::store) const MAX_REPORTS: usize = 64;

/// The number of bits in a record's map of active nodes.
const NODE_BITS: u64 = 128;

/// A node that has sent nothing for this long, or for ten sync intervals, has left the fleet.
const NODE_LIFETIME: Duration = Duration::from_secs(5);

/// The events of exhausted keys that all nodes together append per sync interval.
const FLEET_EVENTS: u32 = 1_024;

const EXCHANGES: u8 = 1;
const LEAVES: u8 = 2;

/// The kinds of events. sync.lua writes the first one too, and the kind 1.
pub(super) const BAN_EVENT: u8 = 2;
pub(super) const UNBAN_EVENT: u8 = 3;
/// Older gateways skip it.
pub(super) const EXEMPTIONS_EVENT: u8 = 4;

/// A report of one key.
#[derive(Clone, Debug)]
pub(in crate::store) struct SyncReport {
    pub(in crate::store) key: FleetKey,
    pub(in crate::store) limiter: Limiter,
    pub(in crate::store) ban: BanLength,
    pub(in crate::store) report: KeyReport,
}

/// What a node says of itself in a call.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct SyncSender {
    /// The node's identity.
    pub(in crate::store) node: u64,
    pub(in crate::store) fleet: FleetInfo,
    /// Whether the call exchanges events, and not only reports.
    pub(in crate::store) exchanges: bool,
    /// Whether the node leaves the fleet.
    pub(in crate::store) leaves: bool,
}

/// The end of a ban before its time, for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct UnbanEvent {
    pub(in crate::store) key: FleetKey,
    /// The hash of the part of the key that listings show. A node finds the ban in its own table by it.
    pub(in crate::store) shown: NameHash,
}

/// The start of a ban by hand, for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct BanEvent {
    pub(in crate::store) key: FleetKey,
    pub(in crate::store) until: Timestamp,
    /// The ordinal of the offence, counted from 1.
    pub(in crate::store) offence: u32,
}

/// Packed events, for a call that appends them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct PackedEvents {
    pub(in crate::store) bans: Vec<u8>,
    pub(in crate::store) exhausted: Vec<u8>,
}

/// The keys and the packed reports of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PackedSync {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) reports: Vec<u8>,
}

// === impl PackedSync ===

impl PackedSync {
    /// Packs `reports`, of which there are at most [`MAX_REPORTS`]. `deadline` is the server's time in microseconds
    /// after which nothing is done; 0 means no deadline.
    pub(super) fn new(
        sender: &SyncSender,
        reports: &[SyncReport],
        deadline: u64,
        names: &KeyNames,
    ) -> Self {
        let mut packed = Vec::with_capacity(32 + 80 * reports.len());
        push(&mut packed, deadline, 7);
        packed.extend_from_slice(&sender.node.to_be_bytes());
        packed.push((sender.node % NODE_BITS) as u8);
        packed.push(sender.flags());
        push(&mut packed, micros(sender.node_lifetime()), 7);
        push(&mut packed, u64::from(sender.max_events()), 2);
        push(&mut packed, reports.len() as u64, 2);
        let mut keys = Vec::with_capacity(3 + reports.len());
        if sender.exchanges {
            keys.extend(names.fleet());
        }
        for report in reports {
            pack_report(&mut packed, report, &sender.fleet);
            keys.push(names.record(report.key));
        }
        Self {
            keys,
            reports: packed,
        }
    }
}

// === impl SyncSender ===

impl SyncSender {
    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.exchanges, EXCHANGES) | flag(self.leaves, LEAVES)
    }

    fn node_lifetime(&self) -> Duration {
        NODE_LIFETIME.max(10 * self.fleet.sync_interval)
    }

    /// The events of exhausted keys that one call may append.
    fn max_events(&self) -> u32 {
        let share = FLEET_EVENTS / self.fleet.nodes.max(1);
        share.clamp(4, MAX_REPORTS as u32)
    }
}

// === impl PackedEvents ===

impl PackedEvents {
    /// Whether there is no event.
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.bans.is_empty() && self.exhausted.is_empty()
    }

    /// Adds the events of `other` at the end.
    pub(in crate::store) fn append(&mut self, mut other: Self) {
        self.bans.append(&mut other.bans);
        self.exhausted.append(&mut other.exhausted);
    }
}

// === impl UnbanEvent ===

impl UnbanEvent {
    /// Appends the packed event, which happened at `at`.
    pub(in crate::store) fn pack(&self, at: Timestamp, packed: &mut Vec<u8>) {
        let (key, shown) = (self.key.to_bytes(), self.shown.to_bytes());
        packed.push(UNBAN_EVENT);
        push(packed, (key.len() + 7 + shown.len()) as u64, 2);
        packed.extend_from_slice(&key);
        push(packed, at.as_micros(), 7);
        packed.extend_from_slice(&shown);
    }
}

// === impl BanEvent ===

impl BanEvent {
    /// Appends the packed event, which happened at `at`.
    pub(in crate::store) fn pack(&self, at: Timestamp, packed: &mut Vec<u8>) {
        let key = self.key.to_bytes();
        packed.push(BAN_EVENT);
        push(packed, (key.len() + 7 + 7 + 2) as u64, 2);
        packed.extend_from_slice(&key);
        push(packed, at.as_micros(), 7);
        push(packed, self.until.as_micros(), 7);
        push(packed, u64::from(self.offence.min(u16::MAX.into())), 2);
    }
}

/// Appends the event that the exemptions of the fleet have changed at `at`. It has the form of every event, with a key
/// that means nothing.
pub(in crate::store) fn pack_exemptions_event(at: Timestamp, packed: &mut Vec<u8>) {
    packed.push(EXEMPTIONS_EVENT);
    push(packed, (FleetKey::BYTES + 7) as u64, 2);
    packed.extend_from_slice(&[0; FleetKey::BYTES]);
    push(packed, at.as_micros(), 7);
}

fn pack_report(packed: &mut Vec<u8>, report: &SyncReport, fleet: &FleetInfo) {
    let SyncReport {
        key, limiter, ban, ..
    } = report;
    let lengths = ban_lengths(ban);
    packed.extend_from_slice(&key.to_bytes());
    packed.push(algorithm_code(limiter));
    packed.push(match ban {
        BanLength::Escalating(_) => ESCALATES,
        BanLength::Never | BanLength::For(_) => 0,
    });
    packed.push(lengths.len() as u8);
    push(packed, limiter.limit.min(MAX_LIMIT), 4);
    push(packed, micros(limiter.period).max(1), 6);
    push(packed, limiter.capacity().min(MAX_LIMIT), 4);
    let interval = micros(fleet.event_interval(limiter));
    push(packed, interval.min(NEVER - 1), 7);
    push(packed, report.report.units.count, 5);
    push(packed, report.report.refused_cost, 5);
    push(packed, micros(report.report.age), 6);
    push(packed, u64::from(limiter.slices), 2);
    if limiter.ratio.is_some() {
        push(packed, ratio(limiter), 2);
        push(packed, report.report.units.total, 5);
    }
    for length in lengths {
        push(packed, micros(*length), 6);
    }
}
