//! The facts and the decision of a request until its response starts.

use std::rc::Rc;
use std::time::{Duration, Instant};

use http::Response;
use tracing::info;

use super::access_entry;
use super::challenge;
use super::engine::{Engine, Evaluation, ResponsePhase};
use super::imitate::Route;
use super::request_state::{LoggedBody, RequestState};
use super::respond::HandledResponse;
use crate::action::{RequestInfo, client_left, cut_off, unanswered};
use crate::clock::{Rfc3339, Timestamp};
use crate::decision::{Decision, RuleEventKind};
use crate::facts::RequestFacts;
use crate::rules::{KeyStatus, Plan, PlanResult};
use crate::snapshot::Snapshot;
use crate::store::{ListedBan, OnSettled, StoreHandle};

/// A request without a response. If it is dropped in this state, the client has disconnected or the gateway has
/// stopped or panicked, and the access log records that.
pub struct RequestContext<'a, 'r> {
    /// The state that lives until the response ends.
    pub state: &'a Rc<RequestState>,
    /// The request data that responses of the gateway depend on.
    pub info: &'a RequestInfo<'a>,
    /// The fields that rules can read.
    pub facts: &'a RequestFacts<'r>,
    /// The route. `None` if no route matches.
    pub route: Option<Route<'a>>,
    /// The decision.
    pub decision: Decision,
    /// The time at which the rules count the request: its arrival, or the end of the inspection of its body.
    pub now: Timestamp,
    /// [`RequestContext::now`] on the monotonic clock.
    pub ready_at: Instant,
    /// When the last hold ended.
    pub released_at: Instant,
    has_response: bool,
}

// === impl RequestContext ===

impl<'a, 'r> RequestContext<'a, 'r> {
    /// Creates a context without a decision.
    #[inline]
    pub fn new(
        state: &'a Rc<RequestState>,
        info: &'a RequestInfo<'a>,
        facts: &'a RequestFacts<'r>,
        route: Option<Route<'a>>,
    ) -> Self {
        Self {
            state,
            info,
            facts,
            route,
            decision: Decision::default(),
            now: facts.now,
            ready_at: state.began,
            released_at: state.began,
            has_response: false,
        }
    }

    /// The configuration.
    pub fn snapshot(&self) -> &'a Snapshot {
        &self.state.snapshot
    }

    /// Makes the rules count the request now, because its body took time to arrive. A store must not see requests in
    /// the order of their heads: a client could count in a window that has passed.
    pub fn restart_clock(&mut self) {
        let core = &self.state.core;
        self.now = core.now();
        self.ready_at = core.instant();
        self.released_at = self.ready_at;
    }

    fn engine(&self) -> Engine<'a> {
        Engine {
            rules: &self.state.snapshot.rules,
            store: &self.state.core.store,
        }
    }
}

impl RequestContext<'_, '_> {
    /// Decides the request, keeps its leases and logs the bans that it starts.
    pub async fn decide(&mut self) {
        self.decision.blocks_shadows = self.info.is_grpc();
        self.decision.blocks_challenges =
            challenge::is_unsolvable(self.snapshot(), self.info, self.facts);
        let mut evaluation = Evaluation::default();
        let engine = self.engine();
        engine
            .decide(self.facts, self.now, &mut evaluation, &mut self.decision)
            .await;
        self.state.hold_leases(evaluation.leases.take());
        self.report_started_bans(&evaluation);
    }

    /// Counts the response, and adds the quota headers' values to the decision.
    pub fn settle(&mut self, handled: &HandledResponse) {
        if !handled.countable && !self.decision.verdict.poses_as_origin() {
            return;
        }
        let response = handled.facts(self.latency(handled));
        let facts = self.facts.with_response(&response);
        let mut settlement = Evaluation::default();
        let on_settled = || -> OnSettled {
            let state = (self.state.snapshot.clone(), self.state.core.store.clone());
            Box::new(move |plan, result| report_started_bans(&state.0, &state.1, plan, result))
        };
        let phase = ResponsePhase {
            facts: &facts,
            countable: handled.countable,
            now: self.state.core.now(),
        };
        let engine = self.engine();
        if engine.settle(&phase, &mut settlement, &mut self.decision, on_settled) {
            self.report_started_bans(&settlement);
        }
    }

    fn report_started_bans(&self, evaluation: &Evaluation) {
        let store = &self.state.core.store;
        report_started_bans(self.snapshot(), store, &evaluation.plan, &evaluation.result);
    }

    /// Starts the response. The access log entry is written when it has ended.
    pub fn start_response(&mut self, handled: HandledResponse) -> Response<LoggedBody> {
        self.has_response = true;
        self.count_events();
        let entry = match &self.state.snapshot.access {
            Some(access) => {
                let response = handled.facts(self.latency(&handled));
                let view = self.facts.with_response(&response);
                access_entry::of(access, self, view, &handled)
            }
            None => Vec::new(),
        };
        // After the access log, which may have been the first to read the cookie.
        self.count_cookie_check();
        let method = self.facts.head.method.clone();
        self.state.log(method, entry, handled)
    }

    /// Logs that a rule closes the connection without a response.
    pub fn close(&mut self) {
        drop(self.start_response(HandledResponse::own(unanswered())));
    }

    /// Returns how long rules held the request. `None` if they did not.
    pub fn held(&self) -> Option<Duration> {
        let held = self.released_at - self.ready_at;
        (!held.is_zero()).then_some(held)
    }

    /// Returns the upstream's latency, or the gateway's for a response of its own.
    pub fn latency(&self, handled: &HandledResponse) -> Duration {
        let own = || self.state.core.instant() - self.released_at;
        handled.upstream_latency.unwrap_or_else(own)
    }

    fn count_events(&self) {
        for event in self.decision.events.iter() {
            let kits = &self.state.snapshot.rule_resources;
            let Some(kit) = kits.get(usize::from(event.rule.0)) else {
                continue;
            };
            match event.event {
                RuleEventKind::Counted => kit.metrics.matched_count.inc(),
                RuleEventKind::Matched => kit.metrics.matched_mitigate.inc(),
                RuleEventKind::Mitigated => kit.metrics.mitigated.inc(),
                RuleEventKind::WouldMitigate => kit.metrics.would_mitigate.inc(),
                RuleEventKind::CandidateActs => kit.metrics.candidate_acts(),
                RuleEventKind::CandidatePasses => kit.metrics.candidate_passes(),
            }
        }
    }
}

impl Drop for RequestContext<'_, '_> {
    fn drop(&mut self) {
        if self.has_response {
            return;
        }
        // A second panic during a panic aborts the process, so do little here.
        if std::thread::panicking() {
            return self.state.log_panic(self.facts);
        }
        let response = if self.state.core.cut.get() {
            cut_off()
        } else {
            client_left()
        };
        drop(self.start_response(HandledResponse::own(response)));
    }
}

/// Logs each ban that started in `result`, and adds it to the fleet's list of bans.
fn report_started_bans(snapshot: &Snapshot, store: &StoreHandle, plan: &Plan, result: &PlanResult) {
    for step_result in &result.steps {
        let KeyStatus::Banned {
            until,
            started: true,
        } = step_result.status
        else {
            continue;
        };
        let Some(step) = plan.steps.get(usize::from(step_result.step)) else {
            continue;
        };
        let Some(rule) = snapshot.rules.get(step.rule).filter(|_| !step.candidate) else {
            continue;
        };
        let hash = |bytes: &[u8]| snapshot.redactor.hash(bytes);
        let key = rule.key.describe(plan.key(step), &hash);
        info!(
            rule = %rule.name,
            %key,
            action = %rule.action.name(),
            dry_run = rule.dry_run,
            until = %Rfc3339(until),
            "banned"
        );
        if !store.store().is_local() {
            let mut ban = ListedBan::started(step.id, plan.key(step), until, result.at);
            ban.offence = result.offence(step_result.step);
            store.index_started_ban(ban, rule.key.list(plan.key(step), &hash).into());
        }
    }
}
