//! Tests of the recorded keys and of the sampler.

use super::*;
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Step, StepOp, StepResult, StoreMode,
};

const RULE: RuleId = RuleId {
    identity: 7,
    slot: 1,
};
const SECOND: Duration = Duration::from_secs(1);

/// A plan that counts `key` for `rule`.
pub(in crate::observe::activity) fn plan(rule: RuleId, key: &[u8]) -> Plan {
    let mut plan = Plan::default();
    plan.keys.extend_from_slice(key);
    plan.steps.push(Step {
        rule: RuleIndex(0),
        id: rule,
        key: 0..key.len() as u32,
        limiter: Limiter::new(Algorithm::SlidingWindow, 5, SECOND),
        cost: 1,
        only_total: false,
        op: StepOp::Admit,
        ban: BanLength::Never,
        max_hold: Duration::ZERO,
        candidate: false,
        mitigates: true,
        is_terminal: true,
        peek_after_end: false,
        on_failure: OnStoreFailure::Local,
        mode: StoreMode::Exact,
    });
    plan
}

/// Records a request that no rule stops.
pub(in crate::observe::activity) fn add(
    hits: &mut KeyHits,
    plan: &Plan,
    weight: u32,
    sample: Option<Arc<str>>,
) {
    hits.record(plan, &PlanResult::default(), weight, sample.is_some());
    sample
        .into_iter()
        .for_each(|sample| hits.add_sample(sample));
}

/// Sends `requests` through a sampler; returns what it records.
fn record(sampler: &KeySampler, requests: u32) -> KeyHits {
    let mut hits = KeyHits::default();
    for n in 0..requests {
        if sampler.is_due() {
            let weight = sampler.weight(&hits);
            let sample = sampler.is_sample(&hits).then(|| "{}".into());
            // Two keys that take turns.
            add(&mut hits, &plan(RULE, &[(n % 2) as u8]), weight, sample);
        }
    }
    hits
}

fn weight_of(hits: &KeyHits, key: u8) -> u64 {
    let hits = hits.iter().filter(|hit| hit.key == [key]);
    hits.map(|hit| u64::from(hit.weight)).sum()
}

#[test]
fn at_a_low_rate_every_request_is_recorded() {
    let sampler = KeySampler::new(1);
    for _ in 0..3 {
        let hits = record(&sampler, 2000);
        assert_eq!((weight_of(&hits, 0), weight_of(&hits, 1)), (1000, 1000));
        sampler.adapt(&hits, SECOND);
    }
}

#[test]
fn at_a_high_rate_a_fair_sample_is_recorded() {
    let sampler = KeySampler::new(1);
    let first = record(&sampler, 1_000_000);
    assert!(first.hits.len() <= MAX_HITS);
    sampler.adapt(&first, SECOND);
    for _ in 0..3 {
        let hits = record(&sampler, 1_000_000);
        assert!(hits.hits.len() < 3 * BUDGET as usize, "{}", hits.hits.len());
        for key in [0, 1] {
            let weight = weight_of(&hits, key);
            assert!((400_000..600_000).contains(&weight), "{weight}");
        }
        sampler.adapt(&hits, SECOND);
    }
    let calm = record(&sampler, 100);
    sampler.adapt(&calm, SECOND);
    let calm = record(&sampler, 100);
    assert_eq!(calm.hits.len(), 100);
}

#[test]
fn samples_are_spread_over_a_second() {
    let sampler = KeySampler::new(1);
    sampler.adapt(&record(&sampler, 2000), SECOND);
    let hits = record(&sampler, 2000);
    let samples: Vec<usize> = hits
        .iter()
        .enumerate()
        .filter_map(|(index, hit)| hit.sample.map(|_| index))
        .collect();
    assert!(
        (5..=SAMPLES as usize).contains(&samples.len()),
        "{samples:?}"
    );
    assert!(samples.iter().any(|index| *index > 800), "{samples:?}");
}

#[test]
fn steps_that_charge_nothing_are_not_recorded() {
    let mut peek = plan(RULE, b"k");
    peek.steps[0].op = StepOp::Peek;
    let mut candidate = plan(RULE, b"k");
    candidate.steps[0].candidate = true;
    let mut hits = KeyHits::default();
    add(&mut hits, &peek, 1, None);
    add(&mut hits, &candidate, 1, None);
    assert_eq!(hits.iter().count(), 0);
}

#[test]
fn only_the_steps_that_a_request_reached_are_recorded() {
    let mut all = plan(RULE, b"k");
    let later = RuleId {
        identity: 8,
        slot: 2,
    };
    let step = all.steps[0].clone();
    all.steps.push(Step { id: later, ..step });
    let recorded = |status| {
        let result = PlanResult {
            steps: [StepResult::without_counter(0, status)]
                .into_iter()
                .collect(),
            ..PlanResult::default()
        };
        let mut hits = KeyHits::default();
        hits.record(&all, &result, 1, false);
        hits.iter().map(|hit| hit.rule).collect::<Vec<_>>()
    };
    assert_eq!(recorded(KeyStatus::Within), [RULE, later]);
    assert_eq!(recorded(KeyStatus::Over), [RULE]);
}

#[test]
fn the_bytes_of_a_batch_are_bounded() {
    let mut hits = KeyHits::default();
    let long = plan(RULE, &[7; 5000]);
    (0..100_000).for_each(|_| add(&mut hits, &long, 1, None));
    assert!(hits.keys.len() <= MAX_BYTES);
    assert!(hits.iter().all(|hit| hit.key == [7; MAX_KEY]));
    let short = plan(RULE, b"k");
    let mut hits = KeyHits::default();
    (0..100_000).for_each(|_| add(&mut hits, &short, 1, None));
    assert_eq!(hits.hits.len(), MAX_HITS);
}
