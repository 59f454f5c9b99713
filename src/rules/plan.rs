//! The plan of a request: which counters to touch, how, in rule order. A store carries it out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::key_buffer::KeyBuffer;
use super::registry::RuleRegistry;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::concurrency::LeaseId;
use crate::limit::{CounterReading, Limiter};

/// What a store must do for one request, in one go.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps, in rule order.
    pub steps: SmallVec<[Step; 4]>,
    /// The bytes of all keys; each step points at its own.
    pub keys: KeyBuffer,
    /// The identity of the leases that its `concurrency` steps take.
    pub lease: LeaseId,
}

/// The leases that one request holds, until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLeases {
    /// The identity of each of them.
    pub id: LeaseId,
    /// The rules and keys whose counters hold one.
    pub counters: SmallVec<[(RuleId, Box<[u8]>); 1]>,
}

/// Who a rule's counters belong to, across reloads. Two rules share counters only if these are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId {
    /// A digest of everything that makes a rule the same rule (contract, section 5).
    pub identity: u64,
    /// A small number that [`RuleRegistry`] assigned to that identity.
    pub slot: u16,
}

/// One rule's part of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// The rule, in this configuration.
    pub rule: RuleIndex,
    /// The rule, across configurations.
    pub id: RuleId,
    /// Where the key's bytes are in [`Plan::keys`].
    pub key: Range<u32>,
    /// The limit.
    pub limiter: Limiter,
    /// What the request costs.
    pub cost: u64,
    /// What to do with the counter if the key is not banned.
    pub op: StepOp,
    /// How long passing the limit bans the key.
    pub ban: BanLength,
    /// A request that does not fit is charged all the same if it would within this time, which it
    /// then waits for.
    pub patience: Duration,
    /// Decided beside the rule's own step, which follows; never enforced.
    pub candidate: bool,
    /// The request matches `mitigate`, so a refusal or a ban concerns it.
    pub acts: bool,
    /// Acting on this request ends the pass: later steps are not carried out, except that those
    /// marked [`Step::peek_after_end`] are looked at.
    pub ends_pass: bool,
    /// A later step that is looked at after the pass has ended: its wait may be longer, or a
    /// client is told of it as if the request had been forwarded.
    pub peek_after_end: bool,
    /// What the rule does if the store fails.
    pub on_failure: OnStoreFailure,
}

/// How long passing a limit bans a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BanLength {
    /// It does not: only what is over the limit is acted on.
    #[default]
    Never,
    /// For this long.
    For(Duration),
    /// The first offence for the first length, the next for the second; the last one repeats.
    Escalating(Arc<[Duration]>),
}

/// What a rule does while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Decides from the counters of this process.
    #[default]
    Local,
    /// Admits every request.
    Open,
    /// Responds with 503 to every request that it would count or act on.
    Closed,
}

/// What to do with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOp {
    /// Charge if it fits.
    Admit,
    /// Charge in any case.
    Charge,
    /// Look only.
    Peek,
    /// Leave the counter alone: only a ban matters.
    Pass,
    /// No counter and no key: the rule acts on whatever matches.
    Always,
}

/// What a store returns for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanResult {
    /// The store's clock when it applied the plan. The decision uses this time.
    pub at: Timestamp,
    /// The results: at most one per step, in order; then, if a step ended the pass, those of the steps that were
    /// only peeked at.
    pub steps: SmallVec<[StepResult; 4]>,
}

/// What a store returns for one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// The step's index in [`Plan::steps`].
    pub step: u16,
    /// The state of the key.
    pub status: KeyStatus,
    /// What the limiter returned; `None` if only a ban was checked.
    pub reading: Option<CounterReading>,
    /// The cost was charged.
    pub charged: bool,
}

/// The state of a key under one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// Within its limit.
    Within,
    /// Over its limit.
    Over,
    /// Banned.
    Banned {
        /// When the ban ends.
        until: Timestamp,
        /// This step started it.
        started: bool,
    },
}

// === impl RuleId ===

impl RuleId {
    /// The id of a rule that has no slot yet: it shares one with all others that have none.
    pub fn unregistered(identity: u64) -> Self {
        let slot = RuleRegistry::SHARED_SLOT;
        Self { identity, slot }
    }
}

// === impl BanLength ===

impl BanLength {
    /// Whether there is none.
    pub fn is_never(&self) -> bool {
        *self == BanLength::Never
    }

    /// The length for the offence with this number, counted from 0.
    pub fn length(&self, offence: u32) -> Duration {
        match self {
            BanLength::Never => Duration::ZERO,
            BanLength::For(length) => *length,
            BanLength::Escalating(lengths) => {
                let last = lengths.len().saturating_sub(1);
                let place = usize::try_from(offence).unwrap_or(last).min(last);
                lengths.get(place).copied().unwrap_or_default()
            }
        }
    }
}

impl From<Duration> for BanLength {
    fn from(length: Duration) -> Self {
        match length.is_zero() {
            true => BanLength::Never,
            false => BanLength::For(length),
        }
    }
}

// === impl StepOp ===

impl StepOp {
    /// Whether it charges, or may.
    pub fn counts(self) -> bool {
        matches!(self, StepOp::Admit | StepOp::Charge)
    }
}

// === impl Step ===

impl Step {
    /// Whether this request was charged and a retry would not fit: its wait counts if a later rule refuses the
    /// request. A lease is released when the request is refused.
    pub fn is_filled_up(&self, result: &StepResult) -> bool {
        let is_full = |reading: CounterReading| reading.remaining < self.cost;
        let charged = self.op == StepOp::Admit && result.status == KeyStatus::Within;
        let keeps = !self.limiter.algorithm.holds_leases();
        self.peek_after_end && charged && keeps && result.reading.is_some_and(is_full)
    }
}

// === impl StepResult ===

impl StepResult {
    /// The result of a step that read no counter.
    pub fn without_counter(step: u16, status: KeyStatus) -> Self {
        Self {
            step,
            status,
            reading: None,
            charged: false,
        }
    }

    /// The result for a key that was banned before.
    pub fn banned(step: u16, until: Timestamp) -> Self {
        let started = false;
        Self::without_counter(step, KeyStatus::Banned { until, started })
    }
}

// === impl Plan ===

impl Plan {
    /// Whether a step reads or charges a counter. Deny rules need no store.
    pub fn needs_store(&self) -> bool {
        self.steps.iter().any(|step| step.op != StepOp::Always)
    }

    /// Reduces the plan to what is decided without the store, because it failed: deny rules, and the steps of rules
    /// that fall back to local counters. Returns the first rule that then responds with 503.
    pub fn keep_local(&mut self) -> Option<RuleIndex> {
        let is_closed =
            |step: &Step| step.op != StepOp::Always && step.on_failure == OnStoreFailure::Closed;
        let first_closed = self.steps.iter().position(is_closed);
        let closed = first_closed
            .and_then(|index| self.steps.get(index))
            .map(|step| step.rule);
        self.steps
            .truncate(first_closed.unwrap_or(self.steps.len()));
        self.steps
            .retain(|step| step.op == StepOp::Always || step.on_failure == OnStoreFailure::Local);
        closed
    }

    /// The leases that this plan takes, if any step does.
    pub fn leases(&self) -> Option<HeldLeases> {
        let takes = |step: &&Step| step.op.counts() && step.limiter.algorithm.holds_leases();
        let steps = self.steps.iter().filter(takes);
        let counters: SmallVec<_> = steps.map(|step| (step.id, self.key(step).into())).collect();
        (!counters.is_empty()).then_some(HeldLeases {
            id: self.lease,
            counters,
        })
    }

    /// The key bytes of `step`.
    #[inline(always)]
    pub fn key(&self, step: &Step) -> &[u8] {
        self.keys
            .part(step.key.start as usize..step.key.end as usize)
    }
}
