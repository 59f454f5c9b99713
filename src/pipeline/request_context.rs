//! The facts and the decision of a request until its response starts.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::Response;

use super::access_entry;
use super::activity::RuleEvidence;
use super::challenge;
use super::engine::{Engine, Evaluation, ResponsePhase};
use super::imitate::Route;
use super::request_state::{LoggedBody, RequestState};
use super::respond::HandledResponse;
use super::started_bans::{BanScene, record_started_bans};
use crate::action::{RequestInfo, client_left, cut_off, unanswered};
use crate::clock::Timestamp;
use crate::decision::{Decision, RuleEventKind};
use crate::facts::RequestFacts;
use crate::snapshot::Snapshot;
use crate::store::OnSettled;

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
    /// Whether the request counts as a decision: not if it is for the challenge path.
    pub is_decision: Cell<bool>,
    /// The key and the counter by which a rule decided. `None` if no rule acted.
    pub(super) evidence: Option<RuleEvidence>,
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
            is_decision: Cell::new(true),
            evidence: None,
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
    /// Decides the request, keeps its leases, and records the keys that it counts and the bans that it starts.
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
        self.record_evaluation(&evaluation);
    }

    /// Counts the response, and adds the quota headers' values to the decision.
    pub fn settle(&mut self, handled: &HandledResponse) {
        if !handled.countable && !self.decision.verdict.poses_as_origin() {
            return;
        }
        let response = handled.facts(self.latency(handled));
        let facts = self.facts.with_response(&response);
        let mut settlement = Evaluation::default();
        let (state, request, snapshot) = (self.state, self.facts, self.snapshot());
        let scene = || BanScene::of(request, snapshot, Some(response.status));
        let on_settled = || -> OnSettled {
            let (scene, snapshot) = (scene().into_owned(), state.snapshot.clone());
            let core = state.core.clone();
            Box::new(move |plan, result| {
                let is_known = || scene.clone();
                record_started_bans(&core, &snapshot, (plan, result), is_known);
            })
        };
        let phase = ResponsePhase {
            facts: &facts,
            countable: handled.countable,
            now: state.core.now(),
        };
        let engine = self.engine();
        let activity = &state.core.activity;
        if engine.settle(&phase, &mut settlement, &mut self.decision, on_settled) {
            let settled = (&settlement.plan, &settlement.result);
            record_started_bans(&state.core, snapshot, settled, scene);
        }
        let sample = || self.sample(Some(response.status));
        activity.count_keys(&settlement.plan, &settlement.result, sample);
    }

    /// Starts the response. The access log entry is written when it has ended.
    pub fn start_response(&mut self, handled: HandledResponse) -> Response<LoggedBody> {
        self.has_response = true;
        self.count_events();
        self.record_response(&handled);
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
        self.state.log((method, self.info.id), entry, handled)
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
