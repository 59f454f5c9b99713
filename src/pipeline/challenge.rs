//! Sends challenges: issues the token, and reads the form that the page sends again.

use http::Response;

use super::body;
use super::request_context::RequestContext;
use super::respond::{self, HandledResponse};
use crate::action::{ChallengeAudience, ChallengeResponse, RequestInfo};
use crate::body::Body;
use crate::credential::{ChallengeToken, Nonce, TokenIssue, unix_seconds};
use crate::decision::RuleIndex;
use crate::facts::RequestFacts;
use crate::listen::RequestBody;
use crate::snapshot::Snapshot;

/// Responds with a challenge of `rule`.
pub async fn challenge(
    request: &RequestContext<'_, '_>,
    incoming: RequestBody,
    rule: RuleIndex,
    retry_after: Option<u64>,
) -> HandledResponse {
    let (info, facts, snapshot) = (request.info, request.facts, request.snapshot());
    let audience = audience(info, facts);
    // A form counts as an inspected body as long as it is held.
    let mut reservation = request.state.core.live.process.inspected.reserve(0);
    let (rest, audience) = if audience.can_repeat(info, facts.head.authority()) {
        let most = snapshot.settings.inspect_body as u64;
        let may_hold = |bytes| {
            reservation
                .as_mut()
                .is_some_and(|held| held.extend_to(bytes))
        };
        let (rest, form) = body::read(request, incoming, most, may_hold).await;
        (rest, ChallengeAudience::repeating(form.as_deref()))
    } else {
        (body::discard(request, incoming).await, audience)
    };
    let response = response(snapshot, info, facts, rule, retry_after, audience);
    let metrics = respond::rule_metrics(snapshot, rule);
    if let Some(challenges) = metrics.and_then(|metrics| metrics.challenges.as_ref()) {
        challenges.sent.inc();
    }
    HandledResponse {
        challenge: Some("sent"),
        ..HandledResponse::own(response).leaving(&rest, info)
    }
}

/// Returns what reads the response to a request.
pub fn audience(info: &RequestInfo<'_>, facts: &RequestFacts<'_>) -> ChallengeAudience {
    ChallengeAudience::of(info, facts.head.upgrade.is_some())
}

/// Returns whether the client could not solve a challenge: it speaks gRPC, or has no secure connection.
pub fn is_unsolvable(
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    facts: &RequestFacts<'_>,
) -> bool {
    let proxies = &snapshot.settings.client_ip;
    let is_secure = || proxies.is_secure(facts.connection, facts.headers);
    snapshot.settings.challenge.is_some() && (info.is_grpc() || !is_secure())
}

/// Builds the response with a new token.
pub fn response(
    snapshot: &Snapshot,
    info: &RequestInfo<'_>,
    facts: &RequestFacts<'_>,
    rule: RuleIndex,
    retry_after: Option<u64>,
    audience: ChallengeAudience,
) -> Response<Body> {
    let (Some(config), Some(credentials)) = (&snapshot.settings.challenge, &snapshot.credentials)
    else {
        return respond::refusal(snapshot, info, rule, retry_after);
    };
    let token = ChallengeToken::new(&TokenIssue {
        difficulty: config.difficulty,
        now: unix_seconds(facts.now),
        nonce: nonce(),
        binding: facts.binding(),
        rule: snapshot.rules.get(rule).map_or("", |rule| &rule.name),
    });
    let challenge = ChallengeResponse {
        token: &token.encode(&credentials.ring, &facts.head.host),
        work: &token.work(),
        url: &config.url,
        retry_after,
        audience,
        origins: &config.origins,
    };
    challenge.to_response(info)
}

fn nonce() -> Nonce {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).expect("the operating system had random bytes at the start");
    nonce
}
