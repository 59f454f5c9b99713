//! Changes the gateway, and describes the result.

use std::sync::mpsc::{Receiver, Sender};

use serde_json::{Value, json};

use super::TopEvent;
use crate::cli::admin_client::{AdminClient, AdminClientError, query};
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::command::{BanTarget, ChangeResult, GatewayChange, UndoneChange};
use crate::cli::top::screen::key_name;

/// How long an exemption lasts.
const EXEMPTION: &str = "1h";

/// Makes changes until the program ends.
pub(super) fn serve(
    client: &AdminClient,
    changes: &Receiver<GatewayChange>,
    events: &Sender<TopEvent>,
) {
    while let Ok(change) = changes.recv() {
        let result = make(client, &change).unwrap_or_else(|error| ChangeResult {
            text: format!("{error}."),
            undo: None,
        });
        if events.send(TopEvent::Changed(result)).is_err() {
            return;
        }
    }
}

fn make(client: &AdminClient, change: &GatewayChange) -> Result<ChangeResult, AdminClientError> {
    match change {
        GatewayChange::Release { name, bans, exempt } => {
            Ok(release(client, name, bans, exempt.as_deref()))
        }
        GatewayChange::Ban { target, duration } => ban(client, target, duration),
        GatewayChange::Undo(undone) => undo(client, undone),
        GatewayChange::Reload => {
            let reloaded = client.call("POST", "/api/reload")?;
            let rules = reloaded.count("rules");
            Ok(ChangeResult {
                text: format!("The configuration is reloaded: {rules} rules."),
                undo: None,
            })
        }
    }
}

/// Unbans keys, and exempts an address. A part that fails does not undo the others.
fn release(
    client: &AdminClient,
    name: &str,
    bans: &[BanTarget],
    exempt: Option<&str>,
) -> ChangeResult {
    let mut undo = UndoneChange::default();
    let (mut done, mut failed, mut scope) = (Vec::new(), Vec::new(), String::new());
    for target in bans {
        match remove(client, target) {
            Ok(removed) => {
                scope = scope_note(&removed);
                undo.restored.push(removed);
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    if !undo.restored.is_empty() {
        done.push("is unbanned");
    }
    if let Some(ip) = exempt {
        let body = json!({ "ip": ip, "duration": EXEMPTION });
        match client.send("POST", "/api/exemptions", &body) {
            Ok(exemption) => {
                scope = scope_note(&exemption);
                undo.unexempted = Some(ip.to_owned());
                done.push("is exempt for 1 h");
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    let mut sentences = Vec::new();
    if !done.is_empty() {
        sentences.push(format!("{name} {}{scope}. z undoes.", done.join(" and ")));
    }
    if let Some(error) = failed.first() {
        sentences.push(format!("{error}."));
    }
    ChangeResult {
        text: sentences.join(" "),
        undo: Some(undo).filter(|_| !done.is_empty()),
    }
}

fn ban(
    client: &AdminClient,
    target: &BanTarget,
    duration: &str,
) -> Result<ChangeResult, AdminClientError> {
    let mut body = json!({ "rule": target.rule, "duration": duration });
    if let Some(body) = body.as_object_mut() {
        let (name, value) = match &target.id {
            Some(id) => ("id", id),
            None => ("key", &target.key),
        };
        body.insert(name.to_owned(), json!(value));
    }
    let banned = client.send("POST", "/api/mitigations", &body)?;
    let (name, scope) = (key_name(&target.key), scope_note(&banned));
    let unbanned = BanTarget {
        id: banned.object("id").as_str().map(str::to_owned),
        ..target.clone()
    };
    Ok(ChangeResult {
        text: format!("{name} is banned for {duration}{scope}. z undoes."),
        undo: Some(UndoneChange {
            unbanned: Some(unbanned),
            ..UndoneChange::default()
        }),
    })
}

fn undo(client: &AdminClient, undone: &UndoneChange) -> Result<ChangeResult, AdminClientError> {
    let mut sentences = Vec::new();
    for ban in &undone.restored {
        client.send("POST", "/api/mitigations", ban)?;
    }
    match undone.restored.len() {
        0 => {}
        1 => sentences.push("The ban is restored."),
        _ => sentences.push("The bans are restored."),
    }
    if let Some(ip) = &undone.unexempted {
        let path = format!("/api/exemptions{}", query(&[("ip", ip)]));
        client.call("DELETE", &path)?;
        sentences.push("The exemption is removed.");
    }
    if let Some(target) = &undone.unbanned {
        remove(client, target)?;
        sentences.push("The ban is removed.");
    }
    Ok(ChangeResult {
        text: sentences.join(" "),
        undo: None,
    })
}

/// Removes a ban and returns it. A hashed or cut key does not identify a ban, so its id is looked up.
fn remove(client: &AdminClient, target: &BanTarget) -> Result<Value, AdminClientError> {
    let rule = ("rule", target.rule.as_str());
    let delete = |name: &str, value: &str| {
        let path = format!("/api/mitigations{}", query(&[rule, (name, value)]));
        client.call("DELETE", &path)
    };
    if let Some(id) = &target.id {
        return delete("id", id);
    }
    delete("key", &target.key).or_else(|error| {
        let listed = [rule, ("q", &target.key), ("limit", "1000")];
        let page = client.get(&format!("/api/mitigations{}", query(&listed)))?;
        let mut bans = page.list("items").iter();
        let own = bans.find(|ban| ban.text("key") == target.key);
        own.map_or(Err(error), |ban| delete("id", ban.text("id")))
    })
}

/// Says that a change applies to this gateway only, because the store cannot be reached.
fn scope_note(object: &Value) -> String {
    let is_node = object.text("scope") == "node";
    if is_node { " on this gateway only" } else { "" }.to_owned()
}
