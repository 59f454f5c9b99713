//! The outcome of a simulated request.

use crate::decision::{Action, Decision, Verdict};

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedOutcome {
    /// Forwarded by its route.
    Forward,
    /// Forwarded, because a rule or an exemption allows it.
    Allow,
    /// Forwarded after a delay.
    Delay,
    /// Forwarded with the names of the rules that tag it.
    Tag,
    /// Forwarded to the upstream of a rule.
    Divert,
    /// Refused by a rule.
    Block,
    /// Refused by a rule after a delay.
    Tarpit,
    /// Challenged by a rule.
    Challenge,
    /// The connection was closed by a rule.
    Close,
    /// A rule sent a shadow response.
    Shadow,
    /// Refused by the gateway for this reason, not by a rule.
    Refuse(&'static str),
}

// === impl SimulatedOutcome ===

impl SimulatedOutcome {
    /// `refused` is why the gateway refused a request that no rule stopped.
    pub(super) fn of(decision: &Decision, refused: Option<&'static str>) -> Self {
        let did = decision.decided_by.filter(|decided_by| !decided_by.dry_run);
        let did = did.map(|decided_by| decided_by.action);
        match (decision.verdict, refused) {
            (Verdict::Block { .. }, _) if did == Some(Action::Tarpit) => Self::Tarpit,
            (Verdict::Block { .. }, _) => Self::Block,
            (Verdict::Challenge { .. }, _) => Self::Challenge,
            (Verdict::Shadow { .. }, _) => Self::Shadow,
            (Verdict::Close { .. }, _) => Self::Close,
            (Verdict::Unavailable { .. }, _) => {
                SimulatedOutcome::Refuse("the store is unavailable")
            }
            (_, Some(reason)) => Self::Refuse(reason),
            (Verdict::Divert { .. }, None) => Self::Divert,
            (Verdict::Forward, None) if decision.is_exempt => Self::Allow,
            (Verdict::Forward, None) if did == Some(Action::Allow) => Self::Allow,
            (Verdict::Forward, None) if !decision.hold.is_zero() => Self::Delay,
            (Verdict::Forward, None) if !decision.tags.is_empty() => Self::Tag,
            (Verdict::Forward, None) => Self::Forward,
        }
    }
}
