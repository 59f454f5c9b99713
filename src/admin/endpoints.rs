//! Serves one request: access, drain, endpoint, body, reply, audit line.

use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::api_error::ApiError;
use super::dashboard::DashboardFile;
use super::event_stream::StreamControl;
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult, ReplyBody};
use super::router::{Endpoint, MatchedEndpoint, access_of, endpoint_of};
use super::state::AdminState;
use super::{
    access, audit, ban_changes, clients, dashboard, events, exemptions, explain, history,
    mitigations, openapi, request_body, rules, status, top_keys, upstreams,
};
use crate::gateway::{RejectedConfig, ReloadTrigger};

/// A request to one endpoint.
struct ApiRequest {
    matched: MatchedEndpoint,
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
    let known = matched.endpoint.parameters();
    if !known.is_empty() {
        query.allow(known)?;
    }
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
        let query = &self.query;
        match self.matched.endpoint {
            Endpoint::Health => Ok(ApiReply::json(&json!({ "status": "ok" }))),
            Endpoint::Ready => Ok(ready(state)),
            Endpoint::Metrics => metrics(state).await,
            Endpoint::Page => Ok(dashboard_file(&dashboard::PAGE)),
            Endpoint::Script => Ok(dashboard_file(&dashboard::SCRIPT)),
            Endpoint::Style => Ok(dashboard_file(&dashboard::STYLE)),
            Endpoint::Status => Ok(ApiReply::json(&status::status(state).await)),
            Endpoint::Events => events::events(state, query, self.control.clone()),
            Endpoint::Rules => Ok(ApiReply::json(&rules::rules(state).await)),
            Endpoint::Rule => Ok(ApiReply::json(&rules::rule(state, self.name()).await?)),
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
            Endpoint::History => history::history(state, query).await,
            Endpoint::TopKeys => top_keys::top_keys(state, self.name(), query).await,
            Endpoint::Mitigations => mitigations::list(state, query).await,
            Endpoint::RemoveMitigations => ban_changes::remove(state, query).await,
            Endpoint::AddMitigation => {
                let body = request_body::object(&self.body)?;
                ban_changes::add(state, &body).await
            }
            Endpoint::Client => clients::client(state, self.name()).await,
            Endpoint::Exemptions => Ok(exemptions::list(state)),
            Endpoint::AddExemption => {
                let body = request_body::object(&self.body)?;
                exemptions::add(state, &body).await
            }
            Endpoint::RemoveExemption => exemptions::remove(state, query).await,
        }
    }

    /// The first value of a segment in braces.
    fn name(&self) -> &str {
        self.matched.names.first().map_or("", String::as_str)
    }
}

fn dashboard_file(file: &DashboardFile) -> ApiReply {
    ApiReply::text(file.content_type, file.body)
}

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
