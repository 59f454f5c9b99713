//! The hottest keys of each rule, in a bounded summary (Space-Saving, merged in batches).
//!
//! A key with more than a 256th of the counted requests of its rule is always in the summary. Weights halve every
//! minute, so that keys without requests leave.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::key_hits::{KeyHits, MAX_KEY};
use crate::rules::RuleId;

/// The number of keys in the summary of a rule.
const CAPACITY: usize = 256;
/// The interval at which weights halve.
const HALF_LIFE: Duration = Duration::from_secs(60);
/// The number of samples of all rules together, as far as each rule has at least [`FEWEST_SAMPLES`].
const SAMPLES: usize = 8192;
const FEWEST_SAMPLES: usize = 8;
const MOST_SAMPLES: usize = 100;

/// The hottest keys of each rule.
#[derive(Debug, Default)]
pub(super) struct HotKeys {
    rules: HashMap<RuleId, KeySummary>,
    /// The time since the weights were halved.
    age: Duration,
}

/// A key of a rule, with an estimate of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// The bytes of the key, as in the plan; at most 1 KiB.
    pub key: Box<[u8]>,
    /// The estimated number of counted requests per second over the last minutes. Never too high.
    pub per_s: f64,
    /// One of the newest requests with this key: an `explain` request as JSON, redacted. `None` if none was sampled.
    pub sample: Option<Arc<str>>,
}

/// The summary of one rule.
#[derive(Debug, Default)]
struct KeySummary(HashMap<Box<[u8]>, KeyWeight>);

#[derive(Clone, Debug, Default)]
struct KeyWeight {
    /// The number of requests, and at most [`KeyWeight::error`] too many.
    weight: u64,
    error: u64,
    sample: Option<Arc<str>>,
}

/// The requests in one batch, by key.
type BatchWeights<'a> = HashMap<&'a [u8], KeyWeight>;

// === impl HotKeys ===

impl HotKeys {
    /// Adds the keys of a batch.
    pub(super) fn add(&mut self, hits: &KeyHits) {
        let mut batch: HashMap<RuleId, BatchWeights<'_>> = HashMap::new();
        for hit in hits.iter() {
            let keys = batch.entry(hit.rule).or_default();
            let key = keys.entry(hit.key).or_default();
            key.weight += u64::from(hit.weight);
            if hit.sample.is_some() {
                key.sample = hit.sample.cloned();
            }
        }
        let all = self.rules.len().max(batch.len()).max(1);
        let samples = (SAMPLES / all).clamp(FEWEST_SAMPLES, MOST_SAMPLES);
        for (rule, keys) in batch {
            self.rules.entry(rule).or_default().add(keys, samples);
        }
    }

    /// Halves the weights if they are due. `elapsed` is the time since the previous call.
    pub(super) fn decay(&mut self, elapsed: Duration) {
        self.age += elapsed;
        if self.age >= HALF_LIFE {
            self.age = Duration::ZERO;
            self.rules.values_mut().for_each(KeySummary::halve);
            self.rules.retain(|_, keys| !keys.0.is_empty());
        }
    }

    /// Returns the hottest keys of a rule, hottest first, at most `most`.
    pub(super) fn hottest(&self, rule: RuleId, most: usize) -> Vec<HotKey> {
        let keys = self.rules.get(&rule).map(|summary| &summary.0);
        let mut keys: Vec<_> = keys.into_iter().flatten().collect();
        keys.sort_unstable_by(|(a, x), (b, y)| y.certain().cmp(&x.certain()).then(a.cmp(b)));
        // In a steady state, a weight has the requests since it was halved, and half of twice a minute's.
        let seconds = (HALF_LIFE + self.age).as_secs_f64();
        let hot = keys.into_iter().take(most).map(|(key, weight)| HotKey {
            key: key.clone(),
            per_s: weight.certain() as f64 / seconds,
            sample: weight.sample.clone(),
        });
        hot.collect()
    }

    /// Removes the keys of all rules except `rules`.
    pub(super) fn keep_rules(&mut self, rules: &[RuleId]) {
        self.rules.retain(|rule, _| rules.contains(rule));
    }
}

// === impl HotKey ===

impl HotKey {
    /// Whether the bytes are those of the whole key.
    pub fn is_complete(&self) -> bool {
        self.key.len() < MAX_KEY
    }
}

// === impl KeySummary ===

impl KeySummary {
    fn add(&mut self, batch: BatchWeights<'_>, samples: usize) {
        let has_samples = batch.values().any(|key| key.sample.is_some());
        let mut fresh = Vec::new();
        for (key, added) in batch {
            match self.0.get_mut(key) {
                Some(known) => known.add(added),
                None => fresh.push((key, added)),
            }
        }
        // A key that is not in the summary may have had as many requests as the last one in it.
        let missed = if self.0.len() < CAPACITY {
            0
        } else {
            self.0.values().map(|key| key.weight).min().unwrap_or(0)
        };
        fresh.sort_unstable_by_key(|(_, key)| std::cmp::Reverse(key.weight));
        for (key, added) in fresh.into_iter().take(CAPACITY) {
            let weight = KeyWeight {
                weight: added.weight + missed,
                error: missed,
                ..added
            };
            self.0.insert(key.into(), weight);
        }
        self.shrink();
        if has_samples {
            self.drop_samples(samples);
        }
    }

    /// Removes the keys with the lowest weights until the summary has its size again.
    fn shrink(&mut self) {
        let Some(surplus) = self.0.len().checked_sub(CAPACITY).filter(|n| *n > 0) else {
            return;
        };
        let mut weights: Vec<u64> = self.0.values().map(|key| key.weight).collect();
        let (_, bound, _) = weights.select_nth_unstable(surplus - 1);
        let bound = *bound;
        let mut left = surplus;
        self.0.retain(|_, key| {
            let goes = left > 0 && key.weight <= bound;
            left -= usize::from(goes);
            !goes
        });
    }

    /// Drops the samples of all but the `most` hottest keys.
    fn drop_samples(&mut self, most: usize) {
        let sampled = |key: &&mut KeyWeight| key.sample.is_some();
        let mut sampled: Vec<_> = self.0.values_mut().filter(sampled).collect();
        sampled.sort_unstable_by_key(|key| std::cmp::Reverse(key.certain()));
        for key in sampled.into_iter().skip(most) {
            key.sample = None;
        }
    }

    fn halve(&mut self) {
        self.0.retain(|_, key| {
            key.weight /= 2;
            key.error /= 2;
            key.weight > 0
        });
    }
}

// === impl KeyWeight ===

impl KeyWeight {
    fn add(&mut self, added: KeyWeight) {
        self.weight += added.weight;
        if added.sample.is_some() {
            self.sample = added.sample;
        }
    }

    /// The number of requests that the key had at least.
    fn certain(&self) -> u64 {
        self.weight - self.error
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_hits::tests::{add, plan};
    use super::*;

    const RULE: RuleId = RuleId {
        identity: 1,
        slot: 1,
    };

    fn batch(keys: impl IntoIterator<Item = u32>, weight: u32) -> KeyHits {
        let mut hits = KeyHits::default();
        for key in keys {
            add(&mut hits, &plan(RULE, &key.to_be_bytes()), weight, None);
        }
        hits
    }

    fn keys(hot: &HotKeys, most: usize) -> Vec<u32> {
        let hottest = hot.hottest(RULE, most).into_iter();
        let key = |key: HotKey| u32::from_be_bytes((*key.key).try_into().unwrap());
        hottest.map(key).collect()
    }

    #[test]
    fn heavy_keys_are_found_in_a_flood_of_keys_that_occur_once() {
        let mut hot = HotKeys::default();
        let mut noise = 1000..;
        for _ in 0..60 {
            let flood: Vec<u32> = noise.by_ref().take(5000).collect();
            hot.add(&batch(flood, 1));
            hot.add(&batch([1, 1, 1, 1, 2, 2, 3].repeat(20), 1));
            hot.decay(Duration::from_secs(1));
        }
        assert_eq!(keys(&hot, 3), [1, 2, 3]);
        assert!(hot.rules[&RULE].0.len() <= CAPACITY);
        let hottest = &hot.hottest(RULE, 1)[0];
        assert!((20.0..=80.0).contains(&hottest.per_s), "{hottest:?}");
    }

    #[test]
    fn sampled_keys_have_their_weight() {
        let mut hot = HotKeys::default();
        hot.add(&batch([1], 100));
        hot.add(&batch([2; 50], 1));
        assert_eq!(keys(&hot, 9), [1, 2]);
        assert_eq!(keys(&hot, 1), [1]);
    }

    #[test]
    fn a_key_without_requests_leaves() {
        let mut hot = HotKeys::default();
        hot.add(&batch([1; 1000], 1));
        for _ in 0..9 {
            hot.decay(HALF_LIFE);
        }
        assert_eq!(keys(&hot, 9), [1]);
        hot.decay(HALF_LIFE);
        assert!(keys(&hot, 9).is_empty());
        assert!(hot.rules.is_empty());
    }

    #[test]
    fn the_hottest_keys_have_samples() {
        let mut hot = HotKeys::default();
        let mut hits = KeyHits::default();
        for key in 0..200u32 {
            let sample: Arc<str> = format!("{{\"n\":{key}}}").into();
            let weight = 200 - key;
            add(
                &mut hits,
                &plan(RULE, &key.to_be_bytes()),
                weight,
                Some(sample),
            );
        }
        hot.add(&hits);
        let hottest = hot.hottest(RULE, 200);
        assert_eq!(hottest[0].sample.as_deref(), Some("{\"n\":0}"));
        let sampled = hottest.iter().filter(|key| key.sample.is_some()).count();
        assert_eq!(sampled, MOST_SAMPLES);
        assert_eq!(hottest[MOST_SAMPLES].sample, None);
    }

    #[test]
    fn the_keys_of_a_removed_rule_go() {
        let mut hot = HotKeys::default();
        hot.add(&batch([1], 1));
        hot.keep_rules(&[]);
        assert!(keys(&hot, 9).is_empty());
    }
}
