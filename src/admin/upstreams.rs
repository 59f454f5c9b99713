//! `/api/upstreams`: the servers of all upstreams, and draining one.

use serde_json::{Map, Value};

use super::api_error::ApiError;
use super::body_members::BodyMembers;
use super::objects::{ServerObject, UpstreamObject, rounded};
use super::reply::{ApiReply, ApiResult};
use super::server_rates::ServerRates;
use super::state::AdminState;
use crate::snapshot::Snapshot;
use crate::upstream::{ServerStatus, Upstream};

/// Returns all upstreams in the order of the configuration.
pub(super) fn upstreams(state: &AdminState, snapshot: &Snapshot) -> Vec<UpstreamObject> {
    let rates = state.server_rates.lock();
    let upstreams = snapshot.upstreams.iter();
    let object = |upstream: &Upstream| {
        let statuses = upstream.statuses().into_iter();
        UpstreamObject {
            name: upstream.name.clone(),
            balance: upstream.balance.name(),
            servers: statuses
                .map(|status| server(upstream, status, &rates))
                .collect(),
        }
    };
    upstreams.map(|upstream| object(upstream)).collect()
}

/// `PUT /api/upstreams/NAME/SERVER`: drains a server or makes it available again.
pub(super) fn set_server(
    state: &AdminState,
    names: &[String],
    body: &Map<String, Value>,
) -> ApiResult {
    let [name, address] = names else {
        return Err(ApiError::not_found("this path does not exist"));
    };
    BodyMembers(body).allow(&["state"])?;
    let is_drained = match body.get("state").and_then(Value::as_str) {
        Some("drain") => true,
        Some("ready") => false,
        _ => return Err(ApiError::invalid("`state` must be \"drain\" or \"ready\"")),
    };
    let snapshot = state.snapshot();
    let mut upstreams = snapshot.upstreams.iter();
    let Some(upstream) = upstreams.find(|upstream| *upstream.name == **name) else {
        return Err(ApiError::not_found(format!(
            "there is no upstream `{name}`"
        )));
    };
    if !upstream.set_drained(address, is_drained, &state.live.process.servers) {
        let message = format!("upstream `{name}` has no server `{address}`");
        return Err(ApiError::not_found(message));
    }
    let statuses = upstream.statuses().into_iter();
    let rates = state.server_rates.lock();
    let mut servers = statuses.map(|status| server(upstream, status, &rates));
    let changed = servers.find(|server| *server.address == **address);
    let verb = if is_drained { "drain" } else { "make ready" };
    let change = format!("{verb} server {address} of upstream {name}");
    Ok(ApiReply::json(&changed).with_change(change))
}

fn server(upstream: &Upstream, status: ServerStatus, rates: &ServerRates) -> ServerObject {
    let rate = rates.of(&upstream.name, &status.address);
    let is_healthy = status.trouble.is_none();
    ServerObject {
        weight: status.weight,
        backup: status.is_backup,
        state: if status.is_drained { "drain" } else { "ready" },
        health: if is_healthy { "healthy" } else { "unhealthy" },
        reason: status.trouble,
        since: status.since.map(Into::into),
        in_flight: status.figures.in_flight,
        requests_per_s: rounded(rate.requests_per_s),
        error_ratio: rounded(rate.error_ratio),
        p99_ms: rate.p99_ms.map(rounded),
        recent_attempts: rate.attempts,
        recent_errors: rate.errors,
        address: status.address,
    }
}
