//! Rule evaluation for a request: plan → (a store) → decide, and settle once the response is known.
//!
//! Pure. It never waits, counts or responds: it returns which counters to use and reads the store's
//! results. Live traffic and every tool call these functions.

mod ban_id;
mod body_need;
mod candidate_step;
mod compiled_rule;
mod cost;
mod decide;
mod exemption;
mod fixed_keys;
mod hold;
mod index;
mod jitter;
pub mod key;
pub mod key_buffer;
mod key_text;
pub mod plan;
mod planner;
mod prehashed;
mod quota;
pub mod registry;
mod share;
#[cfg(test)]
mod tests;
pub mod trace;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

pub use self::ban_id::{BanId, KeyDigest};
use self::body_need::BodyNeed;
use self::compiled_rule::CompiledRule;
pub use self::fixed_keys::{FixedKey, FixedKeyValue, FixedKeys};
use self::index::{IndexCost, PrefilterIndex, needs};
pub use self::key::{Key, KeyPart, MissingPart};
pub use self::key_text::{KeyTextError, ShownPart, cut_text};
pub use self::plan::{
    BanLength, HeldLeases, KeyStatus, OnStoreFailure, Plan, PlanResult, RuleId, Step, StepOp,
    StepResult, StoreMode,
};
pub use self::prehashed::PrehashedKeys;
use self::registry::RuleRegistry;
use crate::decision::{Action, RuleIndex};
use crate::expr::{EvalContext, FieldFacts, Phase, Predicate, Prefilter, Scalar};
use crate::limit::Limiter;

/// A compiled rule.
pub struct Rule {
    /// The name in logs, metrics and headers.
    pub name: Arc<str>,
    /// The identity of the rule's counters, across reloads.
    pub id: RuleId,
    /// The requests that it counts and mitigates.
    pub scope: RuleScope,
    /// The values that select a counter.
    pub key: Key,
    /// The limiter. `None` for a deny rule, which acts on every matching request.
    pub limiter: Option<Limiter>,
    /// How long a key above the limit is banned.
    pub ban: BanLength,
    /// The cost of a request.
    pub cost: RuleCost,
    /// How far each key's limit differs from that of `limiter`.
    pub jitter: LimitJitter,
    /// The longest hold of a request by `delay` and `tarpit`.
    pub max_delay: Duration,
    /// A second limiter that is evaluated but never enforced.
    pub candidate: Option<CandidateLimit>,
    /// What the rule does with the requests that it mitigates.
    pub action: Action,
    /// Whether the rule decides, logs and counts, but does not act.
    pub dry_run: bool,
    /// The quota headers that it sends.
    pub headers: HeaderStyle,
    /// What the rule does during a store outage.
    pub on_store_failure: OnStoreFailure,
    /// How a fleet shares the rule's counters.
    pub store_mode: StoreMode,
}

/// The cost of a request.
pub enum RuleCost {
    /// Always this many units.
    Fixed(u64),
    /// The value of an integer expression; 1 if it is missing or negative.
    Computed(Scalar),
    /// The number in this response header. A response without a whole number there is not counted.
    Header(HeaderName),
}

/// The largest difference between a key's limit and the rule's, in millionths of the latter. The
/// difference depends only on the rule, the key and the hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitJitter(pub u32);

/// A limiter that is evaluated next to the rule's own and never enforced.
#[derive(Clone, Copy, Debug)]
pub struct CandidateLimit {
    /// The identity of its counters.
    pub id: RuleId,
    /// The limiter.
    pub limiter: Limiter,
}

/// The requests that a rule counts and mitigates.
pub enum RuleScope {
    /// One expression for both.
    Same(Predicate),
    /// Two independent expressions: neither requires the other.
    Separate {
        /// The requests that are counted.
        count: Predicate,
        /// The requests that are mitigated.
        mitigate: Predicate,
    },
    /// The expressions of a rule with a ratio.
    Share {
        /// The requests that are counted.
        count: Predicate,
        /// The requests of which the counted ones are a share.
        total: Predicate,
        /// The requests that are mitigated.
        mitigate: Predicate,
    },
}

/// The quota headers of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    Legacy,
    /// Standard and legacy headers.
    Both,
    /// No quota headers.
    None,
}

/// The rules of one configuration, in file order.
#[derive(Default)]
pub struct RuleSet {
    compiled_rules: Vec<CompiledRule>,
    counts_responses: bool,
    takes_leases: bool,
    body_need: BodyNeed,
    /// Finds the rules to plan for a request. `None` if all rules are evaluated.
    planning: Option<PrefilterIndex>,
    /// Finds the rules to settle for a response. `None` if all rules are evaluated.
    settling: Option<PrefilterIndex>,
    /// Finds the rules that may count the response of a request. `None` if no rule counts responses.
    awaiting: Option<PrefilterIndex>,
}

/// A value with fewer guards than this gets no group. With fewer than twice as many rules, there is
/// no index.
const FEW_GUARDS: usize = 4;

// === impl Rule ===

impl Rule {
    /// A deny rule that blocks the requests of `scope`, with the defaults of all other settings.
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
            store_mode: StoreMode::Exact,
        }
    }

    /// Whether the rule counts only once the response is known, because of `count`, `total` or `cost`. A
    /// rule without a limit counts nothing.
    pub fn counts_response(&self) -> bool {
        let reads = match &self.scope {
            RuleScope::Same(_) => false,
            RuleScope::Separate { count, .. } => count.reads_response(),
            RuleScope::Share { count, total, .. } => {
                count.reads_response() || total.reads_response()
            }
        };
        self.limiter.is_some() && (reads || self.cost.reads_response())
    }

    /// Whether the rule's refusals carry `Retry-After`.
    pub fn refuses(&self) -> bool {
        let refuses = matches!(
            self.action,
            Action::Block | Action::Tarpit | Action::Challenge
        );
        refuses && !self.dry_run
    }

    /// Whether the rule challenges clients.
    pub fn challenges(&self) -> bool {
        self.action == Action::Challenge && !self.dry_run
    }

    /// Whether the rule or its candidate takes a lease for a request in flight.
    pub fn takes_lease(&self) -> bool {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.limiter);
        let limiters = [self.limiter, candidate];
        let mut limiters = limiters.iter().flatten();
        limiters.any(|limiter| limiter.algorithm.holds_leases())
    }

    /// Whether the rule sends quota headers.
    pub fn sends_quota_headers(&self) -> bool {
        self.headers != HeaderStyle::None && self.action == Action::Block && !self.dry_run
    }

    /// The expressions, as `(count, mitigate)`.
    pub fn predicates(&self) -> (&Predicate, &Predicate) {
        match &self.scope {
            RuleScope::Same(both) => (both, both),
            RuleScope::Separate { count, mitigate }
            | RuleScope::Share {
                count, mitigate, ..
            } => (count, mitigate),
        }
    }

    /// `count`, `mitigate` and `total`, if the rule has one.
    pub fn expressions(&self) -> impl Iterator<Item = &Predicate> {
        let (count, mitigate) = self.predicates();
        [count, mitigate].into_iter().chain(self.total())
    }

    /// The requests of which the counted ones are a share. `None` for a rule without a ratio.
    pub fn total(&self) -> Option<&Predicate> {
        match &self.scope {
            RuleScope::Share { total, .. } => Some(total),
            RuleScope::Same(_) | RuleScope::Separate { .. } => None,
        }
    }
}

// === impl RuleSet ===

impl RuleSet {
    /// A set of rules in file order.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self::with_guards(rules, FEW_GUARDS)
    }

    /// `least` is the least number of guards in a group.
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
            body_need: BodyNeed::of(&rules),
            planning: planning.filter(|index| !index.is_idle()),
            settling: many.then(|| index(Phase::Response, needs::to_settle, least)),
            awaiting: counts_responses.then(|| index(Phase::Response, needs::to_await, 1)),
            compiled_rules: CompiledRule::all(rules),
        }
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = (RuleIndex, &Rule)> {
        let compiled_rules = self.compiled_rules.iter();
        compiled_rules.map(|compiled| (compiled.step_template.rule, &compiled.rule))
    }

    /// The rule at `index`. `None` if there is none.
    pub fn get(&self, index: RuleIndex) -> Option<&Rule> {
        self.compiled(index).map(|compiled| &compiled.rule)
    }

    /// Registers the rules and their candidates, and gives them the ids from `registry`.
    pub fn register(&mut self, registry: &mut RuleRegistry) {
        for compiled in &mut self.compiled_rules {
            let rule = &mut compiled.rule;
            rule.id = registry.register(rule.id.identity, &rule.name);
            compiled.step_template.id = rule.id;
            if let Some(candidate) = &mut rule.candidate {
                let name = format!("{} (candidate)", rule.name);
                candidate.id = registry.register(candidate.id.identity, &name);
            }
        }
    }

    /// The identities of the counters of all rules and candidates.
    pub fn identities(&self) -> Vec<u64> {
        let candidates = |rule: &Rule| rule.candidate.as_ref().map(|c| c.id.identity);
        let ids = |rule: &Rule| [Some(rule.id.identity), candidates(rule)];
        let rules = self.iter().map(|(_, rule)| rule);
        rules.flat_map(ids).flatten().collect()
    }

    /// Whether any rule counts responses.
    pub fn counts_responses(&self) -> bool {
        self.counts_responses
    }

    /// Whether a rule may count the response to this request. `unreached` is the first rule that the
    /// request did not reach; `None` if it reached all rules.
    pub fn may_count_response(&self, facts: &dyn FieldFacts, unreached: Option<RuleIndex>) -> bool {
        let mut found = None;
        if let Some(index) = &self.awaiting {
            index.for_each_match(&EvalContext::of(facts), |rule| {
                found = Some(rule);
                ControlFlow::Break(())
            });
        }
        found.is_some_and(|rule| unreached.is_none_or(|first| rule < first))
    }

    /// Whether any rule takes leases.
    pub fn takes_leases(&self) -> bool {
        self.takes_leases
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.compiled_rules.len()
    }

    /// Whether the set has no rules.
    pub fn is_empty(&self) -> bool {
        self.compiled_rules.is_empty()
    }
}
