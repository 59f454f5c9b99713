//! Rules and plans for tests of stores.

use std::time::Duration;

use super::Store;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{Finding, Op, Plan, RuleId, Standing, Step};

/// A rule of a test, in the terms of a plan.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) limit: u64,
    pub(super) ban: u64,
    pub(super) acts: bool,
    pub(super) ends_pass: bool,
    pub(super) peek_after_end: bool,
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
            ban,
            acts: true,
            ends_pass: true,
            peek_after_end: false,
        }
    }

    pub(super) fn step(&self, op: Op, cost: u64) -> Step {
        Step {
            rule: RuleIndex(0),
            id: self.id,
            key: 0..0,
            limiter: Limiter::new(
                Algorithm::SlidingWindow,
                self.limit,
                Duration::from_secs(60),
            ),
            cost,
            op,
            ban: Duration::from_secs(self.ban).into(),
            patience: Duration::ZERO,
            candidate: false,
            acts: self.acts,
            ends_pass: self.ends_pass,
            peek_after_end: self.peek_after_end,
        }
    }

    /// Carries out one step alone.
    pub(super) async fn ask(&self, store: &Store, op: Op, key: &str, secs: u64) -> Finding {
        let plan = plan([(key, self.step(op, 1))]);
        let findings = store.apply(&plan, at(secs)).await;
        assert_eq!(findings.len(), 1);
        findings[0]
    }

    /// [`Rule::ask`], for what most cases do.
    pub(super) async fn admit(&self, store: &Store, key: &str, secs: u64) -> Standing {
        self.ask(store, Op::Admit, key, secs).await.standing
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
