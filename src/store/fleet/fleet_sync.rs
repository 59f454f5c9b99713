//! Sends the reports of this node and reads the events of the fleet. One core of the process runs it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::AsyncCounters;
use crate::clock::{Clock, Timestamp};
use crate::rules::BanId;
use crate::store::memory::MemoryStore;
use crate::store::redis::{
    FleetEvent, MAX_REPORTS, PackedEvents, RedisLink, StreamPositions, SyncReply, SyncReport,
    SyncSender,
};
use crate::store::{BanEntry, StoreError};

/// The number of calls with reports that are in flight at once.
const MAX_CALLS: usize = 32;

/// After this long without a reply, rules use their fallback, even if the connection is open. At least five intervals.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);

/// How long the store keeps events. A node that was away for longer may have missed the early end of a ban.
const EVENT_LIFETIME: Duration = Duration::from_secs(600);

/// Sends reports and reads events.
pub(in crate::store) struct FleetSync<'a> {
    pub(in crate::store) counters: &'a AsyncCounters,
    /// Has the bans that this node knows.
    pub(in crate::store) local: &'a MemoryStore,
    pub(in crate::store) link: &'a RedisLink,
    pub(in crate::store) clock: &'a Clock,
    progress: SyncProgress,
}

/// What has been exchanged so far.
struct SyncProgress {
    positions: RefCell<StreamPositions>,
    /// The connection to which the positions belong.
    generation: Cell<u64>,
    last_reply: Cell<Instant>,
    /// Whether the exemptions of the fleet may have changed since they were read.
    needs_exemptions: Cell<bool>,
}

// === impl FleetSync ===

impl<'a> FleetSync<'a> {
    /// A sync that has exchanged nothing.
    pub(in crate::store) fn new(
        counters: &'a AsyncCounters,
        local: &'a MemoryStore,
        link: &'a RedisLink,
        clock: &'a Clock,
    ) -> Self {
        Self {
            counters,
            local,
            link,
            clock,
            progress: SyncProgress {
                positions: RefCell::default(),
                generation: Cell::new(link.generation()),
                last_reply: Cell::new(clock.instant()),
                needs_exemptions: Cell::new(true),
            },
        }
    }

    /// Flushes every `sync_interval`, and sooner for keys that need it, until the runtime ends.
    pub(in crate::store) async fn run(&self) {
        self.link.first_attempt().await;
        let mut regular = interval(self.counters.fleet().sync_interval);
        regular.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_immediate = self.clock.instant();
        loop {
            let is_regular = tokio::select! {
                biased;
                _ = regular.tick() => true,
                () = self.counters.wake.notified() => false,
            };
            if !is_regular {
                let passed = self.clock.instant().duration_since(last_immediate);
                sleep(self.counters.fleet().gap().saturating_sub(passed)).await;
                last_immediate = self.clock.instant();
            }
            self.flush(is_regular).await;
        }
    }

    /// Sends the reports that are due. A regular flush sends those of both queues and always reads events.
    async fn flush(&self, is_regular: bool) {
        if self.counters.has_left() {
            return;
        }
        if !self.link.is_connected() {
            self.counters.set_down(true);
            return;
        }
        self.forget_after_absence();
        let last = self.send_reports(is_regular).await;
        if is_regular || !last.is_empty() || self.counters.has_events() {
            self.exchange(last, false).await;
            self.read_exemptions().await;
        }
    }

    /// Reports all units that the fleet does not know, and leaves the fleet.
    pub(in crate::store) async fn leave(&self) {
        self.counters.set_left();
        if self.link.is_connected() {
            let mut reports = Vec::new();
            for part in self.counters.take_all_reports(self.store_time()) {
                reports.extend(part);
                if reports.len() >= MAX_CALLS * MAX_REPORTS {
                    let events = self.merge_alone(std::mem::take(&mut reports)).await;
                    self.counters.add_events(events);
                }
            }
            let events = self.merge_alone(reports).await;
            self.counters.add_events(events);
            self.exchange(Vec::new(), true).await;
        }
    }

    /// Sends the reports that are due, except those that the last call of the flush carries: the function returns
    /// these.
    async fn send_reports(&self, is_regular: bool) -> Vec<SyncReport> {
        let mut reports = self.counters.take_reports(is_regular, self.store_time());
        let last = self.split_last_call(&mut reports);
        let events = self.merge_alone(reports).await;
        self.counters.add_events(events);
        last
    }

    /// Removes the reports that the last call of a flush carries. In a Cluster, each report is a call of its own, and
    /// the last call has only events.
    fn split_last_call(&self, reports: &mut Vec<SyncReport>) -> Vec<SyncReport> {
        if self.link.is_cluster() {
            return Vec::new();
        }
        let rest = reports.len().saturating_sub(1) / MAX_REPORTS * MAX_REPORTS;
        reports.split_off(rest.min(reports.len()))
    }

    /// Sends reports in calls that exchange no events. Returns the events that the reports have caused.
    async fn merge_alone(&self, reports: Vec<SyncReport>) -> PackedEvents {
        let per_call = if self.link.is_cluster() {
            1
        } else {
            MAX_REPORTS
        };
        let sender = self.sender(false, false);
        let (no_events, no_positions) = <(PackedEvents, StreamPositions)>::default();
        let (sender, no_events, no_positions) = (&sender, &no_events, &no_positions);
        let calls = reports.chunks(per_call).map(|reports| async move {
            let reply = self.link.sync(sender, reports, no_events, no_positions);
            (reports, reply.await)
        });
        let mut calls = stream::iter(calls).buffer_unordered(MAX_CALLS);
        let mut events = PackedEvents::default();
        while let Some((reports, reply)) = calls.next().await {
            match reply {
                Ok(reply) => events.append(self.finish(reports, reply)),
                Err(_) => self.fail(reports),
            }
        }
        events
    }

    /// Sends the last reports of a flush, appends the events that wait, and reads those of the fleet.
    async fn exchange(&self, reports: Vec<SyncReport>, leaves: bool) {
        let events = self.counters.take_events();
        let positions = self.progress.positions.borrow().clone();
        let generation = self.link.generation();
        let sender = self.sender(true, leaves);
        let reply = self.link.sync(&sender, &reports, &events, &positions);
        match reply.await {
            Ok(mut reply) => {
                self.progress.last_reply.set(self.clock.instant());
                self.counters.set_nodes(reply.nodes);
                self.counters.set_down(false);
                if generation == self.link.generation() {
                    let next = std::mem::take(&mut reply.positions);
                    self.progress.positions.replace(next);
                }
                self.finish(&reports, reply);
            }
            Err(error) => {
                self.fail(&reports);
                self.counters.add_events(PackedEvents {
                    exhausted: Vec::new(),
                    ..events
                });
                self.note_failure(error);
            }
        }
        self.counters.end_append();
    }

    /// Applies the results of reports, and the events. Returns the events as they were read.
    fn finish(&self, reports: &[SyncReport], reply: SyncReply) -> PackedEvents {
        let now = self.store_time();
        for (report, result) in reports.iter().zip(reply.results) {
            self.counters.finish_report(report, result, now);
        }
        self.apply_changes(&reply.events);
        for event in reply.events {
            self.counters.learn(event, reply.at);
        }
        reply.packed_events
    }

    /// Applies what people have changed: ends bans, forgets bans that were replaced, and notes that exemptions have
    /// changed.
    fn apply_changes(&self, events: &[FleetEvent]) {
        // The new end of a ban that was replaced. `None` for one that has ended.
        let mut changed: HashMap<BanId, Option<Timestamp>> = HashMap::new();
        for event in events {
            match event {
                FleetEvent::Unban(unban) => _ = changed.insert(unban.key.ban_id(), None),
                FleetEvent::Ban { key, until, .. } if !changed.is_empty() => {
                    let replaced = changed.get_mut(&key.ban_id());
                    replaced.into_iter().for_each(|end| *end = Some(*until));
                }
                FleetEvent::Exemptions => self.progress.needs_exemptions.set(true),
                FleetEvent::Ban { .. } | FleetEvent::Exhausted(..) => {}
            }
        }
        if changed.is_empty() {
            return;
        }
        let is_old = |ban: &BanEntry| {
            let end = changed.get(&ban.ban_id);
            end.is_some_and(|end| *end != Some(ban.until))
        };
        self.local.remove_bans(is_old);
        let ended = changed.iter().filter(|(_, end)| end.is_none());
        ended.for_each(|(id, _)| self.counters.mirror().remove(*id));
    }

    /// Reads the exemptions of the fleet if they may have changed.
    async fn read_exemptions(&self) {
        if !self.progress.needs_exemptions.replace(false) {
            return;
        }
        match self.link.read_exemptions().await {
            Ok(exemptions) => {
                let now = self.store_time();
                self.local.exemptions().replace_fleet(exemptions, now);
            }
            // A command that the server rejects now, it rejects until someone changes that.
            Err(StoreError::Rejected) => {}
            Err(_) => self.progress.needs_exemptions.set(true),
        }
    }

    fn fail(&self, reports: &[SyncReport]) {
        for report in reports {
            self.counters.fail_report(report);
        }
    }

    /// Lets rules use their fallback if the store is out of reach, or has not replied for long.
    fn note_failure(&self, error: StoreError) {
        let silence = self.clock.instant() - self.progress.last_reply.get();
        let longest = LONGEST_SILENCE.max(5 * self.counters.fleet().sync_interval);
        let is_gone = error == StoreError::Unavailable && !self.link.is_connected();
        if is_gone || silence >= longest {
            self.counters.set_down(true);
        }
    }

    /// After a new connection, reads all events again: the server may be another one. After a long absence, forgets
    /// the bans that were learned from the store: their end may have been missed.
    fn forget_after_absence(&self) {
        let generation = self.link.generation();
        if self.progress.generation.replace(generation) != generation {
            self.progress.positions.borrow_mut().reset();
            self.progress.needs_exemptions.set(true);
        }
        let absence = self.clock.instant() - self.progress.last_reply.get();
        if absence >= EVENT_LIFETIME {
            self.progress.last_reply.set(self.clock.instant());
            self.progress.positions.borrow_mut().reset();
            self.counters.forget_bans();
            self.local.forget_learned_bans();
        }
    }

    fn sender(&self, exchanges: bool, leaves: bool) -> SyncSender {
        SyncSender {
            node: self.counters.node(),
            fleet: self.counters.fleet(),
            exchanges,
            leaves,
        }
    }

    fn store_time(&self) -> Timestamp {
        self.link.server_time(self.clock.now())
    }
}
