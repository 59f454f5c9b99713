//! The keys that one core has counted since its last batch, and the sampler that bounds their number.
//!
//! A request only appends the bytes of its keys. Up to [`BUDGET`] requests per second are all recorded; above it, one
//! of `n` is, with the weight `n`. The gaps between recorded requests are random, so that traffic with a period of
//! its own is sampled fairly.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::rules::{Plan, PlanResult, RuleId};

/// The number of requests that a core records per second, after it has adapted to the traffic.
const BUDGET: u32 = 2048;
/// The maximum number of keys in one batch. Further ones are lost until the sampler has adapted.
const MAX_HITS: usize = 16_384;
/// The maximum number of bytes of keys in one batch.
const MAX_BYTES: usize = 1 << 20;
/// The maximum length of a recorded key. A longer one is cut, and then stands for all keys with this start.
pub(super) const MAX_KEY: usize = 1024;
/// The number of sample requests that a core records per second.
const SAMPLES: u32 = 16;

/// Keys that one core has counted.
#[derive(Debug, Default)]
pub(super) struct KeyHits {
    hits: Vec<KeyHit>,
    /// The bytes of all keys, one after the other.
    keys: Vec<u8>,
    /// Requests of some of the keys, as JSON.
    samples: Vec<Arc<str>>,
    /// The number of recorded requests.
    requests: u32,
}

/// One key that was counted.
#[derive(Debug)]
struct KeyHit {
    rule: RuleId,
    /// The end of its bytes; they start where those of the previous one end.
    end: u32,
    /// The number of requests that it stands for.
    weight: u32,
    /// The number of samples before and including its own, if it has one. 0 if it has none.
    sample: u32,
}

/// A key that was counted, with the request if that was sampled.
#[derive(Debug)]
pub(super) struct CountedKey<'a> {
    pub(super) rule: RuleId,
    pub(super) key: &'a [u8],
    pub(super) weight: u32,
    pub(super) sample: Option<&'a Arc<str>>,
}

/// Chooses the requests whose keys are recorded.
#[derive(Debug)]
pub(super) struct KeySampler {
    /// One of this many requests is recorded.
    rate: Cell<u32>,
    /// The number of requests until the next one is recorded.
    gap: Cell<u32>,
    /// The mean number of recorded requests from one sample to the next.
    sample_rate: Cell<u32>,
    /// The number of recorded requests until the next one becomes a sample.
    sample_gap: Cell<u32>,
    /// The state of [`KeySampler::draw`], never zero.
    random: Cell<u32>,
}

// === impl KeyHits ===

impl KeyHits {
    /// Starts a batch with space for about as many keys as `previous` has, so that it is not copied while it grows.
    pub(super) fn after(previous: &Self) -> Self {
        Self {
            hits: Vec::with_capacity(previous.hits.len() * 5 / 4),
            keys: Vec::with_capacity(previous.keys.len() * 5 / 4),
            ..Self::default()
        }
    }

    /// Records the keys that `plan` counts, up to the step that ended evaluation. A key is also recorded if the request
    /// was refused and therefore not charged. With `is_sample`, [`KeyHits::add_sample`] must follow.
    #[inline]
    pub(super) fn record(
        &mut self,
        plan: &Plan,
        result: &PlanResult,
        weight: u32,
        is_sample: bool,
    ) {
        self.requests = self.requests.saturating_add(1);
        let sample = if is_sample {
            self.samples.len() as u32 + 1
        } else {
            0
        };
        let end = plan.ending_step(result).map(usize::from);
        let reached = end.and_then(|end| plan.steps.get(..=end));
        for step in reached.unwrap_or(&plan.steps) {
            if !step.op.counts() || step.candidate || step.only_total {
                continue;
            }
            let key = plan.key(step);
            let key = key.get(..MAX_KEY).unwrap_or(key);
            if self.hits.len() >= MAX_HITS || self.keys.len() + key.len() > MAX_BYTES {
                return;
            }
            self.keys.extend_from_slice(key);
            self.hits.push(KeyHit {
                rule: step.id,
                end: self.keys.len() as u32,
                weight,
                sample,
            });
        }
    }

    /// Adds the request that was recorded last as a sample.
    pub(super) fn add_sample(&mut self, sample: Arc<str>) {
        self.samples.push(sample);
    }

    /// Returns the recorded keys, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = CountedKey<'_>> {
        let mut start = 0;
        self.hits.iter().map(move |hit| {
            let end = hit.end as usize;
            let key = self.keys.get(start..end).unwrap_or_default();
            start = end;
            let sample = (hit.sample as usize).checked_sub(1);
            CountedKey {
                rule: hit.rule,
                key,
                weight: hit.weight,
                sample: sample.and_then(|index| self.samples.get(index)),
            }
        })
    }
}

// === impl KeySampler ===

impl KeySampler {
    /// Creates a sampler that records every request at first.
    pub(super) fn new(random: u32) -> Self {
        Self {
            rate: Cell::new(1),
            gap: Cell::new(1),
            sample_rate: Cell::new(1),
            sample_gap: Cell::new(1),
            random: Cell::new(random | 1),
        }
    }

    /// Returns whether the next request is recorded.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        let gap = self.gap.get();
        self.gap.set(gap.saturating_sub(1));
        gap <= 1
    }

    /// Returns the weight of the request that is due, and chooses the next one.
    pub(super) fn weight(&self, recorded: &KeyHits) -> u32 {
        // A flood that starts between two batches must not fill the batch.
        if recorded.requests > 0 && recorded.requests.is_multiple_of(BUDGET) {
            self.rate.set(self.rate.get().saturating_mul(2));
        }
        let rate = self.rate.get();
        self.gap.set(self.draw_gap(rate));
        rate
    }

    /// Returns whether the request that is due becomes a sample, and chooses the next one.
    pub(super) fn is_sample(&self, recorded: &KeyHits) -> bool {
        let gap = self.sample_gap.get();
        if gap > 1 {
            self.sample_gap.set(gap - 1);
            return false;
        }
        self.sample_gap.set(self.draw_gap(self.sample_rate.get()));
        recorded.samples.len() < SAMPLES as usize
    }

    /// Adapts to the traffic of the last batch, which was recorded over `elapsed`.
    pub(super) fn adapt(&self, recorded: &KeyHits, elapsed: Duration) {
        let millis = u64::try_from(elapsed.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let requests = u64::from(recorded.requests) * u64::from(self.rate.get());
        let per_second = requests.saturating_mul(1000) / millis;
        let rate = per_second.div_ceil(BUDGET.into()).max(1);
        self.rate.set(u32::try_from(rate).unwrap_or(u32::MAX));
        self.gap.set(1);
        let recorded = u64::from(recorded.requests).saturating_mul(1000) / millis;
        let spacing = u32::try_from(recorded / u64::from(SAMPLES)).unwrap_or(u32::MAX);
        self.sample_rate.set(spacing.max(1));
        self.sample_gap.set(self.draw_gap(spacing.max(1)));
    }

    /// Returns a random gap with the mean `mean`.
    fn draw_gap(&self, mean: u32) -> u32 {
        if mean <= 1 {
            return 1;
        }
        1 + self.draw() % mean.saturating_mul(2).saturating_sub(1)
    }

    /// Returns a random number. xorshift32: sampling needs no better one.
    fn draw(&self) -> u32 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        self.random.set(state);
        state
    }
}

#[cfg(test)]
pub(super) mod tests;
