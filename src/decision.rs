//! What the rules decided about a request. Plain values: nothing here acts.

use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Timestamp;

/// What a rule does with the requests that it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Refuse, and say so.
    #[default]
    Block,
    /// Answer as if all were well; the origin never sees the request.
    Shadow,
    /// Let another upstream answer.
    Divert,
    /// Hold until its turn, at most for a while, then forward.
    Delay,
    /// Hold for a while, then refuse.
    Tarpit,
    /// Close the connection, or reset the stream, without an answer.
    Close,
    /// Forward with a header that names the rule.
    Tag,
    /// Forward, and record that the rule would have acted.
    Log,
    /// Forward, and skip the rules that follow.
    Allow,
}

/// A rule's place in its rule set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIndex(pub u16);

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Forwarded or stopped.
    pub verdict: Verdict,
    /// The store's clock when it was made.
    pub at: Timestamp,
    /// The client could not take a shadow response (gRPC): it is refused instead.
    pub blocks_shadows: bool,
    /// How long the request is held before the verdict is carried out: the longest of all waits.
    pub hold: Duration,
    /// The first rule in whose queue the request waits. If it cannot be held, that rule acts.
    pub queued: Option<RuleIndex>,
    /// From the decision until a retry of a blocked request is admitted; `None`: no wait helps.
    pub refused_for: Option<Duration>,
    /// The rules that the origin is told of, in rule order.
    pub tags: Vec<RuleIndex>,
    /// The rule that the log names: the one that stopped the request or let it pass, else the
    /// first that only recorded it or would have acted.
    pub credit: Option<DecidedBy>,
    /// The first rule that the response phase leaves out; `None`: it sees all rules.
    pub settle_before: Option<RuleIndex>,
    /// The rules that counted this request, in rule order, as a client may be told.
    pub quotas: SmallVec<[QuotaStatus; 4]>,
    /// The rules that may yet count the response, as they were when the request came.
    pub pending_quotas: SmallVec<[PendingQuota; 2]>,
    /// What each matching rule did, for the metrics and the log.
    pub marks: SmallVec<[RuleEvent; 8]>,
}

/// The rule that the log names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedBy {
    /// The rule.
    pub rule: RuleIndex,
    /// What it does.
    pub action: Action,
    /// It would have done so, were it not a dry run.
    pub dry_run: bool,
}

/// Forwarded or stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The origin gets the request.
    #[default]
    Forward,
    /// The gateway answers 429 or the rule's response.
    Block {
        /// The rule whose answer it is.
        rule: RuleIndex,
        /// Whole seconds until a retry is admitted, from the end of the hold; `None`: no wait
        /// would help.
        retry_after: Option<u64>,
    },
    /// The gateway answers like the origin would.
    Shadow {
        /// The rule whose answer it is.
        rule: RuleIndex,
    },
    /// The rule's upstream answers.
    Divert {
        /// The rule whose upstream it is.
        rule: RuleIndex,
    },
    /// Nobody answers.
    Close {
        /// The rule that closes.
        rule: RuleIndex,
    },
    /// The store is unavailable and the rule fails closed: the gateway responds with 503.
    Unavailable {
        /// The rule.
        rule: RuleIndex,
    },
}

/// A rule's quota as one client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStatus {
    /// The rule.
    pub rule: RuleIndex,
    /// What is left, in whole units.
    pub remaining: u64,
    /// Seconds, rounded up: until a retry is admitted if this rule refused, else until the quota
    /// is full again.
    pub reset: u64,
}

/// A quota that the response may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingQuota {
    /// The rule.
    pub rule: RuleIndex,
    /// The units left before the response is counted.
    pub remaining: u64,
    /// Until the quota is full again, or the ban ends.
    pub reset: Duration,
    /// The key is banned: the response changes nothing.
    pub is_banned: bool,
}

/// What one rule did with one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleEvent {
    /// The rule.
    pub rule: RuleIndex,
    /// What happened.
    pub event: RuleEventKind,
}

/// What can happen between a rule and a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleEventKind {
    /// The counting expression matched.
    #[default]
    Counted,
    /// The mitigation expression matched.
    Matched,
    /// The action was taken.
    Mitigated,
    /// The action would have been taken; the rule is a dry run.
    WouldMitigate,
    /// The rule's candidate would have acted where the rule did not.
    CandidateActs,
    /// The rule's candidate would have passed what the rule acted on.
    CandidatePasses,
}

// === impl DecidedBy ===

impl DecidedBy {
    /// What the log says that the rule did.
    pub const fn name(&self) -> &'static str {
        match (self.dry_run, self.action) {
            (false, action) => action.name(),
            (true, Action::Block) => "would_block",
            (true, Action::Shadow) => "would_shadow",
            (true, Action::Divert) => "would_divert",
            (true, Action::Delay) => "would_delay",
            (true, Action::Tarpit) => "would_tarpit",
            (true, Action::Close) => "would_close",
            (true, Action::Tag) => "would_tag",
            (true, Action::Log) => "would_log",
            (true, Action::Allow) => "would_allow",
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether the answer is to look like that of the route's origin, which does not get the
    /// request.
    pub const fn poses_as_origin(&self) -> bool {
        matches!(self, Verdict::Shadow { .. } | Verdict::Divert { .. })
    }

    /// Whether the request gets the answer of an origin, its own or another.
    pub const fn is_served(&self) -> bool {
        matches!(self, Verdict::Forward | Verdict::Divert { .. })
    }
}

// === impl Action ===

impl Action {
    /// Whether the pass through the rules ends here.
    pub const fn is_terminal(self) -> bool {
        match self {
            Action::Block
            | Action::Shadow
            | Action::Divert
            | Action::Tarpit
            | Action::Close
            | Action::Allow => true,
            Action::Delay | Action::Tag | Action::Log => false,
        }
    }

    /// Whether the client is to take the answer for that of the route's origin.
    pub const fn poses_as_origin(self) -> bool {
        matches!(self, Action::Shadow | Action::Divert)
    }

    /// The name in gateway.toml, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Block => "block",
            Action::Shadow => "shadow",
            Action::Divert => "divert",
            Action::Delay => "delay",
            Action::Tarpit => "tarpit",
            Action::Close => "close",
            Action::Tag => "tag",
            Action::Log => "log",
            Action::Allow => "allow",
        }
    }
}
