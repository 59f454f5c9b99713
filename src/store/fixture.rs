//! Rules and plans for tests of stores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use smallvec::SmallVec;

use super::memory::MemoryStore;
use super::{Remote, Store, StoreBounds, StoreHandle};
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Plan, PlanResult, RuleId, Step, StepOp, StepResult,
    StoreMode,
};
use crate::rules::registry::{RegisteredRule, RuleRegistry};

const MINUTE: Duration = Duration::from_secs(60);

/// A rule of a test, in the terms of a plan.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) limit: u64,
    /// All but the limit.
    pub(super) limiter: Limiter,
    pub(super) ban: u64,
    /// Instead of `ban`, where there are any.
    pub(super) escalate: &'static [u64],
    pub(super) max_hold: u64,
    pub(super) mitigates: bool,
    pub(super) is_terminal: bool,
    pub(super) peek_after_end: bool,
}

/// The rules of all tests: two rules with one name have one id.
static REGISTRY: LazyLock<Mutex<RuleRegistry>> = LazyLock::new(Mutex::default);

/// A request in flight.
pub(super) struct Stay(Plan);

/// Every algorithm, at `limit` a minute.
pub(super) fn limiters(limit: u64) -> [(&'static str, Limiter); 8] {
    let new = |algorithm| Limiter::new(algorithm, limit, MINUTE);
    let slices = Limiter {
        slices: 12,
        ..new(Algorithm::SlidingWindow)
    };
    let queue = Limiter {
        queue: u32::try_from(limit).unwrap().saturating_sub(1),
        ..new(Algorithm::LeakyBucket)
    };
    [
        ("sliding_window", new(Algorithm::SlidingWindow)),
        ("slices", slices),
        ("fixed_window", new(Algorithm::FixedWindow)),
        ("sliding_log", new(Algorithm::SlidingLog)),
        ("token_bucket", new(Algorithm::TokenBucket)),
        ("leaky_bucket", queue),
        ("gcra", new(Algorithm::Gcra)),
        ("concurrency", new(Algorithm::Concurrency)),
    ]
}

/// A store that a test calls: the memory store itself, or a core's handle of any store.
pub(super) trait TestCounters {
    /// Applies `plan` when the store's clock shows `at`, and returns the results of its steps.
    async fn apply_at(&self, plan: &Plan, at: Timestamp) -> SmallVec<[StepResult; 4]>;

    /// Releases the leases of `plan`, if it takes any.
    async fn end_request(&self, plan: &Plan);

    /// Carries out one step alone, whatever its cost and time.
    async fn apply_one(&self, step: Step, key: &str, now: Timestamp) -> StepResult {
        let result = self.apply_at(&plan([(key, step)]), now).await;
        assert_eq!(result.len(), 1);
        result[0]
    }
}

impl TestCounters for Store {
    async fn apply_at(&self, plan: &Plan, at: Timestamp) -> SmallVec<[StepResult; 4]> {
        self.local().run(plan, at)
    }

    async fn end_request(&self, plan: &Plan) {
        self.give_back(plan);
    }
}

impl TestCounters for StoreHandle {
    async fn apply_at(&self, plan: &Plan, at: Timestamp) -> SmallVec<[StepResult; 4]> {
        let now = self.caller_time(at);
        let mut result = PlanResult::default();
        // A call that fails applies nothing.
        while self.store().next_call_fails() {
            let steps = 0..plan.steps.len();
            self.call(plan, steps, now, &mut result).await.unwrap_err();
            assert_eq!(result, PlanResult::default());
        }
        let refusing_rule = self.apply(&mut plan.clone(), now, &mut result).await;
        assert_eq!(refusing_rule, None);
        assert_eq!(result.at.as_micros(), at.as_micros());
        result.steps
    }

    async fn end_request(&self, plan: &Plan) {
        if plan.leases().is_some() {
            self.release_leases_of(plan).await;
        }
    }
}

impl StoreHandle {
    /// Renews the leases of `plan` when the store's clock shows `at`, again if the first call fails.
    pub(super) async fn renew_leases_of(&self, plan: &Plan, at: Timestamp) {
        let (leases, now) = (plan.leases().unwrap(), self.caller_time(at));
        self.store().local().renew(&leases, at);
        if !self.store().is_local() && self.renew_remote(&leases, false, now).await.is_err() {
            self.renew_remote(&leases, false, now).await.unwrap();
        }
    }

    /// Releases the leases of `plan`, again if the first call fails.
    pub(super) async fn release_leases_of(&self, plan: &Plan) {
        let leases = plan.leases().unwrap();
        self.store().local().release(&leases);
        if !self.store().is_local() && self.release_remote(&leases).await.is_err() {
            self.release_remote(&leases).await.unwrap();
        }
    }

    /// The caller's time when the store's clock shows `at`.
    fn caller_time(&self, at: Timestamp) -> Timestamp {
        match &self.store().remote {
            Some(Remote::Faulty(_)) => self.store().faults().caller_time(at),
            _ => at,
        }
    }
}

impl Stay {
    /// The request has ended.
    pub(super) async fn leave(self, store: &impl TestCounters) {
        store.end_request(&self.0).await;
    }
}

impl MemoryStore {
    /// Applies `plan` and returns the results of its steps.
    pub(super) fn run(&self, plan: &Plan, now: Timestamp) -> SmallVec<[StepResult; 4]> {
        let mut result = PlanResult::default();
        self.apply(plan, now, &mut result);
        assert_eq!(result.at, now);
        result.steps
    }
}

impl Store {
    /// Releases the leases of `plan`, if it takes any.
    pub(super) fn give_back(&self, plan: &Plan) {
        if let Some(leases) = plan.leases() {
            self.local().release(&leases);
        }
    }

    /// A store with these counters.
    pub(super) fn of(memory: MemoryStore) -> Self {
        Self {
            local: memory,
            ..Self::memory(StoreBounds::keys(1))
        }
    }
}

impl Rule {
    /// A rule that allows `limit` a minute and throttles.
    pub(super) fn throttle(store: &impl Sized, name: &str, limit: u64) -> Self {
        Self::ban(store, name, limit, 0)
    }

    /// A rule that allows `limit` a minute and then bans for `ban` seconds.
    pub(super) fn ban(_store: &impl Sized, name: &str, limit: u64, ban: u64) -> Self {
        let identity = name.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(1_000_003) ^ u64::from(byte)
        });
        Self {
            id: REGISTRY.lock().unwrap().register(identity, name),
            limit,
            limiter: Limiter::new(Algorithm::SlidingWindow, limit, MINUTE),
            ban,
            escalate: &[],
            max_hold: 0,
            mitigates: true,
            is_terminal: true,
            peek_after_end: false,
        }
    }

    /// A rule that bans for one of these lengths after the other.
    pub(super) fn escalating(
        store: &impl Sized,
        name: &str,
        limit: u64,
        escalate: &'static [u64],
    ) -> Self {
        Self {
            escalate,
            ..Self::throttle(store, name, limit)
        }
    }

    /// A rule that counts by another algorithm.
    pub(super) fn counting(store: &impl Sized, name: &str, limiter: Limiter) -> Self {
        Self {
            limiter,
            ..Self::throttle(store, name, limiter.limit)
        }
    }

    pub(super) fn step(&self, op: StepOp, cost: u64) -> Step {
        Step {
            rule: RuleIndex(0),
            id: self.id,
            key: 0..0,
            limiter: Limiter {
                limit: self.limit,
                burst: self.limit,
                ..self.limiter
            },
            cost,
            only_total: false,
            op,
            ban: self.lengths(),
            max_hold: Duration::from_secs(self.max_hold),
            candidate: false,
            mitigates: self.mitigates,
            is_terminal: self.is_terminal,
            peek_after_end: self.peek_after_end,
            on_failure: OnStoreFailure::Local,
            mode: StoreMode::Exact,
        }
    }

    fn lengths(&self) -> BanLength {
        match self.escalate {
            [] => Duration::from_secs(self.ban).into(),
            lengths => {
                BanLength::Escalating(lengths.iter().copied().map(Duration::from_secs).collect())
            }
        }
    }

    /// Carries out one step alone.
    pub(super) async fn ask(
        &self,
        store: &impl TestCounters,
        op: StepOp,
        key: &str,
        secs: u64,
    ) -> StepResult {
        store.apply_one(self.step(op, 1), key, at(secs)).await
    }

    /// [`Rule::ask`], for what most cases do.
    pub(super) async fn admit(&self, store: &impl TestCounters, key: &str, secs: u64) -> KeyStatus {
        self.ask(store, StepOp::Admit, key, secs).await.status
    }

    /// Whether one fits and was charged.
    pub(super) async fn takes(&self, store: &impl TestCounters, key: &str, secs: u64) -> bool {
        let step_result = self.ask(store, StepOp::Admit, key, secs).await;
        assert_eq!(step_result.charged, step_result.status == KeyStatus::Within);
        step_result.charged
    }

    /// Takes a slot and returns a guard that releases it.
    pub(super) async fn enter(
        &self,
        store: &impl TestCounters,
        key: &str,
        cost: u64,
    ) -> Option<Stay> {
        let plan = plan([(key, self.step(StepOp::Admit, cost))]);
        let result = store.apply_at(&plan, at(0)).await;
        result[0].charged.then_some(Stay(plan))
    }

    /// What is left of the limit.
    pub(super) async fn left(&self, store: &impl TestCounters, key: &str, secs: u64) -> u64 {
        let step_result = self.ask(store, StepOp::Peek, key, secs).await;
        step_result.reading.unwrap().remaining
    }
}

/// Those of the rules of all tests that have one of these names.
pub(super) fn rules_named(names: &[&str]) -> Vec<RegisteredRule> {
    let mut rules = REGISTRY.lock().unwrap().rules();
    rules.retain(|rule| names.contains(&&*rule.name));
    rules
}

/// A plan of these steps, each for its key, with leases of its own.
pub(super) fn plan<'a>(steps: impl IntoIterator<Item = (&'a str, Step)>) -> Plan {
    static NEXT_LEASE: AtomicU64 = AtomicU64::new(0);
    let mut plan = Plan {
        lease: NEXT_LEASE.fetch_add(1, Ordering::Relaxed),
        ..Plan::default()
    };
    for (key, step) in steps {
        let start = plan.keys.len() as u32;
        plan.keys.extend_from_slice(key.as_bytes());
        let key = start..plan.keys.len() as u32;
        plan.steps.push(Step { key, ..step });
    }
    plan
}

/// Seconds into a minute of 2026.
pub(super) fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_767_225_600 + secs)
}

/// Banned until then.
pub(super) fn banned(secs: u64, started: bool) -> KeyStatus {
    let until = at(secs);
    KeyStatus::Banned { until, started }
}
