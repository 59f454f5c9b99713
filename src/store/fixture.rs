//! Rules and plans for tests of stores.

use std::time::Duration;

use super::Store;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{Ban, Finding, Findings, Op, Plan, RuleId, Standing, Step};

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
    pub(super) patience: u64,
    pub(super) acts: bool,
    pub(super) ends_pass: bool,
    pub(super) peek_after_end: bool,
}

/// A request in flight.
pub(super) struct Stay {
    plan: Plan,
    findings: Findings,
}

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

impl Stay {
    /// The request has ended.
    pub(super) fn leave(self, store: &Store) {
        store.release(&self.plan, &self.findings);
    }
}

impl Store {
    /// Carries out one step alone, whatever its cost and moment.
    pub(super) async fn apply_one(&self, step: Step, key: &str, now: Timestamp) -> Finding {
        let findings = self.apply(&plan([(key, step)]), now).await;
        assert_eq!(findings.len(), 1);
        findings[0]
    }
}

impl Rule {
    /// A rule that allows `limit` a minute and throttles.
    pub(super) fn throttle(store: &Store, name: &str, limit: u64) -> Self {
        Self::ban(store, name, limit, 0)
    }

    /// A rule that allows `limit` a minute and then bans for `ban` seconds.
    pub(super) fn ban(store: &Store, name: &str, limit: u64, ban: u64) -> Self {
        let identity = name.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(1_000_003) ^ u64::from(byte)
        });
        Self {
            id: store.register(identity, name),
            limit,
            limiter: Limiter::new(Algorithm::SlidingWindow, limit, MINUTE),
            ban,
            escalate: &[],
            patience: 0,
            acts: true,
            ends_pass: true,
            peek_after_end: false,
        }
    }

    /// A rule that bans for one of these lengths after the other.
    pub(super) fn escalating(
        store: &Store,
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
    pub(super) fn counting(store: &Store, name: &str, limiter: Limiter) -> Self {
        Self {
            limiter,
            ..Self::throttle(store, name, limiter.limit)
        }
    }

    pub(super) fn step(&self, op: Op, cost: u64) -> Step {
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
            op,
            ban: self.lengths(),
            patience: Duration::from_secs(self.patience),
            candidate: false,
            acts: self.acts,
            ends_pass: self.ends_pass,
            peek_after_end: self.peek_after_end,
        }
    }

    fn lengths(&self) -> Ban {
        match self.escalate {
            [] => Duration::from_secs(self.ban).into(),
            lengths => Ban::Escalating(lengths.iter().copied().map(Duration::from_secs).collect()),
        }
    }

    /// Carries out one step alone.
    pub(super) async fn ask(&self, store: &Store, op: Op, key: &str, secs: u64) -> Finding {
        store.apply_one(self.step(op, 1), key, at(secs)).await
    }

    /// [`Rule::ask`], for what most cases do.
    pub(super) async fn admit(&self, store: &Store, key: &str, secs: u64) -> Standing {
        self.ask(store, Op::Admit, key, secs).await.standing
    }

    /// Whether one fits and was charged.
    pub(super) async fn takes(&self, store: &Store, key: &str, secs: u64) -> bool {
        let finding = self.ask(store, Op::Admit, key, secs).await;
        assert_eq!(finding.charged, finding.standing == Standing::Within);
        finding.charged
    }

    /// Takes a place and keeps what gives it back.
    pub(super) async fn enter(&self, store: &Store, key: &str, cost: u64) -> Option<Stay> {
        let plan = plan([(key, self.step(Op::Admit, cost))]);
        let findings = store.apply(&plan, at(0)).await;
        findings[0].charged.then_some(Stay { plan, findings })
    }

    /// What is left of the limit.
    pub(super) async fn left(&self, store: &Store, key: &str, secs: u64) -> u64 {
        let finding = self.ask(store, Op::Peek, key, secs).await;
        finding.reading.unwrap().remaining
    }
}

/// A plan of these steps, each for its key.
pub(super) fn plan<'a>(steps: impl IntoIterator<Item = (&'a str, Step)>) -> Plan {
    let mut plan = Plan::default();
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
pub(super) fn banned(secs: u64, started: bool) -> Standing {
    let until = at(secs);
    Standing::Banned { until, started }
}
