//! What the admin port knows about requests: rates, history, hottest keys, clients.

use serde_json::{Value, json};

use super::{Operated, WATCHED, list};
use crate::harness::{Client, wait_until};

/// A client with a session, which fails to log in.
fn bot(gateway: &Operated, session: &str) -> Client {
    let client = gateway.client().from("203.0.113.7");
    let client = client.header("cookie", &format!("sid={session}"));
    client.header("user-agent", "bot/1").get("/login?next=%2F")
}

/// Sums the rates of one list over all steps.
fn sum(rates: &Value) -> f64 {
    list(rates).iter().map(|rate| rate.as_f64().unwrap()).sum()
}

#[test]
fn figures_move_under_traffic() {
    let gateway = Operated::run(WATCHED);
    assert_eq!(gateway.read("/api/rules")[0]["last_matched"], Value::Null);
    let before = gateway.read("/api/status")["tick"].clone();
    assert!(before["ts"].is_string(), "{before}");
    bot(&gateway, "a").times(12).last_is(429);
    gateway.client().get("/").times(5).all_are(200);
    wait_until("the history has them", || {
        let history = gateway.read("/api/history?seconds=60");
        let actions = &history["actions_per_s"];
        sum(&actions["block"]) > 0.0 && sum(&actions["forward"]) > 0.0
    });
    let history = gateway.read("/api/history");
    let login = &history["rules"]["login"];
    assert!(sum(&login["matched_per_s"]) > sum(&login["mitigated_per_s"]));
    let rules = gateway.read("/api/rules");
    assert_eq!(
        (&rules[0]["matched"], &rules[0]["mitigated"]),
        (&json!(12), &json!(10))
    );
    assert_eq!(rules[0]["candidate"]["stricter"], 1);
    wait_until("the key and the time are known", || {
        let rule = &gateway.read("/api/rules")[0];
        rule["keys"] == 1 && rule["last_matched"].is_string()
    });
    assert_eq!(gateway.read("/api/rules")[1]["last_matched"], Value::Null);
    let tick = &gateway.read("/api/status")["tick"];
    assert!(tick["ts"].as_str() > before["ts"].as_str());
    assert!(tick["rules"]["login"]["candidate"]["stricter_per_s"].is_number());
    assert_eq!(tick["rules"]["scan"]["candidate"], Value::Null);
}

#[test]
fn the_history_has_whole_steps_and_the_markers() {
    let gateway = Operated::run(WATCHED);
    for (seconds, steps) in [
        ("", 180),
        ("?seconds=900", 180),
        ("?seconds=6", 2),
        ("?seconds=1", 1),
    ] {
        let history = gateway.read(&format!("/api/history{seconds}"));
        assert_eq!(history["step_ms"], 5000);
        assert!(history["start"].as_str().unwrap().ends_with('Z'));
        for action in ["forward", "block", "challenge", "own"] {
            assert_eq!(
                list(&history["actions_per_s"][action]).len(),
                steps,
                "{action}"
            );
        }
        assert_eq!(
            list(&history["rules"]["scan"]["matched_per_s"]).len(),
            steps
        );
    }
    for wrong in ["0", "901", "-1", "1.5", "all"] {
        let path = format!("/api/history?seconds={wrong}");
        gateway.admin().get(&path).times(1).all_are(422);
    }
    gateway.process.reload("nonsense");
    let history = gateway.read("/api/history?seconds=5");
    let marker = &history["markers"][0];
    assert_eq!(
        (&marker["kind"], &marker["bad"]),
        (&json!("reload"), &json!(true))
    );
}

#[test]
fn a_trial_and_a_candidate_need_a_look() {
    let gateway = Operated::run(WATCHED);
    let ids = || -> Vec<String> {
        let status = gateway.read("/api/status");
        let entries = list(&status["attention"]).iter();
        entries
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut client = 0;
    wait_until("all three are listed", || {
        gateway.client().get("/trial").times(20).all_are(200);
        for _ in 0..3 {
            client += 1;
            let client = format!("2001:db8:0:{client:x}::1");
            gateway
                .client()
                .from(&client)
                .get("/login")
                .times(2)
                .all_are(200);
        }
        bot(&gateway, "a").times(60).last_is(429);
        let ids = ids();
        let wanted = ["rule:login", "candidate:login", "dry_run:trial"];
        wanted.iter().all(|id| ids.iter().any(|own| own == id))
    });
    let status = gateway.read("/api/status");
    assert_eq!(
        (
            &status["attention"][0]["id"],
            &status["attention"][0]["level"]
        ),
        (&json!("rule:login"), &json!("crit"))
    );
    assert_eq!(status["attention"][0]["link"], "rule:login");
}

#[test]
fn the_hottest_key_comes_first_with_its_counter() {
    let gateway = Operated::run(WATCHED);
    bot(&gateway, "s3cret").times(9).last_is(429);
    gateway
        .client()
        .from("198.51.100.1")
        .get("/login")
        .times(1)
        .all_are(200);
    let top = || gateway.read("/api/rules/login/top?n=5");
    wait_until("both keys are known", || list(&top()).len() == 2);
    let top = top();
    let (hottest, other) = (&top[0], &top[1]);
    let key = hottest["key"].as_str().unwrap();
    assert!(
        key.starts_with("203.0.113.7 h:") && !key.contains("s3cret"),
        "{key}"
    );
    assert_eq!(
        hottest["parts"][0],
        json!({"field": "ip.src", "value": "203.0.113.7"})
    );
    assert_eq!(
        (&hottest["count"], &hottest["limit"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(hottest["banned_until"], Value::Null);
    let note = hottest["note"].as_str().unwrap();
    assert!(
        note.starts_with("ZZ, AS64500, ") && note.ends_with(", the candidate would refuse it"),
        "{note}"
    );
    let sample = &hottest["sample"];
    assert_eq!(
        (&sample["method"], &sample["ip"]),
        (&json!("GET"), &json!("203.0.113.7"))
    );
    assert!(!sample.to_string().contains("s3cret"), "{sample}");
    assert_eq!(
        other["parts"][1],
        json!({"field": "http.request.cookies[\"sid\"]", "value": null})
    );
    assert_eq!(other["count"], 1);
    assert_eq!(list(&gateway.read("/api/rules/login/top?n=1")).len(), 1);
    assert_eq!(gateway.read("/api/rules/denied/top"), json!([]));
    for (path, status) in [
        ("login/top?n=0", 422),
        ("login/top?n=101", 422),
        ("nothing/top", 404),
    ] {
        let path = format!("/api/rules/{path}");
        gateway.admin().get(&path).times(1).all_are(status);
    }
    let rule = gateway.read("/api/rules/login");
    assert_eq!(rule["distribution"]["keys"], json!([0, 0, 0, 1, 1, 0]));
    assert_eq!(rule["candidate"]["differing_keys"], 1);
}

#[test]
fn a_banned_key_has_no_count() {
    let gateway = Operated::run(WATCHED);
    gateway
        .client()
        .from("203.0.113.7")
        .get("/.env")
        .times(4)
        .last_is(429);
    wait_until("the key is known", || {
        !list(&gateway.read("/api/rules/scan/top")).is_empty()
    });
    let top = gateway.read("/api/rules/scan/top");
    assert_eq!(
        (&top[0]["key"], &top[0]["count"]),
        (&json!("203.0.113.7"), &json!(0))
    );
    assert!(top[0]["banned_until"].is_string());
}

#[test]
fn a_client_is_found_by_address_key_and_request() {
    let gateway = Operated::run(WATCHED);
    bot(&gateway, "s3cret").times(5).last_is(429);
    gateway
        .client()
        .from("203.0.113.7")
        .get("/.env")
        .times(3)
        .last_is(429);
    let by_address = || gateway.admin().get("/api/clients/203.0.113.7").send();
    wait_until("the decisions are known", || {
        let answer = by_address();
        answer.status == 200 && super::json(&answer)["mitigated"] == 5
    });
    let client = super::json(&by_address());
    assert_eq!(
        (&client["ip"], &client["asn"]),
        (&json!("203.0.113.7"), &json!(64500))
    );
    assert_eq!(
        (&client["country"], &client["forwarded"]),
        (&json!("ZZ"), &Value::Null)
    );
    assert_eq!(client["exempt_until"], Value::Null);
    assert_eq!(client["bans"][0]["rule"], "scan");
    assert_eq!(client["bans"][0]["key"], "203.0.113.7");
    let decisions = list(&client["decisions"]);
    let newest = &decisions[0];
    assert_eq!(
        (&newest["rule"], &newest["path"]),
        (&json!("scan"), &json!("/.env"))
    );
    assert!(newest["ts"].as_str() >= client["window_start"].as_str());
    let login = decisions.iter().find(|one| one["rule"] == "login").unwrap();
    let key = login["key"].as_str().unwrap();
    let by_key = gateway.read(&format!("/api/clients/{}", key.replace(' ', "%20")));
    assert_eq!(
        (&by_key["ip"], &by_key["asn"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(by_key["mitigated"], 3);
    let id = newest["id"].as_str().unwrap();
    assert_eq!(gateway.read(&format!("/api/clients/{id}")), client);
    for unknown in ["198.51.100.1", "2001:db8::1", "nothing", "0123456789abcdef"] {
        let path = format!("/api/clients/{unknown}");
        gateway.admin().get(&path).times(1).all_are(404);
    }
}
