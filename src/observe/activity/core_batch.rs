//! What one core has recorded since its last batch. Every part is bounded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::action_class::ActionClass;
use super::ban_figures::AddressSet;
use super::decision_record::DecisionRecord;
use super::key_hits::KeyHits;
use super::latency::LatencyBuckets;
use crate::clock::Timestamp;
use crate::rules::{PrehashedKeys, RuleId};

/// The maximum number of different decisions in a batch. Further ones are only counted.
const MAX_DECISIONS: usize = 512;
/// The maximum number of forwarded requests that a batch shows as a sample.
const MAX_FORWARDED: u32 = 8;
/// The maximum number of rules and actions whose decisions are counted separately when they do not fit.
const MAX_MISSED: usize = 64;
/// The maximum number of bans in a batch. A core hands over a full batch at once.
const MAX_BANS: usize = 16_384;
/// The maximum number of new bans in a batch with a cause. Further ones are only counted.
const MAX_STARTS: usize = 1024;

/// What one core has recorded since its last batch.
#[derive(Debug, Default)]
pub struct CoreBatch {
    /// The number of requests of each class.
    pub(super) actions: [u64; ActionClass::COUNT],
    /// The latencies of forwarded requests.
    pub(super) latency: LatencyBuckets,
    /// The decisions in which a rule acted, and a sample of forwarded requests.
    pub(super) decisions: Vec<DecisionRecord>,
    /// The decisions that did not fit.
    pub(super) missed: Vec<MissedDecisions>,
    /// The keys that were counted.
    pub(super) keys: KeyHits,
    /// The bans that mitigated a request, by a hash.
    pub(super) bans: HashMap<u64, BanHits, PrehashedKeys>,
    /// The new bans with a cause.
    pub(super) starts: Vec<BanStart>,
    /// The number of new bans of each rule.
    pub(super) started: Vec<(Arc<str>, u32)>,
    /// The positions in `decisions`, by a hash.
    positions: HashMap<u64, usize, PrehashedKeys>,
    /// The number of forwarded requests in `decisions`.
    forwarded: u32,
    /// When the batch was started. `None` for the first batch.
    pub(super) since: Option<Instant>,
}

/// Decisions that are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissedDecisions {
    /// The rule. `None` if several rules share the entry.
    pub(super) rule: Option<Arc<str>>,
    /// The action.
    pub(super) action: &'static str,
    /// The number of decisions.
    pub(super) count: u64,
}

/// The requests that a ban has mitigated.
#[derive(Clone, Debug)]
pub struct BanHits {
    /// The rule.
    pub rule: RuleId,
    /// The bytes of the key.
    pub key: Box<[u8]>,
    /// When the ban ends.
    pub until: Timestamp,
    /// The number of requests.
    pub mitigated: u64,
    /// When the newest of them arrived.
    pub last_seen: Timestamp,
    /// The client addresses.
    pub(super) addresses: AddressSet,
}

/// A new ban.
#[derive(Clone, Debug)]
pub struct BanStart {
    /// The rule.
    pub rule: RuleId,
    /// The name of the rule.
    pub name: Arc<str>,
    /// The bytes of the key.
    pub key: Box<[u8]>,
    /// When the ban ends.
    pub until: Timestamp,
    /// Why the ban started.
    pub cause: Box<str>,
}

// === impl CoreBatch ===

impl CoreBatch {
    /// Starts the batch after `previous` at `now`.
    pub(super) fn after(previous: &Self, now: Option<Instant>) -> Self {
        Self {
            keys: KeyHits::after(&previous.keys),
            since: now,
            ..Self::default()
        }
    }

    /// Counts a request.
    #[inline]
    pub(super) fn count(&mut self, class: ActionClass, latency: Option<Duration>) {
        if let Some(count) = self.actions.get_mut(class.index()) {
            *count += 1;
        }
        if let Some(latency) = latency {
            self.latency.record(latency);
        }
    }

    /// Adds a decision. Equal decisions, which have equal `digest`s, become one.
    pub(super) fn decide(
        &mut self,
        digest: u64,
        (rule, action): (&Arc<str>, &'static str),
        record: impl FnOnce() -> DecisionRecord,
    ) {
        let known = self.positions.get(&digest);
        if let Some(known) = known.and_then(|position| self.decisions.get_mut(*position)) {
            known.repeat = known.repeat.saturating_add(1);
        } else if self.positions.len() < MAX_DECISIONS {
            self.positions.insert(digest, self.decisions.len());
            self.decisions.push(record());
        } else {
            self.miss(rule, action);
        }
    }

    /// Adds a forwarded request as a sample, unless the batch has enough of them.
    pub(super) fn sample_forwarded(&mut self, record: impl FnOnce() -> DecisionRecord) {
        if self.forwarded < MAX_FORWARDED {
            self.forwarded += 1;
            self.decisions.push(record());
        }
    }

    /// Counts a request that a ban has mitigated, and returns whether the batch is full.
    pub(super) fn hit_ban(
        &mut self,
        digest: u64,
        (rule, key): (RuleId, &[u8]),
        until: Timestamp,
        (now, client): (Timestamp, IpAddr),
    ) -> bool {
        if self.bans.len() >= MAX_BANS && !self.bans.contains_key(&digest) {
            return true;
        }
        let hits = self.bans.entry(digest).or_insert_with(|| BanHits {
            rule,
            key: key.into(),
            until,
            mitigated: 0,
            last_seen: now,
            addresses: AddressSet::default(),
        });
        hits.mitigated += 1;
        hits.until = until;
        hits.last_seen = hits.last_seen.max(now);
        hits.addresses.insert(client);
        self.bans.len() >= MAX_BANS
    }

    /// Adds a new ban of the rule `name`.
    pub(super) fn start_ban(&mut self, name: &Arc<str>, start: impl FnOnce() -> BanStart) {
        match self.started.iter_mut().find(|(rule, _)| rule == name) {
            Some((_, count)) => *count += 1,
            None => self.started.push((name.clone(), 1)),
        }
        if self.starts.len() < MAX_STARTS {
            self.starts.push(start());
        }
    }

    fn miss(&mut self, rule: &Arc<str>, action: &'static str) {
        let is_it = |one: &&mut MissedDecisions| {
            one.action == action && one.rule.as_ref().is_none_or(|name| Arc::ptr_eq(name, rule))
        };
        if let Some(known) = self.missed.iter_mut().find(is_it) {
            known.count += 1;
            return;
        }
        let rule = (self.missed.len() < MAX_MISSED).then(|| rule.clone());
        self.missed.push(MissedDecisions {
            rule,
            action,
            count: 1,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision_record::tests::blocked;
    use super::*;

    #[test]
    fn equal_decisions_become_one_and_a_flood_is_only_counted() {
        let mut batch = CoreBatch::default();
        let (flood, rare): (Arc<str>, Arc<str>) = ("flood".into(), "rare".into());
        let record = || blocked("flood", [192, 0, 2, 1]);
        for digest in 0..10_000 {
            batch.decide(digest, (&flood, "block"), record);
            batch.decide(7, (&flood, "block"), record);
        }
        batch.decide(20_000, (&rare, "shadow"), record);
        assert_eq!(batch.decisions.len(), MAX_DECISIONS);
        let repeats: u64 = batch.decisions.iter().map(|d| u64::from(d.repeat)).sum();
        let missed: Vec<_> = batch.missed.iter().map(|one| one.count).collect();
        assert_eq!(missed, [10_000 - MAX_DECISIONS as u64, 1]);
        assert_eq!(repeats + missed[0], 20_000);
    }

    #[test]
    fn missed_decisions_of_many_rules_share_an_entry() {
        let mut batch = CoreBatch::default();
        for n in 0..1000 {
            batch.miss(&n.to_string().into(), "block");
        }
        assert_eq!(batch.missed.len(), MAX_MISSED + 1);
        let last = batch.missed.last().unwrap();
        assert_eq!((last.rule.as_ref(), last.count), (None, 1000 - 64));
    }

    #[test]
    fn forwarded_requests_are_a_small_sample() {
        let mut batch = CoreBatch::default();
        (0..1000).for_each(|_| batch.sample_forwarded(|| blocked("a", [1; 4])));
        assert_eq!(batch.decisions.len(), MAX_FORWARDED as usize);
    }

    #[test]
    fn a_ban_counts_its_requests_and_says_when_the_batch_is_full() {
        let mut batch = CoreBatch::default();
        let (rule, now) = (RuleId::unregistered(1), Timestamp::from_secs(5));
        let until = now.plus(Duration::from_secs(60));
        let client = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..3 {
            assert!(!batch.hit_ban(1, (rule, b"k"), until, (now, client)));
        }
        assert_eq!(batch.bans[&1].mitigated, 3);
        let mut others = 2..MAX_BANS as u64 + 1;
        let is_full = others.any(|n| batch.hit_ban(n, (rule, b"k"), until, (now, client)));
        assert!(is_full);
        assert_eq!(others.next(), None, "the last one fills it");
    }
}
