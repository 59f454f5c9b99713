//! Explanations in a fleet: one gateway explains what others have counted, and changes nothing.

use serde_json::{Value, json};

use super::fleet_gateway::{FleetConfig, FleetGateway, avoid_the_end_of_the_day};
use super::server::TestServer;
use crate::harness::{Client, wait_until};

const RULES: &str = r#"
[[rules]]
name = "login"
mitigate = 'http.request.uri.path eq "/login"'
key = ['http.request.cookies["sid"]']
limit = 20
period = "24h"
[[rules]]
name = "answers"
count = 'http.request.uri.path eq "/login" and http.response.code eq 200'
mitigate = 'http.request.uri.path eq "/login"'
key = ['http.request.cookies["sid"]']
limit = 30
period = "24h"
[[rules]]
name = "scan"
mitigate = 'http.request.uri.path eq "/scan"'
key = ['http.request.cookies["sid"]']
limit = 1
period = "24h"
duration = "1h"
"#;

const COUNTED: usize = 12;

fn send(gateway: &FleetGateway, path: &str, count: usize) -> Vec<u16> {
    let client = gateway.client().header("cookie", "sid=s3cret");
    client.get(path).times(count).statuses()
}

fn explain(gateway: &FleetGateway, path: &str, more: &Value) -> Value {
    let mut request = json!({"method": "GET", "url": path});
    let object = request.as_object_mut().unwrap();
    object.extend(more.as_object().unwrap().clone());
    let post = Client::admin(gateway.process.admin()).post("/api/explain");
    let answer = post.json(&request.to_string()).send();
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

fn with_cookie() -> Value {
    json!({"headers": {"cookie": "sid=s3cret"}})
}

/// The keys of the store with their records.
fn records(server: &TestServer) -> Vec<(String, Option<Vec<u8>>)> {
    let mut names: Vec<String> = server.command("KEYS lockgate:1:*");
    names.retain(|name| !name.contains("{fleet}"));
    names.sort();
    let record = |name: String| {
        let value = server.command(&format!("DUMP {name}"));
        (name, value)
    };
    names.into_iter().map(record).collect()
}

#[track_caller]
fn explains_the_fleet(mode: &str) {
    avoid_the_end_of_the_day();
    let server = TestServer::start(&[]);
    let mode = format!("mode = \"{mode}\"\ntimeout = \"5s\"");
    let config = FleetConfig::new(&server.url(), RULES).store(&mode);
    let (one, other) = (config.start(), config.start());
    assert_eq!(send(&one, "/login", COUNTED), [200; COUNTED]);
    wait_until("the other gateway bans", || send(&one, "/scan", 1) == [429]);
    // Each gateway reports what it has counted with its next exchange.
    let counted = |explained: &Value| explained["rules"][0]["value"].as_u64().unwrap();
    wait_until("the count is in the store", || {
        counted(&explain(&other, "/login", &with_cookie())) > COUNTED as u64 / 2
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (before, first) = (records(&server), explain(&other, "/login", &with_cookie()));
    assert_eq!(first["notes"], json!([]), "{first}");
    assert_eq!(first["decision"], "forward");
    let banned = explain(&other, "/scan", &with_cookie());
    assert_eq!(banned["decision"], "block", "{banned}");
    assert!(banned["rules"][2]["banned_for_ms"].as_u64() > Some(3_500_000));
    for _ in 0..5 {
        let again = explain(&other, "/login", &with_cookie());
        assert_eq!(counted(&again), counted(&first));
    }
    assert_eq!(records(&server), before);
    // The cookie is known by its hash alone.
    let list =
        || -> Value { serde_json::from_slice(&other.admin("/api/mitigations").body).unwrap() };
    // In async mode, the gateway that has started a ban indexes it with the next request of the key.
    wait_until("the other gateway lists the ban", || {
        assert_eq!(send(&one, "/scan", 1), [429]);
        list()["total"] == 1
    });
    let listed = list();
    let ban = &listed["items"][0];
    assert!(ban["key"].as_str().unwrap().starts_with("h:"), "{listed}");
    for key in [&ban["key"], &ban["id"]] {
        let explained = explain(&other, "/scan", &json!({"keys": {"scan": key}}));
        assert_eq!(explained["decision"], "block", "{explained}");
        assert_eq!(explained["rules"][2]["key"], ban["key"]);
    }
}

#[test]
fn the_counts_of_another_gateway_are_explained() {
    explains_the_fleet("exact");
}

#[test]
fn the_reports_of_another_gateway_are_explained() {
    explains_the_fleet("async");
}

/// In exact mode, counts are exact, also those of responses.
#[test]
fn exact_counts_are_explained() {
    let server = TestServer::start(&[]);
    let config = FleetConfig::new(&server.url(), RULES).store("timeout = \"5s\"");
    let (one, other) = (config.start(), config.start());
    assert_eq!(send(&one, "/login", 3), [200; 3]);
    let explained = explain(&other, "/login", &with_cookie());
    let rules = &explained["rules"];
    assert_eq!(
        (&rules[0]["value"], &rules[0]["remaining"]),
        (&json!(4), &json!(16))
    );
    wait_until("the responses are counted", || {
        explain(&other, "/login", &with_cookie())["rules"][1]["value"] == 4
    });
    assert_eq!(send(&other, "/login", 1), [200]);
    let explained = explain(&one, "/login", &with_cookie());
    assert_eq!(explained["rules"][0]["value"], 5);
}

#[test]
fn an_explanation_during_an_outage_says_so() {
    for mode in ["exact", "async"] {
        let server = TestServer::start(&[]);
        let mode = format!("mode = \"{mode}\"\ntimeout = \"50ms\"");
        let gateway = FleetConfig::new(&server.url(), RULES).store(&mode).start();
        assert_eq!(send(&gateway, "/login", 3), [200; 3]);
        server.signal("STOP");
        let explained = explain(&gateway, "/login", &with_cookie());
        let note = "the shared store does not reply: the counters are those of this gateway alone";
        assert_eq!(explained["notes"], json!([note]), "{explained}");
        assert_eq!(explained["rules"][0]["value"], 4, "{explained}");
        server.signal("CONT");
    }
}
