//! Bans and exemptions: listed, made and ended by hand, restored.

use serde_json::{Value, json};

use super::{Operated, WATCHED, json as body, list};
use crate::harness::{Answer, wait_until};

const ADDRESS: &str = "203.0.113.7";

fn scan(gateway: &Operated, address: &str) -> u16 {
    gateway.client().from(address).get("/.env").send().status
}

fn ban(gateway: &Operated, address: &str) {
    assert_eq!((scan(gateway, address), scan(gateway, address)), (200, 429));
}

fn post(gateway: &Operated, path: &str, object: &Value) -> Answer {
    gateway.admin().post(path).json(&object.to_string()).send()
}

fn delete(gateway: &Operated, query: &str) -> Answer {
    let path = format!("/api/mitigations?{query}");
    gateway.admin().method("DELETE", &path).send()
}

#[test]
fn a_ban_is_listed_with_its_figures() {
    let gateway = Operated::run(WATCHED);
    ban(&gateway, ADDRESS);
    assert_eq!(scan(&gateway, ADDRESS), 429);
    wait_until("it has figures", || {
        gateway.read("/api/mitigations")["items"][0]["mitigated"] == 2
    });
    let page = gateway.read("/api/mitigations");
    let item = &page["items"][0];
    for (field, value) in [
        ("rule", json!("scan")),
        ("key", json!(ADDRESS)),
        ("action", json!("block")),
        ("offence", json!(1)),
        ("by", json!("rule")),
        ("addresses", json!(1)),
        ("cause", json!("2 × GET /.env in 1 h")),
        ("scope", json!("fleet")),
    ] {
        assert_eq!(item[field], value, "{field}");
    }
    assert_eq!(item["id"].as_str().unwrap().len(), 32);
    assert!(item["since"].as_str() < item["until"].as_str());
    assert_eq!((&page["total"], &page["next"]), (&json!(1), &Value::Null));
    assert_eq!(
        (&page["all"], &page["likely_false_positives"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(page["manual"], 0);
}

#[test]
fn bans_are_searched_and_paged() {
    let gateway = Operated::run(WATCHED);
    for last in 1..8 {
        ban(&gateway, &format!("198.51.100.{last}"));
    }
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    for _ in 0..4 {
        let page = gateway.read(&format!("/api/mitigations?limit=2&cursor={cursor}"));
        assert_eq!(page["total"], 7);
        seen.extend(
            list(&page["items"])
                .iter()
                .map(|item| item["key"].to_string()),
        );
        cursor = page["next"].as_str().unwrap_or_default().to_owned();
    }
    assert!(cursor.is_empty());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
    let total = |query: &str| gateway.read(&format!("/api/mitigations?{query}"))["total"].clone();
    assert_eq!(total("q=100.3"), 1);
    assert_eq!(
        (total("q=SCAN"), total("rule=scan"), total("rule=login")),
        (json!(7), json!(7), json!(0))
    );
    assert_eq!(
        (total("view=manual"), total("q=nothing")),
        (json!(0), json!(0))
    );
    let answer = gateway.admin().get("/api/mitigations?cursor=x").send();
    let message = "`cursor`: it must be the `next` of a page";
    assert_eq!(body(&answer)["error"], message);
    for (wrong, status) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("cursor=x", 422),
        ("view=x", 422),
        ("vew=all", 422),
        ("limit=1&limit=2", 422),
        ("rule=x", 404),
    ] {
        let path = format!("/api/mitigations?{wrong}");
        gateway.admin().get(&path).times(1).all_are(status);
    }
}

#[test]
fn a_key_part_that_most_bans_share_is_named() {
    let gateway = Operated::run(WATCHED);
    for last in 1..6 {
        let client = gateway.client().from(&format!("198.51.100.{last}"));
        client
            .header("user-agent", "bot one")
            .get("/share")
            .times(2)
            .last_is(429);
    }
    let common = gateway.read("/api/mitigations")["common"].clone();
    let expected = json!([{"rule": "share", "field": "http.user_agent", "value": "bot one", "share_ratio": 1.0}]);
    assert_eq!(common, expected);
}

#[test]
fn a_key_is_unbanned_and_the_unban_is_undone() {
    let gateway = Operated::run(WATCHED);
    ban(&gateway, ADDRESS);
    wait_until("it has figures", || {
        gateway.read("/api/mitigations")["items"][0]["mitigated"] == 1
    });
    let removed = delete(&gateway, &format!("rule=scan&key={ADDRESS}"));
    assert_eq!(removed.status, 200, "{}", removed.text());
    let removed = body(&removed);
    assert_eq!(
        (&removed["key"], &removed["mitigated"]),
        (&json!(ADDRESS), &json!(1))
    );
    assert_eq!(scan(&gateway, ADDRESS), 200);
    assert_eq!(
        delete(&gateway, &format!("rule=scan&key={ADDRESS}")).status,
        404
    );
    let restored = post(&gateway, "/api/mitigations", &removed);
    assert_eq!(restored.status, 201, "{}", restored.text());
    let restored = body(&restored);
    for field in [
        "id",
        "key",
        "until",
        "offence",
        "since",
        "by",
        "cause",
        "mitigated",
        "addresses",
    ] {
        assert_eq!(restored[field], removed[field], "{field}");
    }
    assert_eq!(scan(&gateway, ADDRESS), 429);
    let id = removed["id"].as_str().unwrap();
    assert_eq!(delete(&gateway, &format!("id={id}")).status, 200);
    assert_eq!(scan(&gateway, ADDRESS), 200);
    let mut past = removed;
    past["until"] = "2026-01-01T00:00:00.000Z".into();
    assert_eq!(post(&gateway, "/api/mitigations", &past).status, 422);
    wait_until("all changes are logged", || {
        gateway.process.logged("admin change").len() == 3
    });
}

#[test]
fn a_hashed_key_is_unbanned_by_its_text_or_its_id() {
    let gateway = Operated::run(WATCHED);
    let client = gateway
        .client()
        .from(ADDRESS)
        .header("cookie", "sid=s3cret");
    client.get("/session").times(2).last_is(429);
    let item = gateway.read("/api/mitigations")["items"][0].clone();
    let key = item["key"].as_str().unwrap();
    assert!(key.starts_with("h:"), "{key}");
    let removed = delete(&gateway, &format!("rule=session&key={key}"));
    assert_eq!(removed.status, 200, "{}", removed.text());
    let restored = post(&gateway, "/api/mitigations", &body(&removed));
    assert_eq!(restored.status, 201, "{}", restored.text());
    assert_eq!(gateway.read("/api/mitigations")["items"][0]["key"], key);
    let mut other = body(&restored);
    for text in ["h:0000000000000000", "readable"] {
        other["key"] = text.into();
        // Once for a ban in force, once for a removed one.
        for _ in 0..2 {
            let refused = post(&gateway, "/api/mitigations", &other);
            assert_eq!(refused.status, 422, "{}", refused.text());
            delete(&gateway, &format!("rule=session&key={key}"));
        }
        other["key"] = key.into();
        assert_eq!(post(&gateway, "/api/mitigations", &other).status, 201);
    }
    let by_text = post(
        &gateway,
        "/api/mitigations",
        &json!({"rule": "session", "key": key, "duration": "1h"}),
    );
    assert_eq!(by_text.status, 422);
    assert_eq!(
        delete(&gateway, "rule=session&key=h:0000000000000000").status,
        404
    );
}

#[test]
fn a_key_is_banned_by_hand() {
    let gateway = Operated::run(WATCHED);
    let request =
        json!({"rule": "scan", "key": ADDRESS, "duration": "10m", "note": "support case 7"});
    let banned = post(&gateway, "/api/mitigations", &request);
    assert_eq!(banned.status, 201, "{}", banned.text());
    let banned = body(&banned);
    assert_eq!(
        (&banned["by"], &banned["cause"]),
        (&json!("manual"), &json!("by hand: support case 7"))
    );
    assert_eq!(scan(&gateway, ADDRESS), 429);
    let page = gateway.read("/api/mitigations?view=manual");
    assert_eq!(
        (&page["total"], &page["likely_false_positives"]),
        (&json!(1), &json!(0))
    );
    for (wrong, status) in [
        (
            json!({"rule": "nothing", "key": ADDRESS, "duration": "10m"}),
            404,
        ),
        (
            json!({"rule": "scan", "key": "nobody", "duration": "10m"}),
            422,
        ),
        (
            json!({"rule": "scan", "key": "203.0.113.7 x", "duration": "10m"}),
            422,
        ),
        (
            json!({"rule": "scan", "key": ADDRESS, "duration": "soon"}),
            422,
        ),
        (
            json!({"rule": "scan", "key": ADDRESS, "duration": "10m", "note_": "x"}),
            422,
        ),
        (
            json!({"rule": "scan", "key": "203.0.113.8", "id": banned["id"], "duration": "10m"}),
            422,
        ),
        (json!({"rule": "scan", "key": ADDRESS}), 422),
        (json!({"rule": "scan", "duration": "10m"}), 422),
        (json!({"rule": "denied", "key": "", "duration": "10m"}), 422),
        (
            json!({"rule": "scan", "key": ADDRESS, "duration": "10m", "note": "x".repeat(201)}),
            422,
        ),
        (
            json!({"rule": "scan", "id": "00000000000000000000000000000000", "duration": "10m"}),
            404,
        ),
        (json!({"rule": "scan", "id": "0", "duration": "10m"}), 422),
    ] {
        let answer = post(&gateway, "/api/mitigations", &wrong);
        assert_eq!(answer.status, status, "{wrong}: {}", answer.text());
    }
}

#[test]
fn many_bans_end_at_once() {
    let gateway = Operated::run(WATCHED);
    for last in 1..6 {
        ban(&gateway, &format!("198.51.100.{last}"));
    }
    assert_eq!(delete(&gateway, "").status, 422);
    assert_eq!(delete(&gateway, "rule=&q=").status, 422);
    assert_eq!(delete(&gateway, "rule=nothing").status, 404);
    for (wrong, message) in [
        (
            "rule=scan&kye=198.51.100.1",
            "unknown parameter `kye`; known here: `rule`, `key`, `id`, `q`, `view`",
        ),
        (
            "rule=scan&key=198.51.100.1&key=198.51.100.2",
            "parameter `key` is repeated",
        ),
        (
            "rule=scan&key=198.51.100.1&view=all",
            "`key` selects one ban and `view` several",
        ),
        ("id=0&q=scan", "`id` selects one ban and `q` several"),
        (
            "id=0&key=198.51.100.1",
            "`key` and `id` both select one ban",
        ),
        ("rule=scan&id=", "32 hexadecimal digits"),
    ] {
        let refused = delete(&gateway, wrong);
        assert_eq!(refused.status, 422, "{wrong}");
        assert!(refused.text().contains(message), "{}", refused.text());
    }
    assert_eq!(gateway.read("/api/mitigations")["total"], 5);
    let one = body(&delete(&gateway, "q=100.3"));
    assert_eq!(one, json!({"removed": 1, "scope": "fleet"}));
    assert_eq!(gateway.read("/api/mitigations")["total"], 4);
    assert_eq!(body(&delete(&gateway, "rule=scan"))["removed"], 4);
    assert_eq!(gateway.read("/api/mitigations")["all"], 0);
    assert_eq!(scan(&gateway, "198.51.100.1"), 200);
}

#[test]
fn an_exempt_client_passes_all_rules() {
    let gateway = Operated::run(WATCHED);
    ban(&gateway, ADDRESS);
    let request = json!({"ip": ADDRESS, "duration": "1h", "note": "partner"});
    let added = post(&gateway, "/api/exemptions", &request);
    assert_eq!(added.status, 201, "{}", added.text());
    let added = body(&added);
    assert_eq!(
        (&added["ip"], &added["note"]),
        (&json!(ADDRESS), &json!("partner"))
    );
    assert_eq!(scan(&gateway, ADDRESS), 200);
    assert_eq!(gateway.read("/api/exemptions"), json!([added]));
    let client = gateway.read(&format!("/api/clients/{ADDRESS}"));
    assert_eq!(client["exempt_until"], added["until"]);
    let network = json!({"ip": "198.51.100.7/24", "duration": "24h"});
    assert_eq!(
        body(&post(&gateway, "/api/exemptions", &network))["ip"],
        "198.51.100.0/24"
    );
    for (wrong, message) in [
        (json!({"ip": ADDRESS, "duration": "25h"}), "24 hours"),
        (json!({"ip": "nobody", "duration": "1h"}), "`ip`"),
        (json!({"ip": ADDRESS}), "`duration`"),
        (
            json!({"ip": ADDRESS, "duration": "1h", "until": 1}),
            "unknown member",
        ),
    ] {
        let answer = post(&gateway, "/api/exemptions", &wrong);
        assert_eq!(answer.status, 422, "{wrong}");
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    let remove = |query: &str| {
        let path = format!("/api/exemptions{query}");
        gateway.admin().method("DELETE", &path).send().status
    };
    assert_eq!((remove(""), remove("?ip=192.0.2.1")), (422, 404));
    assert_eq!(remove(&format!("?ip={ADDRESS}")), 200);
    assert_eq!(scan(&gateway, ADDRESS), 429);
}

#[test]
fn the_audit_line_of_a_rule_without_key_has_words_for_it() {
    let rule = "[[rules]]\nname = \"global\"\nmitigate = 'true'\nlimit = 100\nperiod = \"1m\"\n";
    let gateway = Operated::run(&format!("{WATCHED}{rule}"));
    let request = json!({"rule": "global", "key": "", "duration": "10m"});
    assert_eq!(post(&gateway, "/api/mitigations", &request).status, 201);
    assert_eq!(delete(&gateway, "rule=global&key=").status, 200);
    for change in [
        "ban all requests by global until ",
        "unban all requests of global",
    ] {
        wait_until("the change is logged", || {
            let lines = gateway.process.logged("admin change");
            lines.iter().any(|line| line.contains(change))
        });
    }
}
