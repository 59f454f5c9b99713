//! Requests that pass a challenge rule although it would act on them: those with a clearance, and CORS preflights, to
//! which no page can attach one.
//!
//! The step of such a request neither ends evaluation nor charges what the rule would refuse. It therefore needs no
//! support in a store.

use super::{Rule, Step, StepOp};
use crate::expr::FieldFacts;
use crate::facts::fields::{CLIENT_CLEARANCE, REQUEST_HEADERS, REQUEST_METHOD};

/// Which requests pass a challenge rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChallengeExemption {
    /// Whether the rule counts clearances, so that a clearance does not pass it.
    counts_clearances: bool,
}

// === impl ChallengeExemption ===

impl ChallengeExemption {
    /// Returns the exemption of `rule`. `None` if the rule has another action than `challenge`.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let mut parts = rule.key.parts.iter();
        let counts_clearances = parts.any(|part| part.scalar.reads().contains(&CLIENT_CLEARANCE));
        rule.challenges().then_some(Self { counts_clearances })
    }

    /// Whether the request passes.
    pub(super) fn lets_pass(self, facts: &dyn FieldFacts) -> bool {
        is_preflight(facts) || (!self.counts_clearances && facts.bytes(CLIENT_CLEARANCE).is_some())
    }
}

/// Whether the request is a CORS preflight.
fn is_preflight(facts: &dyn FieldFacts) -> bool {
    let has = |name: &[u8]| facts.element(REQUEST_HEADERS, Some(name), 0).is_some();
    let method = facts.bytes(REQUEST_METHOD);
    method.as_deref() == Some(b"OPTIONS") && has(b"origin") && has(b"access-control-request-method")
}

// === impl Rule ===

impl Rule {
    /// Whether the request of `step` passes this rule if the rule would act on it.
    pub(super) fn has_passed(&self, step: &Step) -> bool {
        self.challenges() && !step.is_terminal
    }
}

// === impl Step ===

impl Step {
    /// Lets the request pass if the rule would act on it. It takes a slot even above the limit.
    pub(super) fn let_pass(&mut self) {
        self.is_terminal = false;
        self.peek_after_end = false;
        if self.op == StepOp::Admit && self.limiter.algorithm.holds_leases() {
            self.op = StepOp::Charge;
        }
    }
}
