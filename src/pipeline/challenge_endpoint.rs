//! Serves the challenge path: verifies solutions, issues clearances and sends the JavaScript module.
//!
//! These requests reach no rule, no route and no upstream. Verification takes at most a tenth of a core's time.

mod solution;

use std::time::Duration;

use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderName, HeaderValue, Method};

use self::solution::PostedSolution;
use super::body;
use super::forward;
use super::request_context::RequestContext;
use super::respond::{self, HandledResponse};
use crate::action::{
    EndpointResponse, GatewayError, PageOrigin, RefusedSolution, is_own_origin, page_origin,
};
use crate::body::media_type_is;
use crate::credential::{ChallengeToken, ClearanceCookie, TokenError, unix_seconds};
use crate::facts::ClientCredentials;
use crate::listen::{DrainOutcome, RequestBody};
use crate::observe::metrics::ChallengeCounters;
use crate::snapshot::{ChallengeConfig, Snapshot};

/// The longest solution, in bytes.
const LONGEST_SOLUTION: u64 = 1 << 10;
/// What the access log says of a solution that was not accepted.
const FAILED: &str = "failed";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A request for the challenge path.
pub struct ChallengeRequest<'a, 'c, 'r> {
    request: &'a RequestContext<'c, 'r>,
    config: &'a ChallengeConfig,
    credentials: &'a ClientCredentials,
    /// The path after the challenge path.
    name: &'a str,
}

// === impl ChallengeRequest ===

impl<'a, 'c, 'r> ChallengeRequest<'a, 'c, 'r> {
    /// Returns `request` if it is for the challenge path. `None` for any other path, and if no rule challenges.
    pub fn of(request: &'a RequestContext<'c, 'r>) -> Option<Self> {
        let snapshot = request.snapshot();
        let config = snapshot.settings.challenge.as_ref()?;
        let name = request.facts.head.path.strip_prefix(&*config.path)?;
        let credentials = snapshot.credentials.as_ref()?;
        config.is_served.then_some(Self {
            request,
            config,
            credentials,
            name,
        })
    }

    /// Responds to the request.
    pub async fn respond(self, incoming: RequestBody) -> HandledResponse {
        let is_solution = self.name == "challenge" && self.request.info.method == Method::POST;
        match forward::fault(
            self.request.snapshot(),
            self.request.facts,
            self.request.state.meter.max.get(),
        ) {
            // Solutions have a limit of their own.
            Some(GatewayError::BodyTooLarge) if is_solution => {}
            Some(fault) => return respond::refuse(self.request, incoming, fault).await,
            None => {}
        }
        if is_solution {
            return self.respond_to_solution(incoming).await;
        }
        let response = match (self.name, self.request.info.method) {
            ("challenge", &Method::OPTIONS) => EndpointResponse::Preflight,
            ("challenge", _) => EndpointResponse::MethodNotAllowed("POST, OPTIONS"),
            ("challenge.js", &(Method::GET | Method::HEAD)) => EndpointResponse::Module,
            ("challenge.js", _) => EndpointResponse::MethodNotAllowed("GET, HEAD"),
            _ => EndpointResponse::NotFound,
        };
        let rest = body::discard(self.request, incoming).await;
        self.finish(&response).leaving(&rest, self.request.info)
    }

    async fn respond_to_solution(self, incoming: RequestBody) -> HandledResponse {
        let info = self.request.info;
        if let Err(refused) = self.check_head() {
            let rest = body::discard(self.request, incoming).await;
            return self.finish_solution(Err(refused)).leaving(&rest, info);
        }
        let (rest, content) = body::read(self.request, incoming, LONGEST_SOLUTION, |_| true).await;
        let checked = match (content, rest.drained) {
            (Some(content), _) => self.verify(&content),
            (None, DrainOutcome::TooLong) => Err(RefusedSolution::TooLarge),
            (None, DrainOutcome::TooSlow) => {
                self.request.state.core.fault(GatewayError::BodyTooSlow);
                let response = GatewayError::BodyTooSlow.to_response(info);
                let handled = HandledResponse {
                    challenge: Some(FAILED),
                    ..HandledResponse::own(response)
                };
                return handled.leaving(&rest, info);
            }
            (None, _) => Err(RefusedSolution::Malformed),
        };
        self.finish_solution(checked).leaving(&rest, info)
    }

    fn finish_solution(&self, checked: Result<HeaderValue, RefusedSolution>) -> HandledResponse {
        let result = if checked.is_ok() { "solved" } else { FAILED };
        let response = checked.map_or_else(EndpointResponse::Refused, EndpointResponse::Solved);
        HandledResponse {
            challenge: Some(result),
            ..self.finish(&response)
        }
    }

    fn finish(&self, response: &EndpointResponse) -> HandledResponse {
        let (info, origins) = (self.request.info, &self.config.origins);
        HandledResponse::own(response.to_response(info, origins))
    }

    /// Checks the origin of the page, the media type and the declared length.
    fn check_head(&self) -> Result<(), RefusedSolution> {
        let headers = self.request.info.headers;
        let is_listed = |origin: &HeaderValue| self.config.origins.contains(origin);
        let authority = self.request.facts.head.authority();
        let is_allowed = match page_origin(headers) {
            PageOrigin::None => true,
            PageOrigin::One(origin) => is_own_origin(origin, authority) || is_listed(origin),
            PageOrigin::Several => false,
        };
        if !is_allowed {
            return Err(RefusedSolution::ForeignOrigin);
        }
        let media = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !media.is_some_and(|media| media_type_is(media, "application/json")) {
            return Err(RefusedSolution::MediaType);
        }
        let declared = self.request.facts.head.body_size();
        if declared.is_some_and(|declared| declared > LONGEST_SOLUTION) {
            return Err(RefusedSolution::TooLarge);
        }
        Ok(())
    }

    /// Verifies a solution and returns the cookie for it.
    fn verify(&self, content: &[u8]) -> Result<HeaderValue, RefusedSolution> {
        let posted = PostedSolution::parse(content).ok_or(RefusedSolution::Malformed)?;
        let facts = self.request.facts;
        let (ring, host, now) = (&self.credentials.ring, &facts.head.host, facts.now);
        let now = unix_seconds(now);
        let token = ChallengeToken::verify(&posted.token, ring, host, now, facts.binding());
        let token = match token {
            Ok(token) => token,
            Err(TokenError::Wrong) => {
                self.other_challenges().wrong.inc();
                return Err(RefusedSolution::Wrong);
            }
            Err(TokenError::Expired { rule }) => {
                self.challenges(rule).expired.inc();
                return Err(RefusedSolution::Expired);
            }
        };
        let challenges = self.challenges(token.rule());
        if !self.verify_work(&token, &posted)? {
            challenges.wrong.inc();
            return Err(RefusedSolution::Wrong);
        }
        challenges.solved.inc();
        let taken = Duration::from_secs(now.saturating_sub(token.issued()).into());
        let metrics = &self.request.state.core.live.process.metrics;
        metrics.challenge_solve.observe(taken);
        Ok(self.cookie(&token))
    }

    /// Verifies the parts of a solution within the core's budget.
    fn verify_work(
        &self,
        token: &ChallengeToken,
        posted: &PostedSolution<'_>,
    ) -> Result<bool, RefusedSolution> {
        let core = &self.request.state.core;
        let mut budget = core.verify_budget.borrow_mut();
        if !budget.admits(core.now()) {
            return Err(RefusedSolution::Busy);
        }
        let start = core.instant();
        let is_solved = token.work().is_solved_by(&posted.parts);
        budget.charge(core.instant() - start);
        Ok(is_solved)
    }

    /// Returns the `Set-Cookie` header with the clearance.
    fn cookie(&self, token: &ChallengeToken) -> HeaderValue {
        let ring = &self.credentials.ring;
        let (name, age) = (ClearanceCookie::NAME, self.config.lifetime);
        let value = ClearanceCookie::for_token(token, ring);
        let value = value.encode(ring, &self.request.facts.head.host);
        // The page of another site can use the cookie only in its own partition.
        let site = if self.is_cross_site() {
            "SameSite=None; Partitioned"
        } else {
            "SameSite=Lax"
        };
        let cookie = format!("{name}={value}; Max-Age={age}; Path=/; Secure; HttpOnly; {site}");
        HeaderValue::from_str(&cookie).expect("the cookie is printable")
    }

    fn is_cross_site(&self) -> bool {
        let headers = self.request.info.headers;
        let site = headers.get(SEC_FETCH_SITE);
        let origin = headers.get(ORIGIN);
        let is_listed = origin.is_some_and(|origin| self.config.origins.contains(origin));
        is_listed && site.is_some_and(|site| site == "cross-site")
    }

    /// Returns the counters of the rule that challenged, which `tag` stands for.
    fn challenges(&self, tag: [u8; 4]) -> &ChallengeCounters {
        let snapshot: &Snapshot = self.request.snapshot();
        let rules = snapshot.rules.iter().zip(&snapshot.rule_resources);
        let mut challenging = rules.filter_map(|((_, rule), resources)| {
            let challenges = resources.metrics.challenges.as_ref()?;
            (ChallengeToken::rule_tag(&rule.name) == tag).then_some(challenges)
        });
        challenging
            .next()
            .unwrap_or_else(|| self.other_challenges())
    }

    fn other_challenges(&self) -> &ChallengeCounters {
        &self
            .request
            .state
            .core
            .live
            .process
            .metrics
            .other_challenges
    }
}
