//! What one core records about requests, without locks and without atomics that cores share.

use std::cell::RefCell;
use std::hash::Hasher;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use siphasher::sip::SipHasher13;

use super::action_class::ActionClass;
use super::activity_hub::ActivityHub;
use super::ban_figures::address_bits;
use super::core_batch::{BanStart, CoreBatch};
use super::decision_record::DecisionRecord;
use super::key_hits::KeySampler;
use crate::clock::Timestamp;
use crate::rules::{Plan, PlanResult, RuleId};

/// The time between two batches while no stream is open.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two batches while a stream is open.
const STREAM_INTERVAL: Duration = Duration::from_millis(200);

/// What one core records about requests.
#[derive(Debug)]
pub struct CoreActivity {
    hub: Arc<ActivityHub>,
    batch: RefCell<CoreBatch>,
    sampler: KeySampler,
    /// Hashes under a random key, so that no client can make two decisions look equal.
    hasher: SipHasher13,
}

/// The rule and the key that a request was decided by, and the client.
#[derive(Clone, Copy, Debug)]
pub struct DecidedKey<'a> {
    /// The hash of the rule and the key.
    pub hash: RuleKeyHash,
    /// The name of the rule.
    pub name: &'a Arc<str>,
    /// The action of the rule.
    pub action: &'static str,
    /// The client address.
    pub client: IpAddr,
}

/// The hash of a rule and a key, under a secret of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleKeyHash(u64);

// === impl CoreActivity ===

impl CoreActivity {
    /// Creates the recorder of a core.
    pub fn new(hub: Arc<ActivityHub>) -> Self {
        let draw = || getrandom::u64().unwrap_or_default();
        Self {
            hub,
            batch: RefCell::default(),
            sampler: KeySampler::new(draw() as u32),
            hasher: SipHasher13::new_with_keys(draw(), draw()),
        }
    }

    /// Counts a request. `latency` is that of a forwarded request, without the time that rules held it.
    #[inline]
    pub fn count(&self, class: ActionClass, latency: Option<Duration>) {
        // Also called during a panic, possibly while the batch is borrowed.
        if let Ok(mut batch) = self.batch.try_borrow_mut() {
            batch.count(class, latency);
        }
    }

    /// Records the keys that `plan` counts, of all requests or of a sample. `result` is empty if it is not known yet.
    /// `sample` is called for few requests, and returns the request as JSON.
    #[inline]
    pub fn count_keys(&self, plan: &Plan, result: &PlanResult, sample: impl FnOnce() -> Arc<str>) {
        if !plan.steps.is_empty()
            && self.sampler.is_due()
            && self.record_keys(plan, result)
            && let Ok(mut batch) = self.batch.try_borrow_mut()
        {
            batch.keys.add_sample(sample());
        }
    }

    /// Records the keys of a request that is due, and returns whether the request becomes a sample.
    #[inline(never)]
    fn record_keys(&self, plan: &Plan, result: &PlanResult) -> bool {
        if !plan.steps.iter().any(|step| step.op.counts()) {
            return false;
        }
        let Ok(mut batch) = self.batch.try_borrow_mut() else {
            return false;
        };
        let keys = &mut batch.keys;
        let weight = self.sampler.weight(keys);
        let is_sample = self.sampler.is_sample(keys);
        keys.record(plan, result, weight, is_sample);
        is_sample
    }

    /// Hashes a key of a rule, to record bans and decisions by.
    #[inline]
    pub fn hash_key(&self, rule: RuleId, key: &[u8]) -> RuleKeyHash {
        let mut hasher = self.hasher;
        hasher.write_u64(rule.identity);
        RuleKeyHash(hasher.hash(key))
    }

    /// Records the decision of a rule. `record` is called unless an equal decision was recorded shortly before, or too
    /// many were.
    pub fn decide(
        &self,
        by: &DecidedKey<'_>,
        (path, status): (&[u8], u16),
        record: impl FnOnce() -> DecisionRecord,
    ) {
        let address = address_bits(by.client);
        let mut hasher = self.hasher;
        // Each number has 64 bits: the hasher is slow between two words.
        hasher.write_u64(by.hash.0);
        hasher.write_u64((address >> 64) as u64);
        hasher.write_u64(address as u64);
        hasher.write_u64(status.into());
        if let Ok(mut batch) = self.batch.try_borrow_mut() {
            batch.decide(hasher.hash(path), (by.name, by.action), record);
        }
    }

    /// Returns whether someone watches decisions, so that forwarded requests should be shown too.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.hub.is_watched()
    }

    /// Records a forwarded request as a sample. `record` is called if there are few of them.
    pub fn sample_forwarded(&self, record: impl FnOnce() -> DecisionRecord) {
        if let Ok(mut batch) = self.batch.try_borrow_mut() {
            batch.sample_forwarded(record);
        }
    }

    /// Counts a request that a ban mitigates. `hash` is that of the rule and the key. The ban ends at `until`.
    pub fn hit_ban(
        &self,
        hash: RuleKeyHash,
        by: (RuleId, &[u8]),
        until: Timestamp,
        (now, client): (Timestamp, IpAddr),
    ) {
        let is_full = match self.batch.try_borrow_mut() {
            Ok(mut batch) => batch.hit_ban(hash.0, by, until, (now, client)),
            Err(_) => false,
        };
        if is_full {
            self.hand_over(None);
        }
    }

    /// Records a new ban of the rule `name`. `start` is called unless there are very many.
    pub fn start_ban(&self, name: &Arc<str>, start: impl FnOnce() -> BanStart) {
        if let Ok(mut batch) = self.batch.try_borrow_mut() {
            batch.start_ban(name, start);
        }
    }

    /// Hands the batch to the hub and returns the time until the next one.
    pub fn flush(&self, now: Instant) -> Duration {
        self.hand_over(Some(now));
        if self.hub.is_watched() {
            STREAM_INTERVAL
        } else {
            USUAL_INTERVAL
        }
    }

    /// Hands the batch to the hub, and adapts the sampler if it is known that the batch has ended at `now`.
    fn hand_over(&self, now: Option<Instant>) {
        let Ok(mut batch) = self.batch.try_borrow_mut() else {
            return;
        };
        if !self.hub.has_space() {
            return;
        }
        let next = CoreBatch::after(&batch, now.or(batch.since));
        let batch = mem::replace(&mut *batch, next);
        if let Some((now, since)) = now.zip(batch.since) {
            self.sampler.adapt(&batch.keys, now - since);
        }
        self.hub.give(batch);
    }
}
