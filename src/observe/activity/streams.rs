//! The open event streams. Each has a queue of bounded length, so a slow reader only loses events.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::core_batch::MissedDecisions;
use super::decision_record::DecisionRecord;

/// The maximum number of decisions per second and stream.
const PER_SECOND: u32 = 20;
/// The maximum number of decisions that wait for a slow reader.
const MAX_WAITING: usize = 40;
/// The maximum number of markers that wait for a slow reader. The oldest ones are lost.
const MAX_MARKS: usize = 60;

/// Selects the decisions of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionFilter {
    /// Only decisions of this rule.
    pub rule: Option<String>,
    /// Only decisions with this action.
    pub action: Option<String>,
    /// Only decisions about this client.
    pub ip: Option<IpAddr>,
}

/// What a stream sends next, in this order: decisions, markers, the number of skipped decisions, the tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEvents {
    /// Decisions, as JSON.
    pub decisions: Vec<Arc<str>>,
    /// Markers, as JSON.
    pub marks: Vec<Arc<str>>,
    /// The number of decisions of the last second that match the filter and were not sent. 0 before a tick.
    pub skipped: u64,
    /// The newest tick, as JSON. `None` if it was sent before.
    pub tick: Option<Arc<str>>,
}

/// The queue of one stream.
#[derive(Debug)]
pub(super) struct StreamQueue {
    filter: DecisionFilter,
    waiting: Mutex<WaitingEvents>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct WaitingEvents {
    events: StreamEvents,
    /// The decisions that were not sent since the last tick.
    skipped: u64,
    /// The decisions that were queued since the last tick, by rule.
    sent: HashMap<Option<Arc<str>>, u32>,
    /// The number of decisions that may be queued until the next tick, so far.
    allowed: f64,
}

// === impl StreamQueue ===

impl StreamQueue {
    /// Creates a queue that starts with `tick`.
    pub(super) fn new(filter: DecisionFilter, tick: Option<Arc<str>>) -> Self {
        let queue = Self {
            filter,
            waiting: Mutex::default(),
            changed: Notify::new(),
        };
        if let Some(tick) = tick {
            queue.tick(tick);
        }
        queue
    }

    /// Waits for events.
    pub(super) async fn next(&self) -> StreamEvents {
        loop {
            if let Some(events) = self.take() {
                return events;
            }
            self.changed.notified().await;
        }
    }

    /// Takes the waiting events. `None` if there are none.
    pub(super) fn take(&self) -> Option<StreamEvents> {
        let mut waiting = self.waiting.lock();
        let has_events = waiting.events != StreamEvents::default();
        has_events.then(|| std::mem::take(&mut waiting.events))
    }

    /// Queues a tick, which replaces one that was not read, and starts a new second.
    pub(super) fn tick(&self, tick: Arc<str>) {
        let mut waiting = self.waiting.lock();
        waiting.events.skipped += std::mem::take(&mut waiting.skipped);
        waiting.events.tick = Some(tick);
        waiting.sent.clear();
        waiting.allowed = 0.0;
        self.changed.notify_one();
    }

    /// Queues a marker.
    pub(super) fn mark(&self, mark: Arc<str>) {
        let marks = &mut self.waiting.lock().events.marks;
        if marks.len() >= MAX_MARKS {
            marks.remove(0);
        }
        marks.push(mark);
        self.changed.notify_one();
    }

    /// Queues decisions of the time `elapsed`, as many as the stream may send, shared fairly between the rules.
    /// `json` returns the text of a decision by its index.
    pub(super) fn decide(
        &self,
        decisions: &[DecisionRecord],
        missed: &[MissedDecisions],
        elapsed: Duration,
        json: &mut dyn FnMut(usize) -> Arc<str>,
    ) {
        let mut waiting = self.waiting.lock();
        let more = f64::from(PER_SECOND) * elapsed.as_secs_f64();
        waiting.allowed = (waiting.allowed + more).min(f64::from(PER_SECOND));
        let mut rules: HashMap<&Option<Arc<str>>, VecDeque<usize>> = HashMap::new();
        for (index, decision) in decisions.iter().enumerate() {
            if self.filter.selects(decision) {
                rules.entry(&decision.rule).or_default().push_back(index);
                waiting.skipped += u64::from(decision.repeat);
            }
        }
        let missed = missed.iter().filter(|missed| self.filter.counts(missed));
        waiting.skipped += missed.map(|missed| missed.count).sum::<u64>();
        let chosen = waiting.choose(rules);
        for index in &chosen {
            let repeat = decisions.get(*index).map_or(0, |one| one.repeat);
            waiting.skipped -= u64::from(repeat);
            waiting.events.decisions.push(json(*index));
        }
        if !chosen.is_empty() {
            self.changed.notify_one();
        }
    }
}

// === impl WaitingEvents ===

impl WaitingEvents {
    /// Chooses the decisions to send, always from the rule that has sent the fewest in this second.
    fn choose(&mut self, mut rules: HashMap<&Option<Arc<str>>, VecDeque<usize>>) -> Vec<usize> {
        let mut chosen = Vec::new();
        while self.sent.values().sum::<u32>() < self.allowed.ceil() as u32
            && self.events.decisions.len() + chosen.len() < MAX_WAITING
        {
            let open = rules.iter_mut().filter(|(_, indices)| !indices.is_empty());
            let sent = |rule: &Option<Arc<str>>| self.sent.get(rule).copied().unwrap_or(0);
            // Forwarded requests come last: they are only a sample.
            let fewest = open.min_by_key(|(rule, _)| (sent(rule), rule.is_none()));
            let Some((rule, indices)) = fewest else { break };
            chosen.extend(indices.pop_front());
            *self.sent.entry((*rule).clone()).or_default() += 1;
        }
        chosen.sort_unstable();
        chosen
    }
}

// === impl DecisionFilter ===

impl DecisionFilter {
    fn selects(&self, decision: &DecisionRecord) -> bool {
        self.selects_kind(decision.rule.as_deref(), decision.action)
            && self.ip.is_none_or(|ip| ip == decision.client_ip)
    }

    /// Whether missed decisions match. Their addresses are unknown.
    fn counts(&self, missed: &MissedDecisions) -> bool {
        self.ip.is_none() && self.selects_kind(missed.rule.as_deref(), missed.action)
    }

    fn selects_kind(&self, rule: Option<&str>, action: &str) -> bool {
        let has_rule = self.rule.as_deref().is_none_or(|name| rule == Some(name));
        has_rule && self.action.as_deref().is_none_or(|name| name == action)
    }
}

#[cfg(test)]
mod tests;
