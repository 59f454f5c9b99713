//! The plan of a request: which counters to touch, how, in rule order. A store carries it out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::written::Written;
use crate::clock::Timestamp;
use crate::decision::RuleIndex;
use crate::limit::{Algorithm, Limiter, Reading};

/// What a store must do for one request, in one go.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The steps, in rule order.
    pub steps: SmallVec<[Step; 4]>,
    /// The bytes of all keys; each step points at its own.
    pub keys: Written,
}

/// Who a rule's counters belong to, across reloads. Two rules share counters only if these are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId {
    /// A digest of everything that makes a rule the same rule (contract, section 5).
    pub identity: u64,
    /// A small number that the store gave to that identity, for its books.
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
    pub op: Op,
    /// How long passing the limit bans the key.
    pub ban: Ban,
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
}

/// How long passing a limit bans a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ban {
    /// It does not: only what is over the limit is acted on.
    #[default]
    Never,
    /// For this long.
    For(Duration),
    /// The first offence for the first length, the next for the second; the last one repeats.
    Escalating(Arc<[Duration]>),
}

/// What to do with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
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

/// What a store found for one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The step's place in [`Plan::steps`].
    pub step: u16,
    /// Where the key stands now.
    pub standing: Standing,
    /// What the limiter said; `None` where only a ban was looked at.
    pub reading: Option<Reading>,
    /// The cost was taken.
    pub charged: bool,
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Below its limit.
    Within,
    /// Over its limit.
    Over,
    /// Banned until then.
    Banned {
        /// When the ban ends.
        until: Timestamp,
        /// This very step began it.
        started: bool,
    },
}

/// What a store found for a plan: at most one finding a step, in order.
pub type Findings = SmallVec<[Finding; 4]>;

// === impl Ban ===

impl Ban {
    /// Whether there is none.
    pub fn is_never(&self) -> bool {
        *self == Ban::Never
    }

    /// The length for the offence with this number, counted from 0.
    pub fn length(&self, offence: u32) -> Duration {
        match self {
            Ban::Never => Duration::ZERO,
            Ban::For(length) => *length,
            Ban::Escalating(lengths) => {
                let last = lengths.len().saturating_sub(1);
                let place = usize::try_from(offence).unwrap_or(last).min(last);
                lengths.get(place).copied().unwrap_or_default()
            }
        }
    }
}

impl From<Duration> for Ban {
    fn from(length: Duration) -> Self {
        match length.is_zero() {
            true => Ban::Never,
            false => Ban::For(length),
        }
    }
}

// === impl Op ===

impl Op {
    /// Whether it charges, or may.
    pub fn counts(self) -> bool {
        matches!(self, Op::Admit | Op::Charge)
    }
}

// === impl Finding ===

impl Finding {
    /// What is found without a look at a counter.
    pub fn bare(step: u16, standing: Standing) -> Self {
        Self {
            step,
            standing,
            reading: None,
            charged: false,
        }
    }

    /// A key that was banned before, until then.
    pub fn banned(step: u16, until: Timestamp) -> Self {
        let started = false;
        Self::bare(step, Standing::Banned { until, started })
    }
}

// === impl Plan ===

impl Plan {
    /// The findings of steps that took a place among those in flight, to be given back when the
    /// request ends, or at once if it is stopped.
    pub fn places<'a>(&'a self, findings: &'a Findings) -> impl Iterator<Item = &'a Finding> {
        let counts = |step: &Step| step.limiter.algorithm == Algorithm::Concurrency;
        let step = |finding: &Finding| self.steps.get(usize::from(finding.step));
        let taken = findings.iter().filter(|finding| finding.charged);
        taken.filter(move |finding| step(finding).is_some_and(counts))
    }

    /// The key bytes of `step`.
    #[inline(always)]
    pub fn key(&self, step: &Step) -> &[u8] {
        self.keys
            .part(step.key.start as usize..step.key.end as usize)
    }
}
