//! Requests for a store.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::RuleIndex;
use lockgate::limit::{Algorithm, Limiter, ShareRatio};
use lockgate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Plan, PlanResult, RuleId, Step, StepOp, StoreMode,
};
use lockgate::rules::registry::RegisteredRule;
use lockgate::store::Store;
use lockgate::store::memory::MemoryStore;

/// All ways to count, each with the sub-windows that it has.
pub const ALGORITHMS: &[(&str, Algorithm, u16)] = &[
    ("sliding_window", Algorithm::SlidingWindow, 1),
    ("slices_60", Algorithm::SlidingWindow, 60),
    ("fixed_window", Algorithm::FixedWindow, 1),
    ("sliding_log", Algorithm::SlidingLog, 1),
    ("token_bucket", Algorithm::TokenBucket, 1),
    ("leaky_bucket", Algorithm::LeakyBucket, 1),
    ("gcra", Algorithm::Gcra, 1),
    ("concurrency", Algorithm::Concurrency, 1),
];

/// A rule, and the plan of a request that only this rule counts.
pub struct Rule {
    plan: Plan,
}

// === impl Rule ===

impl Rule {
    /// A rule that throttles at `limit` an hour. "ratio" is a sliding window that also has a total.
    pub fn throttle(algorithm: &str, limit: u64) -> Self {
        let ratio = (algorithm == "ratio").then(|| ShareRatio::nearest(0.5));
        let algorithm = ratio.map_or(algorithm, |_| "sliding_window");
        let known = ALGORITHMS.iter().find(|(name, ..)| *name == algorithm);
        let (_, algorithm, slices) = known.unwrap_or_else(|| panic!("what is {algorithm}?"));
        let mut limiter = Limiter::new(*algorithm, limit, Duration::from_secs(3_600));
        limiter.slices = *slices;
        limiter.ratio = ratio;
        limiter.queue = u32::try_from(limit).unwrap();
        Self::new(
            RuleId {
                identity: 1,
                slot: 1,
            },
            limiter,
            BanLength::Never,
        )
    }

    /// A rule that bans whatever it sees for a day.
    pub fn ban() -> Self {
        let limiter = Limiter::new(Algorithm::SlidingWindow, 0, Duration::from_secs(60));
        let ban = BanLength::For(Duration::from_secs(86_400));
        Self::new(
            RuleId {
                identity: 2,
                slot: 2,
            },
            limiter,
            ban,
        )
    }

    /// The rule as a snapshot names it.
    pub fn registered(&self) -> RegisteredRule {
        RegisteredRule {
            id: self.plan.steps[0].id,
            name: "throttle".to_owned(),
        }
    }

    /// The plan of a request of the key with this number.
    pub fn plan(&mut self, key: u64) -> &Plan {
        self.plan.keys.clear();
        self.plan.keys.extend_from_slice(&key.to_le_bytes());
        &self.plan
    }

    /// Counts one request of the key with this number.
    pub fn ask(&mut self, memory: &MemoryStore, key: u64, now: Timestamp) -> KeyStatus {
        let mut result = PlanResult::default();
        memory.apply(self.plan(key), now, &mut result);
        result.steps[0].status
    }

    fn new(id: RuleId, limiter: Limiter, ban: BanLength) -> Self {
        let mut plan = Plan::default();
        plan.steps.push(Step {
            rule: RuleIndex(0),
            id,
            key: 0..8,
            limiter,
            cost: 1,
            only_total: false,
            op: StepOp::Admit,
            ban,
            max_hold: Duration::ZERO,
            candidate: false,
            mitigates: true,
            is_terminal: true,
            peek_after_end: false,
            on_failure: OnStoreFailure::Local,
            mode: StoreMode::Exact,
        });
        Self { plan }
    }
}

pub fn memory(store: &Store) -> &MemoryStore {
    store.local()
}

/// A time in 2026.
pub fn now() -> Timestamp {
    Timestamp::from_secs(1_767_225_600)
}

/// How many keys are counted.
pub fn tracked(store: &Store) -> usize {
    store.keys(now()).iter().map(|(_, count)| count).sum()
}
