//! A fleet in simulated time: requests, flushes, merges in the store and their replies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lockgate::clock::Timestamp;
use lockgate::limit::Limiter;
use lockgate::store::async_mode::{FleetInfo, FleetRecord, FleetView, KeyReport, ReportTiming};

use crate::load::{Random, ZipfKeys, mix};
use crate::policy::{Circumstances, Design, KeyPolicy};
use crate::score::{BoundIntervals, KeyScore};

/// Keys per call of the store.
const BATCH: usize = 64;
/// 2026-01-01 00:00:13 UTC, so that a window ends during the simulation.
const START: u64 = 1_767_225_613 * 1_000_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub design: Design,
    pub limiter: Limiter,
    pub fleet: FleetInfo,
    /// The round trip to the store, in microseconds.
    pub round_trip: u64,
    /// The largest cost; costs are 1 to this number.
    pub largest_cost: u64,
    /// Requests per second of the whole fleet.
    pub rate: f64,
    pub keys: usize,
    pub seconds: u64,
}

/// What happened.
pub struct Outcome {
    pub keys: Vec<KeyScore>,
    pub calls: u64,
    pub merges: u64,
    pub events: u64,
}

/// Something that happens at a point in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Occurrence {
    RegularFlush(usize),
    ImmediateFlush(usize),
    Merge(usize),
    Reply(usize),
}

/// A gateway.
#[derive(Default)]
struct Node {
    /// The keys to report.
    queue: Vec<usize>,
    /// The number of events that the node has read.
    events_read: usize,
    last_immediate: u64,
    is_flush_scheduled: bool,
}

/// A key on a node.
struct NodeKey {
    policy: KeyPolicy,
    queued: ReportTiming,
    /// The number of the key's events that the node has applied.
    events_applied: usize,
}

/// A key in the store.
struct StoredKey {
    record: FleetRecord,
    /// The events, with their number among the events of all keys.
    events: Vec<(usize, FleetView)>,
}

/// A call of the store.
struct Call {
    node: usize,
    reports: Vec<(usize, KeyReport)>,
    views: Vec<FleetView>,
    events_read: usize,
}

struct Simulation {
    scenario: Scenario,
    random: Random,
    nodes: Vec<Node>,
    /// The index in `node_keys` plus 1 of each node and key, or 0.
    index: Vec<u32>,
    node_keys: Vec<NodeKey>,
    store: Vec<StoredKey>,
    scores: Vec<KeyScore>,
    intervals: BoundIntervals,
    queue: BinaryHeap<Reverse<(u64, u64, Occurrence)>>,
    scheduled: u64,
    in_flight: Vec<Option<Call>>,
    free: Vec<usize>,
    events: usize,
    calls: u64,
    merges: u64,
}

/// Runs `scenario` with random numbers from `seed`.
pub fn run(scenario: &Scenario, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(*scenario, seed);
    let zipf = ZipfKeys::new(scenario.keys);
    let mut load = Random::new(mix(seed));
    let end = START + scenario.seconds * 1_000_000;
    let mut next = START;
    while next < end {
        simulation.run_until(next);
        let key = zipf.draw(&mut load);
        let node = load.below(simulation.nodes.len() as u64) as usize;
        let cost = 1 + load.below(scenario.largest_cost);
        simulation.request(next, node, key, cost);
        next += load.wait(1e6 / scenario.rate);
    }
    Outcome {
        keys: simulation.scores,
        calls: simulation.calls,
        merges: simulation.merges,
        events: simulation.events as u64,
    }
}

/// The intervals of the bound in `scenario`.
pub fn intervals(scenario: &Scenario) -> BoundIntervals {
    let Scenario {
        fleet,
        limiter,
        round_trip,
        ..
    } = scenario;
    let micros = |duration: std::time::Duration| duration.as_micros() as u64;
    BoundIntervals {
        event: micros(fleet.event_interval(limiter)),
        report: micros(fleet.gap()) + round_trip,
    }
}

// === impl Simulation ===

impl Simulation {
    fn new(scenario: Scenario, seed: u64) -> Self {
        let Scenario {
            limiter,
            fleet,
            keys,
            ..
        } = scenario;
        let nodes = fleet.nodes as usize;
        let mut simulation = Self {
            scenario,
            random: Random::new(seed),
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            index: vec![0; nodes * keys],
            node_keys: Vec::new(),
            store: (0..keys).map(|_| StoredKey::new(&limiter)).collect(),
            scores: (0..keys).map(|_| KeyScore::new(&limiter)).collect(),
            intervals: intervals(&scenario),
            queue: BinaryHeap::new(),
            scheduled: 0,
            in_flight: Vec::new(),
            free: Vec::new(),
            events: 0,
            calls: 0,
            merges: 0,
        };
        if scenario.design != Design::Divided {
            for node in 0..nodes {
                let phase = simulation.random.below(simulation.sync_interval());
                simulation.schedule(START + phase, Occurrence::RegularFlush(node));
            }
        }
        simulation
    }

    fn sync_interval(&self) -> u64 {
        self.scenario.fleet.sync_interval.as_micros() as u64
    }

    fn schedule(&mut self, time: u64, occurrence: Occurrence) {
        self.scheduled += 1;
        self.queue.push(Reverse((time, self.scheduled, occurrence)));
    }

    fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((now, _, occurrence))) = self.queue.peek()
            && now <= end
        {
            self.queue.pop();
            match occurrence {
                Occurrence::RegularFlush(node) => self.regular_flush(now, node),
                Occurrence::ImmediateFlush(node) => self.immediate_flush(now, node),
                Occurrence::Merge(call) => self.merge(now, call),
                Occurrence::Reply(call) => self.reply(now, call),
            }
        }
    }

    fn request(&mut self, now: u64, node: usize, key: usize, cost: u64) {
        let draw = self.random.unit();
        let scenario = self.scenario;
        let state = self.touch(node, key);
        let (admitted, report) = state.policy.decide(scenario.at(now), cost, draw);
        let queued = state.queued;
        state.queued = queued.max(report);
        if report > ReportTiming::Later && queued == ReportTiming::Later {
            self.nodes[node].queue.push(key);
        }
        if report == ReportTiming::Immediately {
            self.schedule_immediate(now, node);
        }
        self.scores[key].add(&scenario.limiter, now, cost, admitted, &self.intervals);
    }

    /// The state of a key on a node, after the events that the node has read.
    fn touch(&mut self, node: usize, key: usize) -> &mut NodeKey {
        let scenario = self.scenario;
        let index = &mut self.index[node * scenario.keys + key];
        if *index == 0 {
            self.node_keys.push(NodeKey {
                policy: KeyPolicy::new(scenario.design, &scenario.limiter),
                queued: ReportTiming::Later,
                events_applied: 0,
            });
            *index = self.node_keys.len() as u32;
        }
        let state = &mut self.node_keys[*index as usize - 1];
        let read = self.nodes[node].events_read;
        let events = &self.store[key].events;
        let last = events.partition_point(|(number, _)| *number < read);
        if last > state.events_applied {
            // An event replaces the ones before it.
            let view = events[last - 1].1.clone();
            let at = scenario.at(view.at.as_micros());
            state.policy.learn(at, view);
            state.events_applied = last;
        }
        state
    }

    fn schedule_immediate(&mut self, now: u64, node: usize) {
        let gap = self.scenario.fleet.gap().as_micros() as u64;
        let state = &mut self.nodes[node];
        if !state.is_flush_scheduled {
            state.is_flush_scheduled = true;
            let time = now.max(state.last_immediate + gap);
            self.schedule(time, Occurrence::ImmediateFlush(node));
        }
    }

    fn regular_flush(&mut self, now: u64, node: usize) {
        let interval = self.sync_interval();
        self.schedule(now + interval, Occurrence::RegularFlush(node));
        let reports = self.take_reports(now, node, ReportTiming::NextFlush);
        // Each regular flush reads the events, also without a report.
        if self.scenario.design == Design::Async || !reports.is_empty() {
            self.send(now, node, reports);
        }
    }

    fn immediate_flush(&mut self, now: u64, node: usize) {
        self.nodes[node].is_flush_scheduled = false;
        self.nodes[node].last_immediate = now;
        let reports = self.take_reports(now, node, ReportTiming::Immediately);
        if !reports.is_empty() {
            self.send(now, node, reports);
        }
    }

    /// The reports of all queued keys that are due and have none in flight.
    fn take_reports(
        &mut self,
        now: u64,
        node: usize,
        least: ReportTiming,
    ) -> Vec<(usize, KeyReport)> {
        let at_now = self.scenario;
        let mut reports = Vec::new();
        let mut later = Vec::new();
        for key in std::mem::take(&mut self.nodes[node].queue) {
            let state = self.touch(node, key);
            let is_due = state.queued >= least;
            let report = is_due
                .then(|| state.policy.take_report(at_now.at(now)))
                .flatten();
            if let Some(report) = report {
                state.queued = ReportTiming::Later;
                reports.push((key, report));
            } else {
                later.push(key);
            }
        }
        self.nodes[node].queue = later;
        reports
    }

    fn send(&mut self, now: u64, node: usize, reports: Vec<(usize, KeyReport)>) {
        self.calls += reports.len().div_ceil(BATCH).max(1) as u64;
        self.merges += reports.len() as u64;
        let call = Call {
            node,
            reports,
            views: Vec::new(),
            events_read: 0,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[slot] = Some(call);
        self.schedule(now + self.scenario.round_trip / 2, Occurrence::Merge(slot));
    }

    fn merge(&mut self, now: u64, slot: usize) {
        let Scenario { limiter, fleet, .. } = self.scenario;
        let Some(call) = &mut self.in_flight[slot] else {
            return;
        };
        let (at, node) = (Timestamp::from_micros(now), mix(call.node as u64 + 1));
        for (key, report) in &call.reports {
            let stored = &mut self.store[*key];
            let merged = stored.record.merge(&limiter, at, *report, node, &fleet);
            if merged.is_announced && self.scenario.design == Design::Async {
                stored.events.push((self.events, merged.view.clone()));
                self.events += 1;
            }
            call.views.push(merged.view);
        }
        call.events_read = self.events;
        self.schedule(now + self.scenario.round_trip / 2, Occurrence::Reply(slot));
    }

    fn reply(&mut self, now: u64, slot: usize) {
        let Some(call) = self.in_flight[slot].take() else {
            return;
        };
        self.free.push(slot);
        let scenario = self.scenario;
        let mut is_immediate = false;
        for ((key, _), view) in call.reports.iter().zip(call.views) {
            let state = self.touch(call.node, *key);
            state.policy.confirm(scenario.at(now), view);
            is_immediate |= state.queued == ReportTiming::Immediately;
        }
        let node = &mut self.nodes[call.node];
        node.events_read = node.events_read.max(call.events_read);
        if is_immediate {
            self.schedule_immediate(now, call.node);
        }
    }
}

// === impl Scenario ===

impl Scenario {
    fn at(&self, now: u64) -> Circumstances<'_> {
        Circumstances {
            limiter: &self.limiter,
            fleet: &self.fleet,
            now: Timestamp::from_micros(now),
        }
    }
}

// === impl StoredKey ===

impl StoredKey {
    fn new(limiter: &Limiter) -> Self {
        Self {
            record: FleetRecord::new(limiter),
            events: Vec::new(),
        }
    }
}
