//! The plan of a request: the counter operations, in rule order. A store carries them out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::key_buffer::KeyBuffer;
use super::registry::RuleRegistry;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::concurrency::LeaseId;
use crate::limit::{ChargeUnits, CounterReading, Limiter};

/// The counter operations that a store must carry out at once for one request.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps, in rule order.
    pub steps: SmallVec<[Step; 4]>,
    /// The bytes of all keys; [`Step::key`] is a range of them.
    pub keys: KeyBuffer,
    /// The identity of the leases that the plan's `concurrency` steps take.
    pub lease: LeaseId,
}

/// The leases that one request holds until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLeases {
    /// The identity that all of these leases have.
    pub id: LeaseId,
    /// The counters that hold a lease.
    pub counters: SmallVec<[LeasedCounter; 1]>,
}

/// A counter that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedCounter {
    /// The rule.
    pub id: RuleId,
    /// The key.
    pub key: Box<[u8]>,
    /// The units of the lease.
    pub units: u64,
}

/// The identity of a rule's counters, across reloads. Two rules share counters only if their ids
/// are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId {
    /// A digest of the settings that identify a rule (contract, section 5).
    pub identity: u64,
    /// A small number that [`RuleRegistry`] assigned to the identity.
    pub slot: u16,
}

/// One rule's part of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// The rule, in this configuration.
    pub rule: RuleIndex,
    /// The rule, across configurations.
    pub id: RuleId,
    /// The range of the key's bytes in [`Plan::keys`].
    pub key: Range<u32>,
    /// The limiter.
    pub limiter: Limiter,
    /// The cost of the request.
    pub cost: u64,
    /// Whether the request matches only `total` of a rule with a ratio, and not `count`.
    pub only_total: bool,
    /// The counter operation if the key is not banned.
    pub op: StepOp,
    /// How long a key above the limit is banned.
    pub ban: BanLength,
    /// The longest hold: a request that does not fit is still charged if it would fit within this
    /// time, and waits for it.
    pub max_hold: Duration,
    /// Whether this is the candidate's step, which comes before the rule's own and is never enforced.
    pub candidate: bool,
    /// Whether the request matches `mitigate`, so that a refusal or a ban applies to it.
    pub mitigates: bool,
    /// Whether acting on this request ends evaluation. Later steps are then not carried out; those
    /// marked [`Step::peek_after_end`] are peeked at.
    pub is_terminal: bool,
    /// Whether the step is peeked at after evaluation has ended, because its wait may be longer or
    /// because a shadow response carries its quota headers.
    pub peek_after_end: bool,
    /// What the rule does if the store fails.
    pub on_failure: OnStoreFailure,
    /// How a fleet shares the counter. Without a shared store it has no effect.
    pub mode: StoreMode,
}

/// How long a key above the limit is banned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BanLength {
    /// No ban: the action applies only to requests above the limit.
    #[default]
    Never,
    /// A ban of this length.
    For(Duration),
    /// The first offence has the first length, the next one the second; the last length repeats.
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

/// How the gateways of a fleet share a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMode {
    /// The shared store decides every request.
    #[default]
    Exact,
    /// Each gateway decides from its own estimate and reports what it has admitted.
    Async,
}

/// An operation on a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOp {
    /// Charge the cost if it fits.
    Admit,
    /// Charge the cost, even above the limit.
    Charge,
    /// Read the counter without charging it.
    Peek,
    /// Only check for a ban.
    CheckBan,
    /// No counter and no key: the rule acts on every matching request.
    Always,
}

/// What a store returns for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanResult {
    /// The store's clock when it applied the plan. The decision uses this time.
    pub at: Timestamp,
    /// The results: at most one per step, in order; then, if a step ended evaluation, those of the
    /// steps that were only peeked at.
    pub steps: SmallVec<[StepResult; 4]>,
    /// The steps whose ban a remote store has reported, each with the ordinal of its offence, counted from 1.
    pub offences: Vec<(u16, u32)>,
}

/// What a store returns for one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// The step's index in [`Plan::steps`].
    pub step: u16,
    /// The state of the key.
    pub status: KeyStatus,
    /// The limiter's result. `None` if only a ban was checked.
    pub reading: Option<CounterReading>,
    /// Whether the cost was charged.
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
        /// Whether this step started the ban.
        started: bool,
    },
}

// === impl RuleId ===

impl RuleId {
    /// The id of a rule without a slot of its own: it uses the shared slot.
    pub fn unregistered(identity: u64) -> Self {
        let slot = RuleRegistry::SHARED_SLOT;
        Self { identity, slot }
    }
}

// === impl BanLength ===

impl BanLength {
    /// Whether the rule has no ban.
    pub fn is_never(&self) -> bool {
        *self == BanLength::Never
    }

    /// The ban length of the offence with this number, counted from 0.
    pub fn length(&self, offence: u32) -> Duration {
        match self {
            BanLength::Never => Duration::ZERO,
            BanLength::For(length) => *length,
            BanLength::Escalating(lengths) => {
                let last = lengths.len().saturating_sub(1);
                let position = usize::try_from(offence).unwrap_or(last).min(last);
                lengths.get(position).copied().unwrap_or_default()
            }
        }
    }
}

impl From<Duration> for BanLength {
    fn from(length: Duration) -> Self {
        if length.is_zero() {
            BanLength::Never
        } else {
            BanLength::For(length)
        }
    }
}

// === impl OnStoreFailure ===

impl OnStoreFailure {
    /// The name in `on_failure = "…"`.
    pub const fn name(self) -> &'static str {
        match self {
            OnStoreFailure::Local => "local",
            OnStoreFailure::Open => "open",
            OnStoreFailure::Closed => "closed",
        }
    }
}

// === impl StoreMode ===

impl StoreMode {
    /// The name in `mode = "…"` and `store_mode = "…"`.
    pub const fn name(self) -> &'static str {
        match self {
            StoreMode::Exact => "exact",
            StoreMode::Async => "async",
        }
    }

    /// The mode for a counter of `limiter`: exact if it cannot be counted in async mode.
    #[inline]
    pub const fn for_limiter(self, limiter: &Limiter) -> StoreMode {
        match limiter.algorithm.async_obstacle(limiter.slices) {
            None => self,
            Some(_) => StoreMode::Exact,
        }
    }
}

// === impl StepOp ===

impl StepOp {
    /// Whether the operation can charge the counter.
    pub fn counts(self) -> bool {
        matches!(self, StepOp::Admit | StepOp::Charge)
    }

    /// The operation with a peek instead of a charge.
    pub fn without_charge(self) -> Self {
        if self.counts() { StepOp::Peek } else { self }
    }
}

// === impl Step ===

impl Step {
    /// The units to charge.
    #[inline]
    pub fn units(&self) -> ChargeUnits {
        if self.only_total {
            ChargeUnits::of_total(self.cost)
        } else {
            self.cost.into()
        }
    }

    /// Whether this request was charged and a retry would not fit. Its wait counts if a later rule
    /// refuses the request. A lease is released when the request is refused, and the wait of a ratio is unknown.
    pub fn is_filled_up(&self, result: &StepResult) -> bool {
        let is_full = |reading: CounterReading| reading.remaining < self.cost;
        let charged = self.op == StepOp::Admit && result.status == KeyStatus::Within;
        let keeps = !self.limiter.algorithm.holds_leases() && self.limiter.ratio.is_none();
        self.peek_after_end && charged && keeps && result.reading.is_some_and(is_full)
    }
}

// === impl PlanResult ===

impl PlanResult {
    /// The ordinal of the offence for which the key of a step is banned, counted from 1.
    pub fn offence(&self, step: u16) -> u32 {
        let reported = self.offences.iter().find(|(index, _)| *index == step);
        reported.map_or(1, |(_, offence)| *offence)
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

    /// The result for a key that was already banned.
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

    /// The leases that this plan takes. `None` if no step takes one.
    pub fn leases(&self) -> Option<HeldLeases> {
        let takes = |step: &&Step| step.op.counts() && step.limiter.algorithm.holds_leases();
        let steps = self.steps.iter().filter(takes);
        let lease = |step: &Step| LeasedCounter {
            id: step.id,
            key: self.key(step).into(),
            units: step.cost,
        };
        let counters: SmallVec<_> = steps.map(lease).collect();
        (!counters.is_empty()).then_some(HeldLeases {
            id: self.lease,
            counters,
        })
    }

    /// The step that ended evaluation, according to `result`. `None` if none did.
    pub fn ending_step(&self, result: &PlanResult) -> Option<u16> {
        let ends = |result: &&StepResult| {
            let step = || self.steps.get(usize::from(result.step));
            let is_terminal = |step: &Step| step.mitigates && step.is_terminal;
            result.status != KeyStatus::Within && step().is_some_and(is_terminal)
        };
        result.steps.iter().find(ends).map(|result| result.step)
    }

    /// The key bytes of `step`.
    #[inline(always)]
    pub fn key(&self, step: &Step) -> &[u8] {
        self.keys
            .part(step.key.start as usize..step.key.end as usize)
    }
}
