//! The step of a rule's candidate, a second limiter that is evaluated and never enforced.

use super::plan::{Step, StepOp};
use super::{CandidateLimit, Rule};

// === impl Step ===

impl Step {
    /// A copy of the step for the rule's candidate. `None` if the candidate has no part in the request.
    pub(super) fn candidate_step(&self, rule: &Rule, candidate: CandidateLimit) -> Option<Step> {
        let op = match self.op {
            StepOp::Peek if !self.mitigates => return None,
            StepOp::Peek => rule.uncounted_op(),
            op => op,
        };
        Some(Step {
            id: candidate.id,
            limiter: candidate.limiter,
            op,
            candidate: true,
            is_terminal: false,
            peek_after_end: false,
            mode: self.mode.for_limiter(&candidate.limiter),
            ..self.clone()
        })
    }
}
