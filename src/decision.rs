//! The decision of the rules about a request. Plain values: nothing here acts.

use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Timestamp;

/// What a rule does with the requests that it mitigates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Refuse the request with an error response.
    #[default]
    Block,
    /// Send a shadow response; the origin server never sees the request.
    Shadow,
    /// Forward to another upstream.
    Divert,
    /// Hold the request until its turn, at most `max_delay`, then forward it.
    Delay,
    /// Hold the request for a time, then refuse it.
    Tarpit,
    /// Close the connection, or reset the stream, without a response.
    Close,
    /// Forward with a header that names the rule.
    Tag,
    /// Forward, and record that the rule matched.
    Log,
    /// Forward, and skip the rules that follow.
    Allow,
    /// Send a proof of work until the client has a clearance, then forward.
    Challenge,
}

/// A rule's position in its rule set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIndex(pub u16);

/// The outcome of rule evaluation for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What happens to the request.
    pub verdict: Verdict,
    /// The store's clock at the time of the decision.
    pub at: Timestamp,
    /// Whether a person has let the client's address pass all rules. No rule was evaluated.
    pub is_exempt: bool,
    /// Whether the client cannot read a shadow response (gRPC) and gets a refusal instead.
    pub blocks_shadows: bool,
    /// Whether the client cannot solve a challenge (gRPC, or no secure connection) and gets a refusal instead.
    pub blocks_challenges: bool,
    /// The first rule that would have challenged the request, but let it pass because of its clearance or because it
    /// is a CORS preflight.
    pub unchallenged: Option<RuleIndex>,
    /// How long the request is held before the verdict is carried out: the longest of all waits.
    pub hold: Duration,
    /// The first rule that queues the request. If the request cannot be held, this rule acts on it.
    pub queued: Option<RuleIndex>,
    /// From the decision until a retry of a blocked request is admitted. `None` if no wait helps.
    pub refused_for: Option<Duration>,
    /// The rules that the request's tag header names, in rule order.
    pub tags: Vec<RuleIndex>,
    /// The rule that the log names: the one that stopped or allowed the request, else the first
    /// that only logged it or would have acted.
    pub decided_by: Option<DecidedBy>,
    /// The first rule that the response phase leaves out. `None` if it evaluates all rules.
    pub settle_before: Option<RuleIndex>,
    /// The quotas of the rules that counted this request, in rule order, for the quota headers.
    pub quotas: SmallVec<[QuotaStatus; 4]>,
    /// The quotas of the rules that may still count the response, as read in the request phase.
    pub pending_quotas: SmallVec<[PendingQuota; 2]>,
    /// The event of each matching rule, for metrics and the log.
    pub events: SmallVec<[RuleEvent; 8]>,
}

/// The rule that the log names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedBy {
    /// The rule.
    pub rule: RuleIndex,
    /// The rule's action.
    pub action: Action,
    /// Whether the rule is a dry run, so the action was not taken.
    pub dry_run: bool,
}

/// What happens to the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes to its route's upstream.
    #[default]
    Forward,
    /// The gateway responds with 429 or the rule's response.
    Block {
        /// The rule that blocks.
        rule: RuleIndex,
        /// Whole seconds from the end of the hold until a retry is admitted. `None` if no wait
        /// helps.
        retry_after: Option<u64>,
    },
    /// The gateway responds with a challenge.
    Challenge {
        /// The rule that challenges.
        rule: RuleIndex,
        /// Whole seconds until a retry is admitted without a solution. `None` if no wait helps.
        retry_after: Option<u64>,
    },
    /// The gateway sends a shadow response.
    Shadow {
        /// The rule that sends the shadow response.
        rule: RuleIndex,
    },
    /// The request goes to the rule's upstream.
    Divert {
        /// The rule that names the upstream.
        rule: RuleIndex,
    },
    /// The gateway closes the connection or resets the stream without a response.
    Close {
        /// The rule that closes.
        rule: RuleIndex,
    },
    /// The store is unavailable and the rule fails closed: the gateway responds with 503.
    Unavailable {
        /// The rule that fails closed.
        rule: RuleIndex,
    },
}

/// A rule's quota for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStatus {
    /// The rule.
    pub rule: RuleIndex,
    /// The units left, rounded down.
    pub remaining: u64,
    /// Seconds, rounded up, until a retry is admitted if this rule refused, else until the quota is
    /// full again.
    pub reset: u64,
}

/// A quota that the response may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingQuota {
    /// The rule.
    pub rule: RuleIndex,
    /// The units left before the response is counted.
    pub remaining: u64,
    /// The time until the quota is full again or the ban ends.
    pub reset: Duration,
    /// Whether the key is banned, so the response changes nothing.
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

/// The events of a rule for a request.
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
    /// The rule's candidate would have acted on a request that the rule admitted.
    CandidateActs,
    /// The rule's candidate would have admitted a request that the rule acted on.
    CandidatePasses,
}

// === impl Decision ===

impl Decision {
    /// Lets a request pass all rules, also those that count its response.
    pub fn exempt(&mut self, now: Timestamp) {
        self.at = now;
        self.is_exempt = true;
        self.settle_before = Some(RuleIndex(0));
    }

    /// The action that the log names: that of a rule, or `allow` for an exemption.
    pub fn action_name(&self) -> Option<&'static str> {
        let exempt = self.is_exempt.then(|| Action::Allow.name());
        exempt.or_else(|| self.decided_by.as_ref().map(DecidedBy::name))
    }
}

// === impl DecidedBy ===

impl DecidedBy {
    /// The name of the outcome in the log.
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
            (true, Action::Challenge) => "would_challenge",
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether the response imitates the origin server, which does not get the request.
    pub const fn poses_as_origin(&self) -> bool {
        matches!(self, Verdict::Shadow { .. } | Verdict::Divert { .. })
    }

    /// Whether an upstream handles the request: the route's or the rule's.
    pub const fn is_served(&self) -> bool {
        matches!(self, Verdict::Forward | Verdict::Divert { .. })
    }
}

// === impl Action ===

impl Action {
    /// Whether the action ends rule evaluation.
    pub const fn is_terminal(self) -> bool {
        match self {
            Action::Block
            | Action::Shadow
            | Action::Divert
            | Action::Tarpit
            | Action::Close
            | Action::Allow
            | Action::Challenge => true,
            Action::Delay | Action::Tag | Action::Log => false,
        }
    }

    /// Whether the response must be indistinguishable from the origin server's.
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
            Action::Challenge => "challenge",
        }
    }
}
