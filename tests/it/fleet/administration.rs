//! The admin API of a fleet: what people see and change at one gateway applies to all.

use serde_json::{Value, json};

use super::fleet_gateway::{FleetConfig, FleetGateway};
use super::server::TestServer;
use crate::harness::{Answer, Client, wait_until};

/// A second request is banned.
const RULES: &str = r#"
[[rules]]
name = "scan"
mitigate = 'http.request.uri.path eq "/scan"'
key = ["ip.src"]
limit = 1
period = "1h"
duration = "1h"
"#;

const KEY: &str = "127.0.0.1";

fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn bans(gateway: &FleetGateway) -> Value {
    json(&gateway.admin("/api/mitigations"))
}

fn change(gateway: &FleetGateway, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let client = Client::admin(gateway.process.admin()).method(method, path);
    match body {
        Some(body) => client.json(&body.to_string()).send(),
        None => client.send(),
    }
}

fn unban(gateway: &FleetGateway) -> Answer {
    let path = format!("/api/mitigations?rule=scan&key={KEY}");
    change(gateway, "DELETE", &path, None)
}

#[test]
fn a_ban_is_listed_ended_and_restored_at_another_gateway() {
    let server = TestServer::start(&[]);
    let config = FleetConfig::new(&server.url(), RULES);
    let (one, other) = (config.start(), config.start());
    assert_eq!(one.statuses("/scan", 2), [200, 429]);
    wait_until("the other gateway lists it", || bans(&other)["total"] == 1);
    let item = bans(&other)["items"][0].clone();
    for (field, value) in [
        ("key", json!(KEY)),
        ("by", json!("rule")),
        ("cause", json!("2 × GET /scan in 1 h")),
        ("scope", json!("fleet")),
        ("mitigated", json!(0)),
    ] {
        assert_eq!(item[field], value, "{field}");
    }
    assert_eq!(bans(&other)["likely_false_positives"], 0);
    assert_eq!(json(&other.admin("/api/status"))["store"]["bans"], 1);
    let removed = unban(&other);
    assert_eq!(removed.status, 200, "{}", removed.text());
    wait_until("the key is admitted", || one.statuses("/scan", 1) == [200]);
    let restored = change(&one, "POST", "/api/mitigations", Some(&json(&removed)));
    assert_eq!(restored.status, 201, "{}", restored.text());
    wait_until("the key is refused", || other.statuses("/scan", 1) == [429]);
}

#[test]
fn an_exemption_applies_to_all_gateways() {
    let server = TestServer::start(&[]);
    let config = FleetConfig::new(&server.url(), RULES);
    let (one, other) = (config.start(), config.start());
    one.statuses("/scan", 2);
    let exemption = json!({"ip": KEY, "duration": "1h"});
    let added = change(&one, "POST", "/api/exemptions", Some(&exemption));
    assert_eq!(
        (added.status, &json(&added)["scope"]),
        (201, &json!("fleet"))
    );
    wait_until("the other gateway knows it", || {
        other.statuses("/scan", 2) == [200, 200]
    });
    let path = format!("/api/exemptions?ip={KEY}");
    assert_eq!(change(&other, "DELETE", &path, None).status, 200);
    wait_until("it has ended", || one.statuses("/scan", 2) == [429, 429]);
}
