//! Serves one request: access, drain, endpoint, body, reply, audit line.

use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::event_stream::{EventWriter, StreamControl, StreamEnded};
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult, ReplyBody};
use super::router::{Endpoint, MatchedEndpoint, access_of, endpoint_of};
use super::state::AdminState;
use super::{access, audit, explain, openapi, request_body, rules, status, upstreams};
use crate::gateway::{RejectedConfig, ReloadTrigger};

/// A request to one endpoint.
struct ApiRequest {
    matched: MatchedEndpoint,
    #[expect(dead_code, reason = "no endpoint reads it yet")]
    query: QueryParameters,
    body: Vec<u8>,
    control: Arc<StreamControl>,
}

/// Returns the response to a request.
pub(super) async fn respond(
    state: &Arc<AdminState>,
    request: Request<Incoming>,
    peer: SocketAddr,
    control: Arc<StreamControl>,
) -> Response<ReplyBody> {
    let (head, body) = request.into_parts();
    let reply = process(state, &head, body, control).await;
    let reply = reply.unwrap_or_else(ApiReply::from);
    if let Some(change) = &reply.change {
        audit::log_change(peer, change);
    }
    reply.response
}

async fn process(
    state: &Arc<AdminState>,
    head: &Parts,
    body: Incoming,
    control: Arc<StreamControl>,
) -> ApiResult {
    let path = head.uri.path();
    access::check(head, access_of(path), state.token().as_deref())?;
    let matched = endpoint_of(&head.method, path)?;
    if matched.endpoint.changes() && !state.is_ready() {
        return Err(ApiError::unavailable("the gateway is draining"));
    }
    let query = QueryParameters::parse(head.uri.query())?;
    let body = if access::is_read(&head.method) {
        Vec::new()
    } else {
        request_body::read(body).await?
    };
    let request = ApiRequest {
        matched,
        query,
        body,
        control,
    };
    request.perform(state).await
}

impl ApiRequest {
    async fn perform(&self, state: &Arc<AdminState>) -> ApiResult {
        match self.matched.endpoint {
            Endpoint::Health => Ok(ApiReply::json(&json!({ "status": "ok" }))),
            Endpoint::Ready => Ok(ready(state)),
            Endpoint::Metrics => metrics(state).await,
            Endpoint::Page => Ok(ApiReply::text("text/html; charset=utf-8", PAGE)),
            Endpoint::Script => Ok(ApiReply::text("text/javascript; charset=utf-8", SCRIPT)),
            Endpoint::Style => Ok(ApiReply::text("text/css; charset=utf-8", STYLE)),
            Endpoint::Status => Ok(ApiReply::json(&status::status(state).await)),
            Endpoint::Events => self.events(state),
            Endpoint::Rules => Ok(ApiReply::json(&rules::rules(state).await)),
            Endpoint::Rule => self.rule(state).await,
            Endpoint::Explain => {
                let body = request_body::object(&self.body)?;
                explain::explain(state, &body).await
            }
            Endpoint::Upstreams => {
                let all = upstreams::upstreams(state, &state.snapshot());
                Ok(ApiReply::json(&all))
            }
            Endpoint::SetServer => {
                let body = request_body::object(&self.body)?;
                upstreams::set_server(state, &self.matched.names, &body)
            }
            Endpoint::Reload => reload(state).await,
            Endpoint::OpenApi => Ok(ApiReply::text("application/json", openapi::DOCUMENT)),
            Endpoint::History
            | Endpoint::TopKeys
            | Endpoint::Mitigations
            | Endpoint::RemoveMitigations
            | Endpoint::AddMitigation
            | Endpoint::Client
            | Endpoint::Exemptions
            | Endpoint::AddExemption
            | Endpoint::RemoveExemption => Err(ApiError::unavailable("not available yet")),
        }
    }

    async fn rule(&self, state: &AdminState) -> ApiResult {
        let name = self.matched.names.first().map(String::as_str);
        let rules = rules::rules(state).await;
        let mut rules = rules.into_iter();
        let rule = rules.find(|rule| Some(&*rule.name) == name);
        let unknown = || ApiError::not_found("there is no such rule");
        let rule = rule.ok_or_else(unknown)?;
        let distribution = None;
        Ok(ApiReply::json(&super::objects::RuleDetailObject {
            rule,
            distribution,
        }))
    }

    fn events(&self, state: &Arc<AdminState>) -> ApiResult {
        let (writer, body) = state.streams.open(self.control.clone())?;
        tokio::spawn(write_events(state.clone(), writer));
        let body = ReplyBody::Events(body);
        Ok(ApiReply::with_body("text/event-stream", body))
    }
}

/// The files of the dashboard.
const PAGE: &str = include_str!("dashboard/index.html");
const SCRIPT: &str = include_str!("dashboard/app.js");
const STYLE: &str = include_str!("dashboard/app.css");

fn ready(state: &AdminState) -> ApiReply {
    if state.is_ready() {
        ApiReply::json(&json!({ "status": "ready" }))
    } else {
        let reply = ApiReply::json(&json!({ "status": "not ready" }));
        reply.with_status(StatusCode::SERVICE_UNAVAILABLE)
    }
}

async fn metrics(state: &AdminState) -> ApiResult {
    let live = state.live.clone();
    let text = spawn_blocking(move || live.scrape()).await;
    let text = text.map_err(|_| ApiError::internal())?;
    Ok(ApiReply::text(
        "text/plain; version=0.0.4; charset=utf-8",
        text,
    ))
}

async fn reload(state: &AdminState) -> ApiResult {
    let reloader = state.reloader.clone();
    let reloaded = spawn_blocking(move || reloader.reload(ReloadTrigger::Api)).await;
    match reloaded.map_err(|_| ApiError::internal())? {
        Ok(rules) => {
            let reply = ApiReply::json(&json!({ "ok": true, "rules": rules }));
            Ok(reply.with_change("reload the configuration"))
        }
        Err(rejected) => Err(refused_reload(&rejected)),
    }
}

fn refused_reload(rejected: &RejectedConfig) -> ApiError {
    let errors = status::config_errors(&rejected.errors);
    let first = rejected.errors.first();
    let first = first.map_or_else(String::new, |error| {
        format!(
            ": {}:{}:{}: {}",
            error.file, error.line, error.column, error.message
        )
    });
    ApiError {
        errors: serde_json::to_value(errors).ok(),
        ..ApiError::invalid(format!("the configuration was refused{first}"))
    }
}

/// Writes a tick every second until the client disconnects or the token changes.
async fn write_events(state: Arc<AdminState>, writer: EventWriter) {
    let token = state.token();
    let mut seconds = tokio::time::interval(std::time::Duration::from_secs(1));
    while state.token() == token {
        seconds.tick().await;
        let tick = serde_json::to_string(&status::tick(&state)).unwrap_or_default();
        if let Err(StreamEnded) = writer.send("tick", &tick).await {
            return;
        }
    }
}
