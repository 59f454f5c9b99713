//! What becomes of a request, in the words of the gateway and of the model.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::{
    Action, DecidedBy, Decision, QuotaStatus, RuleEvent, RuleEventKind, RuleIndex, Verdict,
};

use super::super::cases::Case;
use super::Who;
use super::known::{Known, Stand, seconds};

/// What becomes of a request, and what is kept until it is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    pub hold: Duration,
    pub queued: Option<RuleIndex>,
    /// The first rule that would have challenged it.
    pub unchallenged: Option<RuleIndex>,
    pub tags: Vec<RuleIndex>,
    pub credit: Option<DecidedBy>,
    pub quotas: Vec<QuotaStatus>,
    /// Where a candidate differs, and whether it acts there.
    pub differs: Vec<(RuleIndex, bool)>,
    /// The rules that may count the response: what each knew of the key when the request came.
    pub tentative: Vec<Pending>,
    pub reached: usize,
    pub places: Vec<(Who, String, Timestamp, u64)>,
    /// How long it is refused for, from now on and not from the end of the hold.
    pub refused: Option<u64>,
}

/// A rule that may count the response.
#[derive(Clone)]
pub struct Pending {
    pub at: usize,
    pub known: Known,
    pub now: Timestamp,
}

/// It is gone once the response is counted, which is when outcomes are compared.
impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pending {}", self.at)
    }
}

impl Outcome {
    pub fn new(rules: usize) -> Self {
        Self {
            verdict: Verdict::Forward,
            hold: Duration::ZERO,
            queued: None,
            unchallenged: None,
            tags: Vec::new(),
            credit: None,
            quotas: Vec::new(),
            differs: Vec::new(),
            tentative: Vec::new(),
            reached: rules,
            places: Vec::new(),
            refused: None,
        }
    }

    /// What the gateway decided; once it is settled.
    pub fn of(decision: &Decision) -> Self {
        let differs = |mark: &RuleEvent| match mark.event {
            RuleEventKind::CandidateActs => Some((mark.rule, true)),
            RuleEventKind::CandidatePasses => Some((mark.rule, false)),
            _ => None,
        };
        let blocks = matches!(
            decision.verdict,
            Verdict::Block { .. } | Verdict::Challenge { .. }
        );
        let refused = decision.refused_for.filter(|_| blocks).map(seconds);
        Self {
            verdict: decision.verdict,
            hold: decision.hold,
            queued: decision.queued,
            unchallenged: decision.unchallenged,
            tags: decision.tags.clone(),
            credit: decision.decided_by,
            quotas: decision.quotas.to_vec(),
            differs: decision.events.iter().filter_map(differs).collect(),
            refused,
            ..Self::new(0)
        }
    }

    pub fn without_candidates(mut self) -> Self {
        self.differs.clear();
        self
    }

    pub fn is_served(&self) -> bool {
        matches!(self.verdict, Verdict::Forward | Verdict::Divert { .. })
    }

    pub fn compare(&mut self, at: usize, tried: Option<bool>, stand: &Stand) {
        let acts = matches!(stand, Stand::Act(_));
        let differs = tried.filter(|tried| *tried != acts);
        self.differs
            .extend(differs.map(|tried| (RuleIndex(at as u16), tried)));
    }

    /// A place is taken when the request is decided; several waits: the longest.
    pub fn queue(&mut self, at: usize, wait: Duration, passes: bool) {
        self.hold = self.hold.max(wait);
        if !passes {
            self.queued.get_or_insert(RuleIndex(at as u16));
        }
    }

    /// A request that is stopped waits for nothing.
    pub fn stop(&mut self, verdict: Verdict) {
        self.verdict = verdict;
        self.hold = Duration::ZERO;
        self.queued = None;
    }

    /// `Retry-After` counts from the answer.
    pub fn refuse(&mut self, rule: RuleIndex, action: Action, wait: Option<u64>, held: u64) {
        let retry_after = wait.map(|wait| wait.saturating_sub(held).max(1));
        self.stop(match action {
            Action::Challenge => Verdict::Challenge { rule, retry_after },
            _ => Verdict::Block { rule, retry_after },
        });
        self.hold = Duration::from_secs(held);
        self.refused = wait;
    }

    /// Past `max_held`: who waits in a queue meets its rule's action, the rest happens at once.
    pub fn cannot_hold(&mut self, rules: &[Case]) {
        if let Some(rule) = self.queued.take() {
            let at = usize::from(rule.0);
            self.leave_queue(rule, &rules[at]);
        } else if let Verdict::Block { retry_after, .. } | Verdict::Challenge { retry_after, .. } =
            &mut self.verdict
        {
            *retry_after = self.refused;
        }
        self.hold = Duration::ZERO;
    }

    fn leave_queue(&mut self, rule: RuleIndex, case: &Case) {
        let action = case.action;
        let credit = DecidedBy {
            rule,
            action,
            dry_run: false,
        };
        let named = self.credit.filter(|earlier| {
            let stopped = earlier.action.is_terminal() && !earlier.dry_run;
            !action.is_terminal() && (stopped || earlier.rule < rule)
        });
        self.credit = named.or(Some(credit));
        if action.is_terminal() {
            self.tags.retain(|tag| *tag < rule);
            self.reached = usize::from(rule.0) + 1;
        }
        match action {
            Action::Log | Action::Delay => {}
            Action::Tag => {
                self.tags.push(rule);
                self.tags.sort();
            }
            Action::Allow => self.verdict = Verdict::Forward,
            Action::Shadow => self.verdict = Verdict::Shadow { rule },
            Action::Divert => self.verdict = Verdict::Divert { rule },
            Action::Close => self.verdict = Verdict::Close { rule },
            Action::Block | Action::Tarpit | Action::Challenge => {
                let limiter = case.limiter.unwrap();
                let next = limiter.period / limiter.limit as u32;
                let empty = seconds(self.hold + next);
                self.refuse(rule, action, Some(empty), 0);
                for quota in self.quotas.iter_mut().filter(|quota| quota.rule == rule) {
                    (quota.remaining, quota.reset) = (0, empty);
                }
            }
        }
    }
}
