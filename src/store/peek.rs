//! Reads counters and bans for people, without charging them.

use super::fleet::KnownKey;
use super::redis::{FleetKey, KeyRecord};
use super::{InspectedRule, KeyUsage, StoreError, StoreHandle};
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::{CounterReading, Limiter};
use crate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Plan, PlanResult, Step, StepOp, StepResult, StoreMode,
};
use crate::store::async_mode::FleetView;

/// The number of keys whose counters one call reads.
const MAX_PEEKS: usize = 100;

/// What the shared store has for the steps of a plan.
#[derive(Debug)]
pub(super) struct PlanReading {
    /// The store's time.
    pub(super) at: Timestamp,
    /// One result per step. `None` for a step that needs no store, and for those of a call that has failed.
    pub(super) steps: Vec<Option<StepResult>>,
}

// === impl StoreHandle ===

impl StoreHandle {
    /// Returns the counters and the bans of keys of one rule. They are those of the fleet, as far as the shared store
    /// replies. In exact mode, a counter that holds more than its limit then reads as full.
    pub async fn peek(&self, rule: &InspectedRule, keys: &[Vec<u8>]) -> Vec<KeyUsage> {
        let mut found = Vec::with_capacity(keys.len());
        let per_call = match &self.link {
            // In a Cluster, each key is a call of its own within the same timeout.
            Some(link) if link.is_cluster() => 1,
            _ => MAX_PEEKS,
        };
        for keys in keys.chunks(per_call) {
            let of_fleet = match rule.mode {
                _ if self.store().is_local() => None,
                StoreMode::Exact => self.peek_exact(rule, keys).await,
                StoreMode::Async => self.peek_async(rule, keys).await,
            };
            let now = self.fleet_time();
            let own = |key: &Vec<u8>| self.store().key_usage(rule, key, now);
            match of_fleet {
                Some(usage) => found.extend(usage),
                None => found.extend(keys.iter().map(own)),
            }
        }
        found
    }

    async fn peek_exact(&self, rule: &InspectedRule, keys: &[Vec<u8>]) -> Option<Vec<KeyUsage>> {
        let plan = peeking_plan(rule, keys);
        let read = self.read_exact(&plan).await.ok()?;
        let usage = |done: &StepResult| usage_of(done, &rule.limiter);
        (read.steps.len() == keys.len()).then(|| read.steps.iter().map(usage).collect())
    }

    async fn peek_async(&self, rule: &InspectedRule, keys: &[Vec<u8>]) -> Option<Vec<KeyUsage>> {
        let keys = keys.iter().map(|key| FleetKey::new(rule.id, key));
        let keys: Vec<_> = keys.map(|key| (key, rule.limiter)).collect();
        let known = self.read_async(&keys).await.ok()?.into_iter();
        let now = self.fleet_time();
        let usage = known.map(|known| match known {
            KnownKey::Banned(until) => KeyUsage::banned(until),
            KnownKey::Counted(mut state) => KeyUsage::counted(state.held(&rule.limiter, now).count),
        });
        Some(usage.collect())
    }

    /// Reads what the shared store has for the steps of a plan, under the timeout of a request. Nothing is changed: the
    /// results are those of peeks.
    pub(super) async fn read_plan(&self, plan: &Plan) -> PlanReading {
        let mut reading = PlanReading {
            at: self.fleet_time(),
            steps: vec![None; plan.steps.len()],
        };
        let numbered = || {
            (0..)
                .zip(&plan.steps)
                .filter(|(_, step)| step.op != StepOp::Always)
        };
        let of_mode = |mode| numbered().filter(move |(_, step): &(u16, &Step)| step.mode == mode);
        let exact: Vec<(u16, &Step)> = of_mode(StoreMode::Exact).collect();
        if !exact.is_empty()
            && let Ok(read) = self.read_exact(&peeks_of(plan, &exact)).await
        {
            reading.at = read.at;
            for done in read.steps {
                let step = exact.get(usize::from(done.step));
                reading.set(step.map(|(index, step)| peeked(*index, step, done)));
            }
        }
        let asynchronous: Vec<(u16, &Step)> = of_mode(StoreMode::Async).collect();
        let key = |(_, step): &(u16, &Step)| (FleetKey::new(step.id, plan.key(step)), step.limiter);
        let keys: Vec<_> = asynchronous.iter().map(key).collect();
        if !keys.is_empty()
            && let Ok(known) = self.read_async(&keys).await
        {
            for ((index, step), known) in asynchronous.into_iter().zip(known) {
                reading.set(Some(known.result(index, step, reading.at)));
            }
        }
        reading
    }

    /// Applies a plan that only peeks.
    async fn read_exact(&self, plan: &Plan) -> Result<PlanResult, StoreError> {
        let mut result = PlanResult::default();
        let (now, steps) = (self.clock().now(), 0..plan.steps.len());
        self.call(plan, steps, now, &mut result).await?;
        Ok(result)
    }

    /// Reads keys of async mode: what the fleet has reported, and what this node has not reported yet.
    async fn read_async(&self, keys: &[(FleetKey, Limiter)]) -> Result<Vec<KnownKey>, StoreError> {
        let (link, counters) = self
            .link
            .as_ref()
            .zip(self.counters())
            .ok_or(StoreError::Unavailable)?;
        let records = link.read_records(keys).await?;
        let now = self.fleet_time();
        let pairs = records.into_iter().zip(keys);
        let known = pairs.map(|(record, (key, limiter))| {
            let known = counters.known_key(*key, limiter, now);
            known.with_record(record, limiter, now)
        });
        Ok(known.collect())
    }
}

// === impl PlanReading ===

impl PlanReading {
    fn set(&mut self, done: Option<StepResult>) {
        let Some(done) = done else {
            return;
        };
        if let Some(step) = self.steps.get_mut(usize::from(done.step)) {
            *step = Some(done);
        }
    }
}

// === impl KnownKey ===

impl KnownKey {
    /// Adds what the shared store has.
    fn with_record(self, record: KeyRecord, limiter: &Limiter, now: Timestamp) -> Self {
        if let Some(until) = record.banned_until {
            return Self::Banned(until);
        }
        let mut state = match self {
            // The ban has ended early.
            KnownKey::Banned(_) => return self,
            KnownKey::Counted(state) => state,
        };
        if let Some(counter) = record.counter {
            let view = FleetView {
                counter,
                active_bits: 0,
                at: now,
            };
            state.confirm(limiter, now, view);
        }
        Self::Counted(state)
    }

    /// Returns the result of a step that only reads.
    pub(super) fn result(self, index: u16, step: &Step, now: Timestamp) -> StepResult {
        match self {
            KnownKey::Banned(until) => StepResult::banned(index, until),
            KnownKey::Counted(_) if step.op == StepOp::CheckBan => {
                StepResult::without_counter(index, KeyStatus::Within)
            }
            KnownKey::Counted(mut state) => {
                let reading = state.peek(&step.limiter, now, step.units());
                read_counter(index, step, reading)
            }
        }
    }
}

/// The result of a step whose counter was only read. A ban rule mitigates a key only while it is banned; a full counter
/// matters only to steps that count.
fn read_counter(index: u16, step: &Step, reading: CounterReading) -> StepResult {
    let is_within = reading.fits || step.op == StepOp::Peek && !step.ban.is_never();
    StepResult {
        reading: Some(reading),
        ..StepResult::without_counter(
            index,
            if is_within {
                KeyStatus::Within
            } else {
                KeyStatus::Over
            },
        )
    }
}

/// The result of the step `index`, from that of its peek.
fn peeked(index: u16, step: &Step, done: StepResult) -> StepResult {
    match done.reading {
        Some(reading) => read_counter(index, step, reading),
        None => StepResult {
            step: index,
            ..done
        },
    }
}

/// A plan that peeks at steps of `plan` and ends at none of them.
fn peeks_of(plan: &Plan, steps: &[(u16, &Step)]) -> Plan {
    let peeks = steps.iter().map(|(_, step)| Step {
        op: step.op.without_charge(),
        ban: BanLength::Never,
        mitigates: false,
        is_terminal: false,
        peek_after_end: false,
        ..(*step).clone()
    });
    Plan {
        steps: peeks.collect(),
        keys: plan.keys.clone(),
        lease: plan.lease,
    }
}

/// A plan that reads the counters of `keys` and ends at none of them.
fn peeking_plan(rule: &InspectedRule, keys: &[Vec<u8>]) -> Plan {
    let mut plan = Plan::default();
    for key in keys {
        let start = plan.keys.len() as u32;
        plan.keys.extend_from_slice(key);
        plan.steps.push(Step {
            rule: RuleIndex(0),
            id: rule.id,
            key: start..plan.keys.len() as u32,
            limiter: rule.limiter,
            cost: 1,
            only_total: false,
            op: StepOp::Peek,
            ban: BanLength::Never,
            max_hold: std::time::Duration::ZERO,
            candidate: false,
            mitigates: false,
            is_terminal: false,
            peek_after_end: false,
            on_failure: OnStoreFailure::Local,
            mode: StoreMode::Exact,
        });
    }
    plan
}

fn usage_of(done: &StepResult, limiter: &Limiter) -> KeyUsage {
    if let KeyStatus::Banned { until, .. } = done.status {
        return KeyUsage::banned(until);
    }
    let Some(reading) = done.reading else {
        return KeyUsage::default();
    };
    if limiter.ratio.is_some() {
        return KeyUsage::counted(reading.share.count.into());
    }
    KeyUsage::counted(limiter.capacity().saturating_sub(reading.remaining))
}
