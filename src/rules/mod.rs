//! What the rules say about a request: plan → (a store) → decide, and settle once the answer is
//! known.
//!
//! Pure. It never waits, counts or answers: it says which counters to touch and reads what a store
//! found. Live traffic and every tool go through the same functions.

mod compiled_rule;
mod cost;
mod decide;
mod hold;
mod index;
mod jitter;
pub mod key;
pub mod key_buffer;
pub mod plan;
mod planner;
mod quota;
pub mod registry;
#[cfg(test)]
mod tests;
pub mod trace;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use self::compiled_rule::CompiledRule;
use self::index::{IndexCost, PrefilterIndex, needs};
pub use self::key::{Key, KeyPart, MissingPart};
pub use self::plan::{
    BanLength, HeldLeases, KeyStatus, OnStoreFailure, Plan, PlanResult, RuleId, Step, StepOp,
    StepResult,
};
use self::registry::RuleRegistry;
use crate::decision::{Action, RuleIndex};
use crate::expr::{EvalContext, FieldFacts, Phase, Predicate, Prefilter, Scalar};
use crate::limit::Limiter;

/// A rule, ready to run.
pub struct Rule {
    /// The name in logs, metrics and headers.
    pub name: Arc<str>,
    /// Whose counters it uses, across reloads.
    pub id: RuleId,
    /// What it counts and what it stops.
    pub scope: RuleScope,
    /// Whom it counts.
    pub key: Key,
    /// How many are allowed; `None`: the action on every request that matches.
    pub limiter: Option<Limiter>,
    /// How long passing the limit bans a key.
    pub ban: BanLength,
    /// What a request costs.
    pub cost: RuleCost,
    /// How far each key's limit is from `limiter`'s.
    pub jitter: LimitJitter,
    /// `delay`, `tarpit`: how long a request is held at the most.
    pub max_delay: Duration,
    /// Another limit, decided beside the real one and never enforced.
    pub candidate: Option<CandidateLimit>,
    /// What is done.
    pub action: Action,
    /// Decide, log and count, but do not act.
    pub dry_run: bool,
    /// What a client is told.
    pub headers: HeaderStyle,
    /// What happens while the store is unavailable.
    pub on_store_failure: OnStoreFailure,
}

/// What a request costs.
pub enum RuleCost {
    /// Always this many units.
    Fixed(u64),
    /// What an integer expression says. Where it says nothing, or less than nothing: 1.
    Computed(Scalar),
    /// What this header of the response says. Where it does not say a whole number: nothing.
    Header(HeaderName),
}

/// How far a key's limit may be from the rule's, in millionths of it. The distance comes from the
/// rule, the key and the hour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitJitter(pub u32);

/// A limit that is tried beside a rule's own.
#[derive(Clone, Copy, Debug)]
pub struct CandidateLimit {
    /// Whose counters it uses.
    pub id: RuleId,
    /// The limit.
    pub limiter: Limiter,
}

/// What a rule counts and what it stops.
pub enum RuleScope {
    /// One expression for both.
    Same(Predicate),
    /// Two expressions, never and-ed.
    Separate {
        /// What is counted.
        count: Predicate,
        /// What is stopped.
        mitigate: Predicate,
    },
}

/// Which rate-limit headers a client is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    Legacy,
    /// All of them.
    Both,
    /// None.
    None,
}

/// The rules of one configuration, in file order.
#[derive(Default)]
pub struct RuleSet {
    courses: Vec<CompiledRule>,
    counts_responses: bool,
    takes_leases: bool,
    /// Which rules a request is asked about; `None`: all.
    planning: Option<PrefilterIndex>,
    /// Which rules an answer is asked about; `None`: all.
    settling: Option<PrefilterIndex>,
    /// Which rules may count an answer, as far as its request tells; `None`: none.
    awaiting: Option<PrefilterIndex>,
}

/// With fewer guards than this on a value, it is left to the rules to read it; with fewer than
/// twice as many rules, all of it.
const FEW_GUARDS: usize = 4;

// === impl Rule ===

impl Rule {
    /// A rule that blocks whatever `scope` stops: no limit, and the defaults of everything else.
    pub fn new(name: Arc<str>, id: RuleId, scope: RuleScope) -> Self {
        Self {
            name,
            id,
            scope,
            key: Key::default(),
            limiter: None,
            ban: BanLength::Never,
            cost: RuleCost::Fixed(1),
            jitter: LimitJitter(0),
            max_delay: Duration::ZERO,
            candidate: None,
            action: Action::Block,
            dry_run: false,
            headers: HeaderStyle::Standard,
            on_store_failure: OnStoreFailure::Local,
        }
    }

    /// Whether what it counts, or how much, is known only once there is a response. A rule without
    /// a limit counts nothing.
    pub fn counts_response(&self) -> bool {
        let reads = match &self.scope {
            RuleScope::Same(_) => false,
            RuleScope::Separate { count, .. } => count.reads_response(),
        };
        self.limiter.is_some() && (reads || self.cost.reads_response())
    }

    /// Whether those that it stops are told to come back later.
    pub fn refuses(&self) -> bool {
        matches!(self.action, Action::Block | Action::Tarpit) && !self.dry_run
    }

    /// Whether a request takes a place in flight, of this rule or of its candidate.
    pub fn takes_lease(&self) -> bool {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.limiter);
        let limiters = [self.limiter, candidate];
        let mut limiters = limiters.iter().flatten();
        limiters.any(|limiter| limiter.algorithm.holds_leases())
    }

    /// Whether a client may learn of this rule from headers.
    pub fn sends_quota_headers(&self) -> bool {
        self.headers != HeaderStyle::None && self.action == Action::Block && !self.dry_run
    }

    /// The expressions, as `(count, mitigate)`.
    pub fn predicates(&self) -> (&Predicate, &Predicate) {
        match &self.scope {
            RuleScope::Same(both) => (both, both),
            RuleScope::Separate { count, mitigate } => (count, mitigate),
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// A rule set in file order.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self::with_guards(rules, FEW_GUARDS)
    }

    /// `least`: how many guards make a group.
    fn with_guards(rules: Vec<Rule>, least: usize) -> Self {
        let index = |phase, need: fn(&Rule) -> Prefilter, least| {
            let reads = rules
                .iter()
                .flat_map(|rule| needs::reads_first(rule, phase));
            let read_anyway = &reads.collect();
            let needs: Vec<Prefilter> = rules.iter().map(need).collect();
            PrefilterIndex::new(&needs, IndexCost { least, read_anyway })
        };
        let many = rules.len() >= least.saturating_mul(2);
        let planning = many.then(|| index(Phase::Request, needs::to_plan, least));
        let counts_responses = rules.iter().any(Rule::counts_response);
        Self {
            counts_responses,
            takes_leases: rules.iter().any(Rule::takes_lease),
            planning: planning.filter(|index| !index.is_idle()),
            settling: many.then(|| index(Phase::Response, needs::to_settle, least)),
            awaiting: counts_responses.then(|| index(Phase::Response, needs::to_await, 1)),
            courses: CompiledRule::all(rules),
        }
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = (RuleIndex, &Rule)> {
        let courses = self.courses.iter();
        courses.map(|course| (course.like.rule, &course.rule))
    }

    /// The rule at `index`.
    pub fn get(&self, index: RuleIndex) -> Option<&Rule> {
        self.compiled(index).map(|course| &course.rule)
    }

    /// Registers the rules and their candidates, and gives them the ids from `registry`.
    pub fn register(&mut self, registry: &mut RuleRegistry) {
        for course in &mut self.courses {
            let rule = &mut course.rule;
            rule.id = registry.register(rule.id.identity, &rule.name);
            course.like.id = rule.id;
            if let Some(candidate) = &mut rule.candidate {
                let name = format!("{} (candidate)", rule.name);
                candidate.id = registry.register(candidate.id.identity, &name);
            }
        }
    }

    /// Whose counters these rules use.
    pub fn identities(&self) -> Vec<u64> {
        let candidates = |rule: &Rule| rule.candidate.as_ref().map(|c| c.id.identity);
        let ids = |rule: &Rule| [Some(rule.id.identity), candidates(rule)];
        let rules = self.iter().map(|(_, rule)| rule);
        rules.flat_map(ids).flatten().collect()
    }

    /// Whether any rule wants to see responses.
    pub fn counts_responses(&self) -> bool {
        self.counts_responses
    }

    /// Whether some rule may want to count the answer to this request. `before`: the first rule
    /// that it did not reach.
    pub fn may_count_response(&self, facts: &dyn FieldFacts, before: Option<RuleIndex>) -> bool {
        let mut found = None;
        if let Some(index) = &self.awaiting {
            index.candidates(&EvalContext::of(facts), |rule| {
                found = Some(rule);
                ControlFlow::Break(())
            });
        }
        found.is_some_and(|rule| before.is_none_or(|end| rule < end))
    }

    /// Whether any rule takes leases.
    pub fn takes_leases(&self) -> bool {
        self.takes_leases
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.courses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.courses.is_empty()
    }
}
