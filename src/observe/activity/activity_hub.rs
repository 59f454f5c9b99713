//! The memory of the process: merges the batches of all cores, and serves the admin API.
//!
//! Cores only push into an inbox, whose lock is never held for long. [`ActivityHub::collect`] and
//! [`ActivityHub::tick`] do the work on a thread that serves no requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::action_class::ActionClass;
use super::ban_figures::{BanFigures, BanLedger};
use super::core_batch::{CoreBatch, MissedDecisions};
use super::decision_record::DecisionRecord;
use super::decision_ring::{ClientDecisions, ClientQuery, DecisionRing};
use super::history::{History, HistoryView};
use super::hot_keys::{HotKey, HotKeys};
use super::latency::{LatencyBuckets, LatencyWindow};
use super::markers::{Marker, MarkerLog};
use super::streams::{DecisionFilter, StreamEvents, StreamQueue};
use super::tick::{PreviousTotals, Tick, TickInput};
use crate::clock::Timestamp;
use crate::rules::{BanId, RuleId};

/// The maximum number of batches in the inbox. Cores keep their batch while it is full.
const MAX_INBOX: usize = 64;
/// The interval at which bans that have ended are forgotten.
const SWEEP: Duration = Duration::from_secs(10);

/// What the gateway remembers about recent requests, for people.
#[derive(Debug)]
pub struct ActivityHub {
    inbox: Mutex<Vec<CoreBatch>>,
    memory: Mutex<HubMemory>,
    streams: Mutex<Vec<Arc<StreamQueue>>>,
    /// The number of `streams`.
    open: AtomicUsize,
}

/// What the hub remembers.
#[derive(Debug)]
struct HubMemory {
    /// The requests since the last tick.
    actions: [u64; ActionClass::COUNT],
    /// The latencies since the last tick.
    latency: LatencyBuckets,
    window: LatencyWindow,
    totals: PreviousTotals,
    decisions: DecisionRing,
    keys: HotKeys,
    bans: BanLedger,
    history: History,
    markers: MarkerLog,
    latest: Option<(Arc<Tick>, Arc<str>)>,
    /// The time since bans that have ended were forgotten.
    swept: Duration,
}

/// The decisions of all cores since the previous call of [`ActivityHub::collect`].
#[derive(Debug, Default)]
struct ShownDecisions {
    decisions: Vec<DecisionRecord>,
    missed: Vec<MissedDecisions>,
}

/// An open event stream. It ends when this is dropped.
#[derive(Debug)]
pub struct ActivityStream {
    hub: Arc<ActivityHub>,
    queue: Arc<StreamQueue>,
}

// === impl ActivityHub ===

impl ActivityHub {
    /// Creates a hub. `max_bans` is the number of bans that the store can hold.
    pub fn new(max_bans: usize) -> Self {
        Self {
            inbox: Mutex::default(),
            memory: Mutex::new(HubMemory::new(max_bans)),
            streams: Mutex::default(),
            open: AtomicUsize::new(0),
        }
    }

    /// Returns whether a stream is open.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the inbox has space.
    pub(super) fn has_space(&self) -> bool {
        self.inbox.lock().len() < MAX_INBOX
    }

    /// Takes a batch of a core.
    pub(super) fn give(&self, batch: CoreBatch) {
        self.inbox.lock().push(batch);
    }

    /// Merges the batches of the cores, and queues decisions for the streams. `elapsed` is the time since the
    /// previous call.
    pub fn collect(&self, now: Timestamp, elapsed: Duration) {
        let mut batches = std::mem::take(&mut *self.inbox.lock());
        let mut shown = ShownDecisions::default();
        batches.iter_mut().for_each(|batch| shown.add(batch));
        self.show(&shown, elapsed);
        let mut memory = self.memory.lock();
        let markers = batches
            .into_iter()
            .flat_map(|batch| memory.merge(batch, now));
        let markers: Vec<Marker> = markers.collect();
        memory.remember(shown.decisions);
        drop(memory);
        markers.into_iter().for_each(|marker| self.mark(marker));
    }

    /// Makes a tick, and queues it for the streams. Called every second, after [`ActivityHub::collect`].
    pub fn tick(&self, input: &TickInput) {
        let json = self.memory.lock().tick(input);
        for stream in self.streams.lock().iter() {
            stream.tick(json.clone());
        }
    }

    /// Adds a marker and queues it for the streams.
    pub fn mark(&self, marker: Marker) {
        let json: Arc<str> = marker.to_json().into();
        self.memory.lock().markers.push(marker);
        for stream in self.streams.lock().iter() {
            stream.mark(json.clone());
        }
    }

    /// Removes what is remembered about all rules except `rules`. Decisions and markers stay, as in a log.
    pub fn keep_rules(&self, rules: &[(RuleId, &str)]) {
        let (ids, names): (Vec<_>, Vec<_>) = rules.iter().copied().unzip();
        let mut memory = self.memory.lock();
        memory.keys.keep_rules(&ids);
        memory.bans.keep_rules(&ids);
        memory.history.keep_rules(&names);
        memory.markers.keep_rules(&names);
    }

    /// Queues decisions for the streams. Each decision is serialized once.
    fn show(&self, shown: &ShownDecisions, elapsed: Duration) {
        let streams = self.streams.lock().clone();
        if streams.is_empty() {
            return;
        }
        let decisions = &shown.decisions;
        let mut texts: Vec<Option<Arc<str>>> = vec![None; decisions.len()];
        let mut json = |index: usize| {
            let decision = decisions.get(index);
            let text = || decision.map_or_else(String::new, DecisionRecord::to_json);
            match texts.get_mut(index) {
                Some(known) => known.get_or_insert_with(|| text().into()).clone(),
                None => Arc::default(),
            }
        };
        for stream in streams {
            stream.decide(decisions, &shown.missed, elapsed, &mut json);
        }
    }
}

/// The questions of the admin API.
impl ActivityHub {
    /// Returns the newest tick. `None` in the first second.
    pub fn latest_tick(&self) -> Option<Arc<Tick>> {
        let memory = self.memory.lock();
        memory.latest.as_ref().map(|(tick, _)| tick.clone())
    }

    /// Returns the newest tick as JSON. `None` in the first second.
    pub fn latest_tick_json(&self) -> Option<Arc<str>> {
        let memory = self.memory.lock();
        memory.latest.as_ref().map(|(_, json)| json.clone())
    }

    /// Returns the last `seconds` seconds, at most 15 minutes, and the markers.
    pub fn history(&self, seconds: u64, now: Timestamp) -> (HistoryView, Vec<Marker>) {
        let memory = self.memory.lock();
        (memory.history.view(seconds, now), memory.markers.all())
    }

    /// Returns the requests per second that a rule mitigated in each step of the first quarter of the history.
    pub fn first_quarter(&self, rule: &str) -> Vec<f32> {
        self.memory.lock().history.first_quarter(rule)
    }

    /// Opens a stream with the decisions that `filter` selects. It starts with the newest tick.
    pub fn subscribe(self: &Arc<Self>, filter: DecisionFilter) -> ActivityStream {
        let queue = Arc::new(StreamQueue::new(filter, self.latest_tick_json()));
        let mut streams = self.streams.lock();
        streams.push(queue.clone());
        self.open.store(streams.len(), Ordering::Relaxed);
        let hub = self.clone();
        ActivityStream { hub, queue }
    }

    /// Returns the decisions about a client.
    pub fn decisions(&self, query: &ClientQuery) -> ClientDecisions {
        self.memory.lock().decisions.of_client(query)
    }

    /// Returns the decision about the request with this id. `None` if no rule acted on it, if an equal decision
    /// stands for it, or if it is too old.
    pub fn decision_by_id(&self, id: &str) -> Option<DecisionRecord> {
        self.memory.lock().decisions.by_id(id).cloned()
    }

    /// Returns the hottest keys of a rule, hottest first, at most `most`.
    pub fn hottest(&self, rule: RuleId, most: usize) -> Vec<HotKey> {
        self.memory.lock().keys.hottest(rule, most)
    }

    /// Returns what this node knows about a ban. `None` if it knows nothing.
    pub fn ban_figures(&self, id: BanId) -> Option<BanFigures> {
        self.memory.lock().bans.get(id).cloned()
    }

    /// Returns the bans that this node has started and that have mitigated at most `most` requests.
    pub fn quiet_bans(&self, most: u64) -> HashSet<BanId> {
        self.memory.lock().bans.quiet(most)
    }

    /// Forgets a ban that was ended, and returns its figures. [`ActivityHub::restore_ban`] restores them.
    pub fn forget_ban(&self, id: BanId) -> Option<BanFigures> {
        self.memory.lock().bans.remove(id)
    }

    /// Restores the figures of a ban that was forgotten, as far as they are still known.
    pub fn restore_ban(&self, id: BanId, until: Timestamp) {
        self.memory.lock().bans.restore(id, until);
    }
}

// === impl HubMemory ===

impl HubMemory {
    fn new(max_bans: usize) -> Self {
        Self {
            actions: [0; ActionClass::COUNT],
            latency: LatencyBuckets::default(),
            window: LatencyWindow::default(),
            totals: PreviousTotals::default(),
            decisions: DecisionRing::default(),
            keys: HotKeys::default(),
            bans: BanLedger::new(max_bans),
            history: History::default(),
            markers: MarkerLog::default(),
            latest: None,
            swept: Duration::ZERO,
        }
    }

    /// Merges a batch of a core and returns the markers that its bans are worth.
    fn merge(&mut self, batch: CoreBatch, now: Timestamp) -> Vec<Marker> {
        for (all, more) in self.actions.iter_mut().zip(batch.actions) {
            *all += more;
        }
        self.latency.add(&batch.latency);
        self.keys.add(&batch.keys);
        batch
            .starts
            .into_iter()
            .for_each(|ban| self.bans.start(ban));
        batch.bans.values().for_each(|hits| self.bans.add(hits));
        let started = batch.started.iter();
        let mark = |(rule, bans): &(Arc<str>, u32)| self.markers.count_bans(rule, *bans, now);
        started.filter_map(mark).collect()
    }

    /// Keeps the decisions in which a rule acted.
    fn remember(&mut self, decisions: Vec<DecisionRecord>) {
        for decision in decisions.into_iter().filter(|one| one.rule.is_some()) {
            self.decisions.push(decision);
        }
    }

    fn tick(&mut self, input: &TickInput) -> Arc<str> {
        let actions = std::mem::take(&mut self.actions);
        self.window.push(std::mem::take(&mut self.latency));
        let (rules, steps) = self.totals.advance(input);
        self.history.add(&actions, &steps, input.elapsed);
        self.keys.decay(input.elapsed);
        self.swept += input.elapsed;
        if self.swept >= SWEEP {
            self.swept = Duration::ZERO;
            self.bans.remove_ended(input.now);
        }
        let seconds = input.elapsed.as_secs_f64().max(0.001);
        let tick = Tick {
            ts: input.now,
            actions_per_s: actions.map(|count| count as f64 / seconds),
            latency: self.window.percentiles(),
            connections: input.connections,
            rules,
        };
        let json: Arc<str> = tick.to_json().into();
        self.latest = Some((Arc::new(tick), json.clone()));
        json
    }
}

// === impl ShownDecisions ===

impl ShownDecisions {
    /// Takes the decisions of a batch, and counts the forwarded requests that are not among them.
    fn add(&mut self, batch: &mut CoreBatch) {
        let is_forwarded = |one: &&DecisionRecord| one.rule.is_none() || one.dry_run;
        let forwarded = batch.decisions.iter().filter(is_forwarded);
        let shown: u64 = forwarded.map(|one| u64::from(one.repeat)).sum();
        let all = batch.actions.get(ActionClass::Forward.index());
        self.missed.push(MissedDecisions {
            rule: None,
            action: ActionClass::Forward.name(),
            count: all.map_or(0, |all| all.saturating_sub(shown)),
        });
        self.missed.append(&mut batch.missed);
        self.decisions.append(&mut batch.decisions);
    }
}

// === impl ActivityStream ===

impl ActivityStream {
    /// Waits for the next events.
    pub async fn next(&self) -> StreamEvents {
        self.queue.next().await
    }

    /// Returns the waiting events. `None` if there are none.
    pub fn take(&self) -> Option<StreamEvents> {
        self.queue.take()
    }
}

impl Drop for ActivityStream {
    fn drop(&mut self) {
        let mut streams = self.hub.streams.lock();
        streams.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
        self.hub.open.store(streams.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
