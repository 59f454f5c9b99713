//! `/api/exemptions`: addresses and networks that no rule acts on for a limited time.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use ipnet::IpNet;
use serde_json::{Map, Value};

use super::api_error::ApiError;
use super::body_members::BodyMembers;
use super::mitigations::refused;
use super::objects::ExemptionObject;
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult};
use super::state::AdminState;
use crate::store::{AdminNote, ChangeScope, ExemptionEntry};

/// The longest exemption.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// `GET /api/exemptions`.
pub(super) fn list(state: &AdminState) -> ApiReply {
    let entries = state.store.exemptions();
    ApiReply::json(&entries.iter().map(object).collect::<Vec<_>>())
}

/// `POST /api/exemptions`.
pub(super) async fn add(state: &AdminState, body: &Map<String, Value>) -> ApiResult {
    let body = BodyMembers(body);
    body.allow(&["ip", "duration", "note"])?;
    let network = network(body.required("ip")?)?;
    let duration = body.duration("duration")?;
    if duration > LONGEST {
        let message = "`duration`: an exemption lasts at most 24 hours";
        return Err(ApiError::invalid(message));
    }
    let note = body.text("note")?.unwrap_or_default();
    let now = state.now();
    let entry = ExemptionEntry {
        network,
        since: now,
        until: now.plus(duration),
        note: AdminNote::new(note).map_err(refused)?,
        scope: ChangeScope::Fleet,
    };
    let added = state.store.exempt(entry).await.map_err(refused)?.record;
    let change = format!(
        "exempt {} until {}: {note}",
        ip_text(&added),
        object(&added).until
    );
    let reply = ApiReply::json(&object(&added)).with_status(StatusCode::CREATED);
    Ok(reply.with_change(change))
}

/// `DELETE /api/exemptions?ip=`.
pub(super) async fn remove(state: &AdminState, query: &QueryParameters) -> ApiResult {
    let ip = query.get("ip");
    let ip = ip.ok_or_else(|| ApiError::invalid("`ip` is required"))?;
    let removed = state.store.end_exemption(network(ip)?).await;
    let removed = removed.map_err(refused)?;
    let entry = ExemptionEntry {
        scope: removed.scope,
        ..removed.record
    };
    let change = format!("end the exemption of {}", ip_text(&entry));
    Ok(ApiReply::json(&object(&entry)).with_change(change))
}

fn object(entry: &ExemptionEntry) -> ExemptionObject {
    let note = entry.note.as_str();
    ExemptionObject {
        ip: ip_text(entry),
        since: entry.since.into(),
        until: entry.until.into(),
        note: (!note.is_empty()).then(|| note.to_owned()),
        scope: entry.scope.name(),
    }
}

/// The address, or the network if it has several.
fn ip_text(entry: &ExemptionEntry) -> String {
    let network = entry.network;
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

fn network(text: &str) -> Result<IpNet, ApiError> {
    let address = text
        .parse::<IpAddr>()
        .map(|ip| IpNet::from(ip.to_canonical()));
    let wrong = |_| ApiError::invalid("`ip` must be an address or a network");
    address.or_else(|_| text.parse()).map_err(wrong)
}
