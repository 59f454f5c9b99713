//! `/api/events`: ticks, decisions and markers as they happen.

use std::net::IpAddr;
use std::sync::Arc;

use super::api_error::ApiError;
use super::event_stream::{EventText, EventWriter, StreamControl, StreamEnded};
use super::objects::SkippedObject;
use super::query::QueryParameters;
use super::reply::{ApiReply, ApiResult, ReplyBody};
use super::rules;
use super::state::AdminState;
use crate::clock::Timestamp;
use crate::observe::activity::{ActionClass, ActivityStream, DecisionFilter, StreamEvents};

/// Opens a stream with the decisions that the query selects.
pub(super) fn events(
    state: &Arc<AdminState>,
    query: &QueryParameters,
    control: Arc<StreamControl>,
) -> ApiResult {
    let filter = filter(state, query)?;
    let (writer, body) = state.streams.open(control)?;
    let stream = state.hub().subscribe(filter);
    tokio::spawn(write_events(state.clone(), writer, stream));
    let body = ReplyBody::Events(body);
    Ok(ApiReply::with_body("text/event-stream", body))
}

fn filter(state: &AdminState, query: &QueryParameters) -> Result<DecisionFilter, ApiError> {
    let rule = query.get("rule");
    if let Some(name) = rule.filter(|name| rules::find(&state.snapshot(), name).is_none()) {
        return Err(ApiError::invalid(format!("there is no rule `{name}`")));
    }
    let action = query.get("action");
    let is_action = |name: &&str| ActionClass::ALL.iter().any(|class| class.name() == *name);
    if let Some(name) = action.filter(|name| !is_action(name)) {
        return Err(ApiError::invalid(format!("there is no action `{name}`")));
    }
    let ip = query.get("ip").map(str::parse::<IpAddr>).transpose();
    let ip = ip.map_err(|_| ApiError::invalid("`ip` must be an address"))?;
    Ok(DecisionFilter {
        rule: rule.map(str::to_owned),
        action: action.map(str::to_owned),
        ip: ip.map(|ip| ip.to_canonical()),
    })
}

/// Writes events until the client disconnects or the token changes.
async fn write_events(state: Arc<AdminState>, writer: EventWriter, stream: ActivityStream) {
    let token = state.token();
    let mut has_started = false;
    loop {
        let mut events = stream.next().await;
        if state.token() != token {
            return;
        }
        let mut text = EventText::default();
        if !has_started {
            let Some(tick) = events.tick.take() else {
                continue;
            };
            text.push("tick", &tick);
            has_started = true;
        }
        write(&events, state.now(), &mut text);
        if let Err(StreamEnded) = writer.send(text).await {
            return;
        }
    }
}

/// Writes events in the order in which a stream has them.
fn write(events: &StreamEvents, now: Timestamp, text: &mut EventText) {
    for decision in &events.decisions {
        text.push("decision", decision);
    }
    for mark in &events.marks {
        text.push("mark", mark);
    }
    if events.skipped > 0 {
        let skipped = SkippedObject {
            ts: now.into(),
            count: events.skipped,
        };
        let json = serde_json::to_string(&skipped);
        text.push("skipped", &json.unwrap_or_default());
    }
    if let Some(tick) = &events.tick {
        text.push("tick", tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_an_order() {
        let events = StreamEvents {
            decisions: vec!["1".into(), "2".into()],
            marks: vec!["3".into()],
            skipped: 4,
            tick: Some("5".into()),
        };
        let mut text = EventText::default();
        write(&events, Timestamp::from_secs(0), &mut text);
        let written = String::from_utf8(text.into_bytes().to_vec()).unwrap();
        assert_eq!(
            written,
            "event: decision\ndata: 1\n\nevent: decision\ndata: 2\n\nevent: mark\ndata: 3\n\n\
             event: skipped\ndata: {\"ts\":\"1970-01-01T00:00:00.000Z\",\"count\":4}\n\n\
             event: tick\ndata: 5\n\n"
        );
    }
}
