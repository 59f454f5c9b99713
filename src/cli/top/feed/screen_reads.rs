//! Reads what each screen shows.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender};

use serde_json::{Value, json};

use super::TopEvent;
use crate::cli::admin_client::{AdminClient, AdminClientError, escaped, query};
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::screen::{
    BanSearch, ExplainSubject, ListedRow, RowKind, ScreenFigures, TopScreen,
};

/// The event for an object of the admin API.
type EventOf = fn(Value) -> TopEvent;

/// What to read.
pub(super) struct ReadRequest {
    pub(super) screen: TopScreen,
    /// The banned key whose ban the rule screen describes.
    pub(super) described_key: Option<String>,
    /// `false` for what changes each second only.
    pub(super) is_complete: bool,
}

type ReadResult<T> = Result<T, AdminClientError>;

/// Reads until the program ends.
pub(super) fn serve(
    client: &AdminClient,
    requests: &Receiver<ReadRequest>,
    events: &Sender<TopEvent>,
) {
    while let Ok(first) = requests.recv() {
        let mut waiting: Vec<ReadRequest> = requests.try_iter().collect();
        let count = waiting.len() + 1;
        let is_complete = first.is_complete || waiting.iter().any(|request| request.is_complete);
        // Only the newest screen is still of interest.
        let newest = waiting.pop().unwrap_or(first);
        let request = ReadRequest {
            is_complete,
            ..newest
        };
        let mut is_sent = read(client, &request, events);
        for _ in 0..count {
            is_sent &= events.send(TopEvent::Read).is_ok();
        }
        if !is_sent {
            return;
        }
    }
}

/// Reads a screen. What cannot be read keeps its last state. Returns `false` if the program ends.
fn read(client: &AdminClient, request: &ReadRequest, events: &Sender<TopEvent>) -> bool {
    let figures = match figures(client, request) {
        Ok(figures) => figures,
        Err(error) => Some(ScreenFigures {
            error: Some(error.to_string()),
            ..ScreenFigures::default()
        }),
    };
    let event = figures.map(|figures| TopEvent::Figures(request.screen.clone(), figures));
    let mut is_sent = event.is_none_or(|event| events.send(event).is_ok());
    if request.is_complete {
        let parts: [(&str, EventOf); 3] = [
            ("/api/status", TopEvent::Status),
            ("/api/rules", TopEvent::Rules),
            ("/api/history", TopEvent::History),
        ];
        for (path, event) in parts {
            // The head of the screen says that the gateway cannot be reached.
            let Ok(object) = client.get(path) else {
                continue;
            };
            is_sent &= events.send(event(object)).is_ok();
        }
    }
    is_sent
}

/// Returns `None` if there is nothing to read.
fn figures(client: &AdminClient, request: &ReadRequest) -> ReadResult<Option<ScreenFigures>> {
    let is_complete = request.is_complete;
    Ok(Some(match &request.screen {
        TopScreen::Overview | TopScreen::Decisions(_) | TopScreen::Help => return Ok(None),
        TopScreen::Rule(name) => rule(client, name, request)?,
        TopScreen::Upstreams => servers(&client.get("/api/upstreams")?, |_, _| true),
        TopScreen::Server { upstream, address } => {
            let is_shown = |name: &str, own: &str| name == upstream && own == address;
            servers(&client.get("/api/upstreams")?, is_shown)
        }
        _ if !is_complete => return Ok(None),
        TopScreen::Bans(search) => bans(client, search)?,
        TopScreen::Ban { rule, key } => ban(client, rule, key)?,
        TopScreen::Client(id) => client_figures(client, id)?,
        TopScreen::Explanation(subject) => explanation(client, subject)?,
    }))
}

fn rule(client: &AdminClient, name: &str, request: &ReadRequest) -> ReadResult<ScreenFigures> {
    let path = format!("/api/rules/{}", escaped(name));
    let keys = client.get(&format!("{path}/top?n=20"))?;
    let keys = keys.as_array().into_iter().flatten();
    let row = |object: &Value| ListedRow {
        kind: RowKind::HotKey,
        rule: name.to_owned(),
        key: object.text("key").to_owned(),
        object: object.clone(),
    };
    let rows = Some(keys.map(row).collect());
    let mut about = None;
    if request.is_complete {
        let key = request.described_key.as_deref();
        let mut parameters = vec![("rule", name), ("limit", "100")];
        parameters.extend(key.map(|key| ("q", key)));
        let bans = client.get(&format!("/api/mitigations{}", query(&parameters)))?;
        about = Some(json!({ "rule": client.get(&path)?, "bans": bans }));
    }
    Ok(ScreenFigures {
        rows,
        about,
        error: None,
    })
}

fn bans(client: &AdminClient, search: &BanSearch) -> ReadResult<ScreenFigures> {
    let mut parameters = vec![("limit", "200")];
    parameters.extend(search.rule.as_deref().map(|rule| ("rule", rule)));
    parameters.extend(search.text.as_deref().map(|text| ("q", text)));
    if search.is_likely_false {
        parameters.push(("view", "likely_false_positives"));
    }
    let page = client.get(&format!("/api/mitigations{}", query(&parameters)))?;
    Ok(ban_figures(page, |_| true))
}

fn ban(client: &AdminClient, rule: &str, key: &str) -> ReadResult<ScreenFigures> {
    let mut parameters = vec![("rule", rule), ("limit", "200")];
    parameters.extend(Some(("q", key)).filter(|_| !key.is_empty()));
    let page = client.get(&format!("/api/mitigations{}", query(&parameters)))?;
    Ok(ban_figures(page, |ban| ban.text("key") == key))
}

fn ban_figures(mut page: Value, is_shown: impl Fn(&Value) -> bool) -> ScreenFigures {
    let items = page.list("items").iter().filter(|ban| is_shown(ban));
    let rows = items.map(|ban| ListedRow::of(RowKind::Ban, ban)).collect();
    if let Some(page) = page.as_object_mut() {
        page.remove("items");
    }
    ScreenFigures {
        rows: Some(rows),
        about: Some(page),
        error: None,
    }
}

fn servers(upstreams: &Value, is_shown: impl Fn(&str, &str) -> bool) -> ScreenFigures {
    let mut rows = Vec::new();
    for upstream in upstreams.as_array().into_iter().flatten() {
        let name = upstream.text("name");
        for server in upstream.list("servers") {
            let address = server.text("address");
            if is_shown(name, address) {
                rows.push(ListedRow {
                    kind: RowKind::Server,
                    rule: name.to_owned(),
                    key: address.to_owned(),
                    object: server.clone(),
                });
            }
        }
    }
    ScreenFigures {
        rows: Some(rows),
        ..ScreenFigures::default()
    }
}

/// Reads what is known about a client. An address about which nothing is known can still be exempted.
fn client_figures(client: &AdminClient, id: &str) -> ReadResult<ScreenFigures> {
    let found = match client.get(&format!("/api/clients/{}", escaped(id))) {
        Ok(found) => found,
        Err(AdminClientError::Refused(why)) => {
            let ip = id.parse::<IpAddr>().ok().map(|_| id);
            json!({ "ip": ip, "unknown": why })
        }
        Err(error) => return Err(error),
    };
    let bans = found.list("bans").iter();
    let bans = bans.map(|ban| ListedRow::of(RowKind::Ban, ban));
    let decisions = found.list("decisions").iter();
    let decisions = decisions.map(|decision| ListedRow::of(RowKind::Decision, decision));
    Ok(ScreenFigures {
        rows: Some(bans.chain(decisions).collect()),
        about: Some(found),
        error: None,
    })
}

/// Explains a request. For a ban, it is the newest one with its key, and nothing is explained if none is recorded.
fn explanation(client: &AdminClient, subject: &ExplainSubject) -> ReadResult<ScreenFigures> {
    let mut figures = ScreenFigures::default();
    match explained(client, subject)? {
        Some(request) => figures.about = Some(client.send("POST", "/api/explain", &request)?),
        None => figures.error = Some("No request of this key was recorded".to_owned()),
    }
    Ok(figures)
}

/// Returns the request to explain. `None` if the gateway has recorded none with the key of a ban.
fn explained(client: &AdminClient, subject: &ExplainSubject) -> ReadResult<Option<Value>> {
    let (rule, key) = match subject {
        ExplainSubject::Request(request) => return Ok(Some(request.clone())),
        ExplainSubject::Ban { rule, key } => (rule, key),
    };
    let found = match client.get(&format!("/api/clients/{}", escaped(key))) {
        // A ban by hand of a key that has sent no request may be of a client that is not known.
        Err(AdminClientError::Refused(_)) => return Ok(None),
        found => found?,
    };
    let decisions = found.list("decisions").iter();
    let mut decisions = decisions.map(|decision| ListedRow::of(RowKind::Decision, decision));
    let own = decisions.find(|row| row.rule == *rule && row.key == *key);
    Ok(own.and_then(|row| row.explain_request()))
}
