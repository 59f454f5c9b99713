//! A report on what each rule did with one request, and why.
//!
//! Pure. It reads the results of plan, store, decide and settle for a finished request and changes
//! nothing. Live traffic does not use it.

mod condition;
mod encounter;
mod reason;
mod words;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::condition::{TracedCondition, TracedValue};
use self::encounter::{RuleEncounter, TracedStatus};
use super::{FixedKeys, MissingPart, Plan, PlanResult, Rule, RuleScope, RuleSet, Step, StepResult};
use crate::clock::Timestamp;
use crate::decision::{Action, Decision, RuleIndex};
use crate::expr::{EvalContext, ExprEnv, FieldFacts, FieldId, NamedLists, Predicate};
use crate::facts::FieldTable;

/// One request's evaluation by the rules, from its plan to its response phase.
pub struct RequestPass<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// The named lists that the rules use.
    pub lists: &'a NamedLists,
    /// The facts that the rules read, with the response if it is one that counts.
    pub facts: &'a dyn FieldFacts,
    /// The keys that replace those of the request.
    pub keys: &'a FixedKeys,
    /// The time of the request.
    pub now: Timestamp,
    /// The plan and the store's result.
    pub planned: (&'a Plan, &'a PlanResult),
    /// The decision about the request.
    pub decision: &'a Decision,
    /// Plan and result of the response phase. `None` if no response was counted.
    pub settled: Option<(&'a Plan, &'a PlanResult)>,
    /// The values that the report must hide.
    pub secrets: &'a dyn SecretValues,
}

/// Knows which values are secret and how to show them.
pub trait SecretValues {
    /// Whether a value read from these fields and map entries is secret.
    fn is_secret(&self, fields: &[FieldId], entries: &[(FieldId, Box<str>)]) -> bool;
    /// The text that replaces a secret value.
    fn hash(&self, value: &[u8]) -> String;
}

/// What one rule did with one request.
#[derive(Clone, Debug)]
pub struct RuleTrace {
    /// The rule's name.
    pub name: Arc<str>,
    /// Whether `count` matched. `None` if it was not evaluated, or reads a response that never came.
    pub count: Option<bool>,
    /// Whether `count` reads the response.
    pub counts_response: bool,
    /// Whether `mitigate` matched. `None` if it was not evaluated.
    pub mitigate: Option<bool>,
    /// The key as logs show it. `None` if the rule has no counter.
    pub key: Option<String>,
    /// The key parts, as written and as counted. `None` if the part is missing.
    pub key_parts: KeyParts,
    /// The units used, at most [`RuleTrace::capacity`]. `None` if the counter was not read or the key is banned.
    pub value: Option<u64>,
    /// The limit of this key, after jitter. `None` if the rule has no limit.
    pub limit: Option<u64>,
    /// The rule's limit, if jitter gives this key another one.
    pub drawn_from: Option<u64>,
    /// The most units admitted at once: the limit, the burst, or the queue plus the request that is
    /// forwarded at once. `None` if the rule has no limit.
    pub capacity: Option<u64>,
    /// The units left. `None` if the counter was not read.
    pub remaining: Option<u64>,
    /// The share that a rule with a ratio counts. `None` if the rule has no ratio, the counters were not read or the key
    /// is banned.
    pub share: Option<TracedShare>,
    /// The cost of the request or its response. `None` if it is not counted.
    pub cost: Option<u64>,
    /// How long the rule holds the request. `None` if it does not.
    pub held_for: Option<Duration>,
    /// How long the key is banned from now on. `None` if it is not banned.
    pub banned_for: Option<Duration>,
    /// What the rule did.
    pub verdict: TraceVerdict,
    /// What its candidate would have done. `None` if there is no candidate or it has no part in the request.
    pub candidate: Option<CandidateTrace>,
    /// The reason, as a short text.
    pub why: String,
    /// The parts of the expressions, under `count` and `mitigate`, or `both` if they are one.
    pub conditions: Vec<(&'static str, TracedCondition)>,
}

/// Key parts, as written and as counted. `None` if the part is missing.
type KeyParts = Vec<(String, Option<String>)>;

/// The share of a rule with a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedShare {
    /// The units of `count`.
    pub count: u64,
    /// The units of `total`.
    pub total: u64,
    /// The share that the count must exceed.
    pub ratio: f64,
}

/// What a rule's candidate would have done with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateTrace {
    /// What it would have done.
    pub verdict: TraceVerdict,
    /// The units used, as [`RuleTrace::value`].
    pub value: Option<u64>,
    /// The candidate's limit for this key.
    pub limit: u64,
    /// The most units that the candidate admits at once.
    pub capacity: u64,
    /// The units left. `None` if the counter was not read.
    pub remaining: Option<u64>,
    /// The share that the candidate counts, as [`RuleTrace::share`].
    pub share: Option<TracedShare>,
    /// How long the candidate would ban the key from now on. `None` if it would not.
    pub banned_for: Option<Duration>,
}

/// What a rule did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceVerdict {
    /// The rule is disabled.
    Disabled,
    /// The request was refused, or another rule ended evaluation, before this rule.
    NotReached,
    /// The rule has no part in the request.
    NoMatch,
    /// A key part is missing, and the rule skips such requests.
    Skip,
    /// The request or its response was counted, and the rule did not act.
    Counted,
    /// `mitigate` matches, but the key is within its limit and not banned.
    Within,
    /// The action was taken.
    Acted(Action),
    /// The action would have been taken; the rule is a dry run.
    Would(Action),
    /// The rule would have challenged the request, but let it pass.
    Passed,
}

/// The traces of all rules if the request was refused before any of them.
pub fn unreached(rules: &RuleSet, why: &str) -> Vec<RuleTrace> {
    let unreached = |rule: &Rule| RuleTrace {
        limit: rule.limiter.map(|limiter| limiter.limit),
        capacity: rule.limiter.map(|limiter| limiter.capacity()),
        counts_response: rule.counts_response(),
        ..RuleTrace::untouched(&rule.name, TraceVerdict::NotReached, why)
    };
    rules.iter().map(|(_, rule)| unreached(rule)).collect()
}

// === impl TracedShare ===

impl fmt::Display for TracedShare {
    /// Writes the share like "31 of 52 (60 %), ratio 0.4". The percentage is rounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            total,
            ratio,
        } = self;
        let percent = (count * 100 + total / 2).checked_div(*total).unwrap_or(0);
        write!(f, "{count} of {total} ({percent} %), ratio {ratio}")
    }
}

// === impl RuleTrace ===

impl RuleTrace {
    /// The trace of a disabled rule.
    pub fn disabled(name: &Arc<str>) -> Self {
        Self::untouched(name, TraceVerdict::Disabled, "disabled: `enabled = false`")
    }

    fn untouched(name: &Arc<str>, verdict: TraceVerdict, why: &str) -> Self {
        Self {
            name: name.clone(),
            count: None,
            counts_response: false,
            mitigate: None,
            key: None,
            key_parts: Vec::new(),
            value: None,
            limit: None,
            drawn_from: None,
            capacity: None,
            remaining: None,
            share: None,
            cost: None,
            held_for: None,
            banned_for: None,
            verdict,
            candidate: None,
            why: why.to_owned(),
            conditions: Vec::new(),
        }
    }
}

// === impl TraceVerdict ===

impl TraceVerdict {
    /// The name of the verdict in the report.
    pub fn name(self) -> String {
        match self {
            TraceVerdict::Disabled => "disabled".into(),
            TraceVerdict::NotReached => "not_reached".into(),
            TraceVerdict::NoMatch => "no_match".into(),
            TraceVerdict::Skip => "skip".into(),
            TraceVerdict::Counted => "counted".into(),
            TraceVerdict::Within => "within".into(),
            TraceVerdict::Acted(action) => action.name().into(),
            TraceVerdict::Would(action) => format!("would_{}", action.name()),
            TraceVerdict::Passed => "passed".into(),
        }
    }
}

// === impl RequestPass ===

impl RequestPass<'_> {
    /// Returns what each rule did, in file order. `detail` adds the parts of the expressions, which
    /// takes most of the time.
    pub fn trace(&self, detail: bool) -> Vec<RuleTrace> {
        if self.decision.is_exempt {
            let why = "not reached: an exemption lets the address pass all rules";
            return unreached(self.rules, why);
        }
        let rules = self.rules.iter();
        rules
            .map(|(index, rule)| self.rule(index, rule, detail))
            .collect()
    }

    fn rule(&self, index: RuleIndex, rule: &Rule, detail: bool) -> RuleTrace {
        let met = self.encounter(index, rule);
        let conditions = if detail {
            self.conditions(rule)
        } else {
            Vec::new()
        };
        let (key, key_parts) = self.key(index, rule).unzip();
        let limiter = met.limiter();
        let limit = limiter.map(|limiter| limiter.limit);
        let own = rule.limiter.map(|limiter| limiter.limit);
        let (value, remaining) = met.own.used().unzip();
        RuleTrace {
            name: rule.name.clone(),
            count: met.counts,
            counts_response: rule.counts_response(),
            mitigate: Some(met.matched.mitigates),
            key,
            value: value.flatten(),
            limit,
            drawn_from: own.filter(|_| own != limit),
            capacity: limiter.map(|limiter| limiter.capacity()),
            remaining,
            share: met.own.share(),
            cost: met.cost(),
            held_for: met.held_for(),
            banned_for: met.own.banned_for(self.now),
            verdict: met.verdict(),
            candidate: met.candidate_trace(),
            why: reason::why(&met, &conditions),
            conditions,
            key_parts: key_parts.unwrap_or_default(),
        }
    }

    /// Returns the key as logs show it, and its parts. `None` if the rule has no counter.
    fn key(&self, index: RuleIndex, rule: &Rule) -> Option<(String, KeyParts)> {
        rule.limiter?;
        if let Some(fixed) = self.keys.of(index) {
            let parts = rule.key.shown_parts(&fixed.text).into_iter();
            let parts = parts.map(|part| (part.field.to_owned(), part.value));
            return Some((fixed.text.clone(), parts.collect()));
        }
        let hash = |bytes: &[u8]| self.secrets.hash(bytes);
        let parts = rule.key.parts(self.facts, &hash);
        let shown = parts
            .iter()
            .map(|(_, value)| value.as_deref().unwrap_or("-"));
        let key = shown.collect::<Vec<_>>().join(" ");
        let parts = parts.into_iter();
        let parts = parts.map(|(text, value)| (text.to_owned(), value));
        Some((key, parts.collect()))
    }

    fn encounter<'a>(&'a self, index: RuleIndex, rule: &'a Rule) -> RuleEncounter<'a> {
        let matched = rule.matches(&EvalContext::of(self.facts));
        let counts = if rule.counts_response() {
            self.settled.map(|_| rule.predicates().0.test(self.facts))
        } else {
            matched.counts.map(|counts| counts && !matched.only_total)
        };
        let traced = |candidate: bool| {
            let of = |(plan, result): (&'a Plan, &'a PlanResult)| {
                found((index, candidate), plan, result)
            };
            TracedStatus {
                planned: of(self.planned),
                settled: self.settled.and_then(of),
            }
        };
        let concerns = rule.op(matched).is_some() || counts == Some(true);
        RuleEncounter {
            matched,
            counts,
            own: traced(false),
            candidate: traced(true),
            missing_part: self
                .missing_part(rule)
                .filter(|_| concerns && self.keys.of(index).is_none()),
            ended_by: self.rule_that_ended(index),
            decision: self.decision,
            now: self.now,
            rule,
        }
    }

    fn missing_part<'a>(&self, rule: &'a Rule) -> Option<&'a str> {
        let skips = rule.limiter.is_some() && rule.key.missing == MissingPart::Skip;
        let mut parts = rule.key.parts.iter().filter(|_| skips);
        let missing_part = parts.find(|part| part.scalar.eval(self.facts).is_none());
        missing_part.map(|part| part.scalar.source())
    }

    fn rule_that_ended(&self, index: RuleIndex) -> Option<&Rule> {
        let decided_by = self.decision.decided_by?;
        let ends =
            decided_by.action.is_terminal() && !decided_by.dry_run && decided_by.rule < index;
        self.rules.get(decided_by.rule).filter(|_| ends)
    }

    fn conditions(&self, rule: &Rule) -> Vec<(&'static str, TracedCondition)> {
        let explained = |label, predicate: &Predicate, allow_response| {
            let env = ExprEnv {
                scheme: &FieldTable,
                lists: self.lists,
                allow_response,
            };
            let condition = TracedCondition::of(predicate, &env, self.facts, self.secrets)?;
            Some((label, condition))
        };
        let written = match &rule.scope {
            RuleScope::Same(both) => [explained("both", both, true), None, None],
            RuleScope::Separate { count, mitigate } => [
                explained("count", count, true),
                explained("mitigate", mitigate, false),
                None,
            ],
            RuleScope::Share {
                count,
                total,
                mitigate,
            } => [
                explained("count", count, true),
                explained("total", total, true),
                explained("mitigate", mitigate, false),
            ],
        };
        written.into_iter().flatten().collect()
    }
}

/// The step and the result of a rule, or of its candidate.
fn found<'a>(
    (rule, candidate): (RuleIndex, bool),
    plan: &'a Plan,
    result: &'a PlanResult,
) -> Option<(&'a Step, &'a StepResult)> {
    let step = |step_result: &StepResult| plan.steps.get(usize::from(step_result.step));
    let mut both = result.steps.iter().filter_map(|f| Some((step(f)?, f)));
    both.find(|(step, _)| step.rule == rule && step.candidate == candidate)
}
