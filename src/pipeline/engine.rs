//! The order of rule evaluation: plan → apply → decide, and settle once the response is known.
//!
//! Live traffic, `explain` and the tests call these functions. No other code repeats their order.

use std::future::Future;
use std::rc::Rc;

use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::expr::FieldFacts;
use crate::facts::fields::CLIENT_ADDRESS;
use crate::rules::{FixedKeys, Plan, PlanResult, RuleSet};
use crate::store::{LeaseGuard, OnSettled, StoreHandle};

/// The rules of one configuration and the store that counts for them.
pub struct Engine<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// The calling core's store handle.
    pub store: &'a Rc<StoreHandle>,
}

/// The plan, its result and the leases of one request.
#[derive(Default)]
pub struct Evaluation {
    /// The plan for the store.
    pub plan: Plan,
    /// The store's result.
    pub result: PlanResult,
    /// The leases that the request holds.
    pub leases: Option<LeaseGuard>,
}

/// A response to settle.
pub struct ResponsePhase<'a> {
    /// The facts of the request and its response.
    pub facts: &'a dyn FieldFacts,
    /// Whether rules may count the response.
    pub countable: bool,
    /// The time of the response.
    pub now: Timestamp,
}

// === impl Engine ===

impl Engine<'_> {
    /// Decides a request. `evaluation` and `decision` must be empty; they are filled in place, because moving
    /// them would cost more than filling them.
    #[inline]
    pub fn decide<'a>(
        &'a self,
        facts: &'a dyn FieldFacts,
        now: Timestamp,
        evaluation: &'a mut Evaluation,
        decision: &'a mut Decision,
    ) -> impl Future<Output = ()> + 'a {
        let plan = |plan: &mut Plan| self.rules.plan_into(facts, plan);
        self.decide_planned(plan, facts, now, evaluation, decision)
    }

    /// Decides a request as [`Engine::decide`] does, with `keys` in place of its own.
    pub fn decide_with_keys<'a>(
        &'a self,
        keys: &'a FixedKeys,
        facts: &'a dyn FieldFacts,
        now: Timestamp,
        evaluation: &'a mut Evaluation,
        decision: &'a mut Decision,
    ) -> impl Future<Output = ()> + 'a {
        let plan = |plan: &mut Plan| {
            self.rules.plan_into(facts, plan);
            self.rules.fix_request_keys(keys, facts, plan);
        };
        self.decide_planned(plan, facts, now, evaluation, decision)
    }

    /// Decides a request whose plan `write_plan` writes.
    #[inline]
    async fn decide_planned(
        &self,
        write_plan: impl FnOnce(&mut Plan),
        facts: &dyn FieldFacts,
        now: Timestamp,
        evaluation: &mut Evaluation,
        decision: &mut Decision,
    ) {
        let Evaluation {
            plan,
            result,
            leases,
        } = evaluation;
        if self.is_exempt(facts, now) {
            return decision.exempt(now);
        }
        write_plan(plan);
        if self.rules.takes_leases() {
            plan.lease = self.store.next_lease();
            *leases = plan.leases().map(|held| self.store.hold(held));
        }
        let refusing_rule = self.store.apply(plan, now, result).await;
        self.rules.decide_into(plan, result, decision);
        if let Some(rule) = refusing_rule {
            decision.refuse_without_store(rule);
        }
        // A mitigated request releases its leases immediately.
        if !decision.verdict.is_served() {
            *leases = None;
        }
    }

    /// Returns whether a person has let the client's address pass all rules.
    #[inline]
    fn is_exempt(&self, facts: &dyn FieldFacts, now: Timestamp) -> bool {
        let exemptions = self.store.store().exemptions();
        if exemptions.is_empty() {
            return false;
        }
        let ip = facts.ip(CLIENT_ADDRESS);
        ip.is_some_and(|ip| exemptions.until(ip, now).is_some())
    }

    /// Adds the quota headers' values to `decision`, and counts the response if it is countable. A shadow
    /// response is not counted, but its quota headers look as if it were. The plan is made immediately and
    /// applied after the response: see [`StoreHandle::settle`] for `on_settled` and the returned value.
    pub fn settle(
        &self,
        response: &ResponsePhase<'_>,
        settlement: &mut Evaluation,
        decision: &mut Decision,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        let (facts, unreached) = (response.facts, decision.settle_before);
        let plan = |plan: &mut Plan| self.rules.settle_into(facts, unreached, plan);
        self.settle_planned(plan, response, settlement, decision, on_settled)
    }

    /// Settles as [`Engine::settle`] does, with `keys` in place of those of the request.
    pub fn settle_with_keys(
        &self,
        keys: &FixedKeys,
        response: &ResponsePhase<'_>,
        settlement: &mut Evaluation,
        decision: &mut Decision,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        let (facts, unreached) = (response.facts, decision.settle_before);
        let plan = |plan: &mut Plan| {
            self.rules.settle_into(facts, unreached, plan);
            self.rules.fix_response_keys(keys, facts, unreached, plan);
        };
        self.settle_planned(plan, response, settlement, decision, on_settled)
    }

    /// Settles a response whose plan `write_plan` writes.
    #[inline]
    fn settle_planned(
        &self,
        write_plan: impl FnOnce(&mut Plan),
        response: &ResponsePhase<'_>,
        settlement: &mut Evaluation,
        decision: &mut Decision,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        let facts = response.facts;
        if !response.countable {
            if decision.verdict.poses_as_origin() {
                self.rules.add_shadow_quotas(decision, facts);
            }
            return false;
        }
        let Evaluation { plan, result, .. } = settlement;
        write_plan(plan);
        self.rules.add_response_phase(decision, plan);
        !plan.steps.is_empty() && self.store.settle(plan, response.now, result, on_settled)
    }
}
