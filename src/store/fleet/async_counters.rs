//! The counters of async mode on this node: every step is decided from them, without a call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::async_step::AsyncStep;
use super::ban_mirror::BanMirror;
use super::key_table::{BanNews, KeyTable};
use crate::clock::Timestamp;
use crate::rules::plan::{KeyStatus, RuleId, StepOp, StepResult};
use crate::store::async_mode::{FleetInfo, KeyState, ReportTiming};
use crate::store::redis::{
    FleetEvent, FleetKey, PackedEvents, ReportResult, SyncReport, UnbanEvent,
};

/// The bytes of ban events that may wait to be appended. Further events are dropped; other nodes then learn of a ban
/// when they report its key.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// The counters of async mode, for all cores.
#[derive(Debug)]
pub(in crate::store) struct AsyncCounters {
    pub(super) shards: Box<[Mutex<KeyTable>]>,
    queues: Mutex<ReportQueues>,
    /// A key is in the queue of immediate reports, or an event waits to be sent.
    pub(super) wake: Notify,
    /// The random identity of this node.
    node: u64,
    nodes: AtomicU32,
    /// Events that wait to be appended.
    events: Mutex<PackedEvents>,
    /// Whether a call that appends events is in flight.
    is_appending: AtomicBool,
    /// Whether a core runs the sync.
    is_claimed: AtomicBool,
    /// Whether the node has left the fleet, because the process ends.
    has_left: AtomicBool,
    /// Whether a rule has counted in async mode.
    is_used: AtomicBool,
    sync_interval: Duration,
    /// Whether the store cannot be reached, so that rules use their fallback.
    is_down: AtomicBool,
    /// The index of bans, for listings.
    mirror: BanMirror,
}

/// Keys to report. A key can be in both queues; the entry in the table says what is due.
#[derive(Debug, Default)]
struct ReportQueues {
    immediate: Vec<FleetKey>,
    next_flush: Vec<FleetKey>,
}

// === impl AsyncCounters ===

impl AsyncCounters {
    /// Empty counters of at most `max_keys` keys.
    pub(in crate::store) fn new(max_keys: usize, sync_interval: Duration) -> Self {
        let shards = (max_keys / 1024).next_power_of_two().min(256);
        let capacity = max_keys.div_ceil(shards);
        Self {
            shards: (0..shards)
                .map(|_| Mutex::new(KeyTable::new(capacity)))
                .collect(),
            queues: Mutex::default(),
            wake: Notify::new(),
            node: getrandom::u64().unwrap_or_default(),
            nodes: AtomicU32::new(1),
            events: Mutex::default(),
            is_appending: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            sync_interval,
            is_down: AtomicBool::new(false),
            mirror: BanMirror::default(),
        }
    }

    /// The fleet as this node knows it.
    pub(in crate::store) fn fleet(&self) -> FleetInfo {
        FleetInfo {
            nodes: self.nodes.load(Ordering::Relaxed),
            sync_interval: self.sync_interval,
        }
    }

    /// Sets the number of nodes.
    pub(super) fn set_nodes(&self, nodes: u32) {
        self.nodes.store(nodes.max(1), Ordering::Relaxed);
    }

    /// The identity of this node.
    pub(super) fn node(&self) -> u64 {
        self.node
    }

    /// Returns `true` for the first caller: its core runs the sync.
    pub(in crate::store) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::Relaxed)
    }

    /// Whether the node has left the fleet.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Ends all regular flushes.
    pub(super) fn set_left(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Adds events that the next flush appends.
    pub(super) fn add_events(&self, events: PackedEvents) {
        let mut waiting = self.events.lock();
        if waiting.bans.len() < MAX_EVENT_BYTES {
            waiting.append(events);
        }
    }

    /// The local copy of the index of bans.
    pub(in crate::store) fn mirror(&self) -> &BanMirror {
        &self.mirror
    }

    /// Announces changes that people have made to all nodes.
    pub(in crate::store) fn announce(&self, events: PackedEvents) {
        self.add_events(events);
        self.wake.notify_one();
    }

    /// Whether events wait to be appended.
    pub(super) fn has_events(&self) -> bool {
        !self.events.lock().is_empty()
    }

    /// Whether all events have been appended.
    pub(in crate::store) fn has_announced(&self) -> bool {
        !self.is_appending.load(Ordering::Relaxed) && !self.has_events()
    }

    /// Takes the events to append. Call [`AsyncCounters::end_append`] afterwards.
    pub(super) fn take_events(&self) -> PackedEvents {
        let events = std::mem::take(&mut *self.events.lock());
        self.is_appending
            .store(!events.is_empty(), Ordering::Relaxed);
        events
    }

    /// Notes that the call that appends events has ended. Events that it did not append wait again.
    pub(super) fn end_append(&self) {
        self.is_appending.store(false, Ordering::Relaxed);
    }

    /// Whether rules in async mode have counted and use their fallback now.
    pub(in crate::store) fn is_falling_back(&self) -> bool {
        self.is_down() && self.is_used.load(Ordering::Relaxed)
    }

    /// Whether rules use their fallback.
    pub(in crate::store) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Sets whether rules use their fallback.
    pub(super) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Runs one step.
    pub(in crate::store) fn run(&self, step: &AsyncStep<'_>) -> StepResult {
        if step.op == StepOp::Always {
            return step.without_counter(KeyStatus::Over);
        }
        if let Some(until) = step.known_ban() {
            return StepResult::banned(step.index, until);
        }
        self.is_used.store(true, Ordering::Relaxed);
        let key = step.key();
        let mut table = self.shard(key).lock();
        let entry = match step.op {
            StepOp::Admit | StepOp::Charge => {
                let new = || KeyState::new(&step.step.limiter);
                Some(table.get_or_insert(key, step.now, new))
            }
            StepOp::Peek | StepOp::CheckBan | StepOp::Always => table.get(key),
        };
        let Some(entry) = entry else {
            return step.run_on_new_key();
        };
        if let Some(ban) = step.apply_news(entry) {
            // From now on the ban is in the table of bans.
            table.remove(key);
            drop(table);
            return step.learn_ban(ban);
        }
        match step.op {
            StepOp::Admit | StepOp::Charge => {}
            StepOp::Peek => return step.peek(&mut entry.state),
            StepOp::CheckBan | StepOp::Always => return step.without_counter(KeyStatus::Within),
        }
        let counted = step.count(entry, self.fleet());
        if counted.must_ban && step.is_alone {
            table.remove(key);
            drop(table);
            return step.start_ban();
        }
        let was_queued = entry.queued;
        entry.queued = was_queued.max(counted.report);
        if counted.report > was_queued || entry.rule.is_none() {
            entry.rule = Some(step.counted_rule());
        }
        drop(table);
        if counted.report > was_queued {
            self.queue(counted.report, key);
        }
        step.result(counted.reading, counted.is_charged)
    }

    fn queue(&self, timing: ReportTiming, key: FleetKey) {
        let mut queues = self.queues.lock();
        if timing == ReportTiming::Immediately {
            queues.immediate.push(key);
            drop(queues);
            self.wake.notify_one();
        } else {
            queues.next_flush.push(key);
        }
    }

    /// Takes the reports that are due: those of the immediate queue, or of both. A key whose last report is in flight
    /// stays queued.
    pub(super) fn take_reports(&self, all: bool, now: Timestamp) -> Vec<SyncReport> {
        let mut queues = self.queues.lock();
        let mut keys = std::mem::take(&mut queues.immediate);
        if all {
            keys.append(&mut queues.next_flush);
        }
        drop(queues);
        let fleet = self.fleet();
        let (mut reports, mut in_flight) = (Vec::with_capacity(keys.len()), Vec::new());
        for key in keys {
            let mut table = self.shard(key).lock();
            let entry = table.get(key);
            let Some(entry) = entry.filter(|entry| entry.queued != ReportTiming::Later) else {
                continue;
            };
            match entry.take_report(now, &fleet) {
                Some(report) => reports.push(report),
                None => in_flight.push(key),
            }
        }
        self.queues.lock().next_flush.append(&mut in_flight);
        reports
    }

    /// Takes the reports of all keys with units that were not reported, part by part.
    pub(super) fn take_all_reports(&self, now: Timestamp) -> impl Iterator<Item = Vec<SyncReport>> {
        let fleet = self.fleet();
        self.shards.iter().map(move |shard| {
            let mut table = shard.lock();
            let unreported = table
                .entries()
                .filter(|entry| !entry.state.unreported_units().is_zero());
            unreported
                .filter_map(|entry| entry.take_report(now, &fleet))
                .collect()
        })
    }

    /// Applies what the store returned for a report.
    pub(super) fn finish_report(&self, report: &SyncReport, result: ReportResult, now: Timestamp) {
        let mut table = self.shard(report.key).lock();
        let Some(entry) = table.get(report.key) else {
            return;
        };
        match result {
            ReportResult::Merged(view) => {
                entry.state.confirm(&report.limiter, now, view);
                let reading = entry.state.peek(&report.limiter, now, 0);
                entry.touch(&report.limiter, now, &reading);
            }
            ReportResult::Banned {
                until,
                offence,
                started,
            } => {
                entry.state = KeyState::new(&report.limiter);
                entry.queued = ReportTiming::Later;
                entry.set_ban(BanNews {
                    until,
                    offence,
                    started,
                });
            }
        }
    }

    /// Queues a report again that the store has not merged.
    pub(super) fn fail_report(&self, report: &SyncReport) {
        let mut table = self.shard(report.key).lock();
        let Some(entry) = table.get(report.key) else {
            return;
        };
        entry.state.report_failed();
        let was_queued = entry.queued;
        entry.queued = was_queued.max(ReportTiming::NextFlush);
        drop(table);
        if was_queued == ReportTiming::Later {
            self.queue(ReportTiming::NextFlush, report.key);
        }
    }

    /// Applies an event of another node or of this one, at the store's time `now`.
    pub(super) fn learn(&self, event: FleetEvent, now: Timestamp) {
        match event {
            FleetEvent::Exhausted(key, view) => {
                let mut table = self.shard(key).lock();
                table
                    .get_or_insert(key, now, KeyState::empty)
                    .set_exhausted(view);
            }
            FleetEvent::Ban {
                key,
                until,
                offence,
            } if until > now => {
                let mut table = self.shard(key).lock();
                table
                    .get_or_insert(key, now, KeyState::empty)
                    .set_ban(BanNews {
                        until,
                        offence,
                        started: false,
                    });
            }
            FleetEvent::Ban { .. } => {}
            FleetEvent::Unban(UnbanEvent { key, .. }) => self.remove(key),
            FleetEvent::Exemptions => {}
        }
    }

    /// Removes a key: its counter and what is known of its ban.
    pub(in crate::store) fn remove(&self, key: FleetKey) {
        self.shard(key).lock().remove(key);
    }

    /// Removes all keys of these rules.
    pub(in crate::store) fn remove_rules(&self, rules: &[RuleId]) {
        let is_removed = |identity| rules.iter().any(|rule| rule.identity == identity);
        for shard in &self.shards {
            shard.lock().remove_rules(is_removed);
        }
    }

    /// Forgets every ban that was learned from the store.
    pub(super) fn forget_bans(&self) {
        for shard in &self.shards {
            shard.lock().forget_bans();
        }
    }

    pub(super) fn shard(&self, key: FleetKey) -> &Mutex<KeyTable> {
        let index = key.shard(self.shards.len() - 1);
        let shard = self.shards.get(index);
        shard.expect("the number of shards is a power of two, and the index is masked by it")
    }
}
