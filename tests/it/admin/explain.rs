//! `POST /api/explain`: live counters are read, keys can be set, and nothing is counted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Operated, WATCHED, json as body, list};
use crate::harness::{Answer, wait_until};

/// A rule whose key is secret, and missing in most requests.
const SECRET: &str = r#"
[[rules]]
name = "token"
mitigate = 'http.request.uri.path eq "/token"'
key = ['http.request.headers["authorization"]']
missing = "skip"
limit = 3
period = "1h"
"#;

fn explain(gateway: &Operated, url: &str, keys: &Value) -> Answer {
    let request = json!({"method": "GET", "url": url, "ip": "198.51.100.1", "keys": keys});
    let post = gateway.admin().post("/api/explain");
    post.json(&request.to_string()).send()
}

/// What the explanation of a request with these keys says about a rule.
#[track_caller]
fn rule(gateway: &Operated, name: &str, keys: &Value) -> Value {
    let explained = explain(gateway, &format!("/{name}"), keys);
    assert_eq!(explained.status, 200, "{}", explained.text());
    let explained = body(&explained);
    let rules = list(&explained["rules"]).iter();
    rules
        .clone()
        .find(|rule| rule["name"] == name)
        .unwrap()
        .clone()
}

/// The text of the hottest key of a rule.
fn hottest(gateway: &Operated, name: &str) -> String {
    let path = format!("/api/rules/{name}/top");
    wait_until("the key is known", || {
        !list(&gateway.read(&path)).is_empty()
    });
    let key = gateway.read(&path)[0]["key"].clone();
    key.as_str().unwrap().to_owned()
}

#[test]
fn a_hashed_key_is_explained_with_its_counter() {
    let gateway = Operated::run(&format!("{WATCHED}{SECRET}"));
    let client = gateway.client();
    let client = client.header("authorization", "Bearer s3cret");
    client.clone().get("/token").times(2).all_are(200);
    let key = hottest(&gateway, "token");
    assert!(key.starts_with("h:"), "{key}");
    assert_eq!(rule(&gateway, "token", &json!({}))["verdict"], "skip");
    for _ in 0..3 {
        let token = rule(&gateway, "token", &json!({"token": key}));
        assert_eq!(
            (&token["value"], &token["remaining"], &token["key"]),
            (&json!(3), &json!(0), &json!(key))
        );
        assert_eq!(token["verdict"], "counted");
        assert_eq!(token["key_parts"][0]["value"], key);
    }
    client.clone().get("/token").times(1).all_are(200);
    client.clone().get("/token").times(1).all_are(429);
    let token = rule(&gateway, "token", &json!({"token": key}));
    assert_eq!(token["verdict"], "block");
    // The key of another rule stays that of the request.
    assert_eq!(
        rule(&gateway, "session", &json!({"token": key}))["key"],
        "-"
    );
}

#[test]
fn a_hashed_key_is_explained_with_its_ban() {
    let gateway = Operated::run(&format!("{WATCHED}{SECRET}"));
    let client = gateway.client().header("cookie", "sid=s3cret");
    client.get("/session").times(2).last_is(429);
    let ban = gateway.read("/api/mitigations")["items"][0].clone();
    for key in [&ban["key"], &ban["id"]] {
        let session = rule(&gateway, "session", &json!({"session": key}));
        assert_eq!(session["verdict"], "block", "{session}");
        assert_eq!(session["key"], ban["key"]);
        assert!(session["banned_for_ms"].as_u64() > Some(500_000));
    }
}

#[test]
fn the_document_has_every_field() {
    let gateway = Operated::run(WATCHED);
    let explained = body(&explain(&gateway, "/scan", &json!({})));
    let names = |object: &Value| -> BTreeSet<String> {
        let members = object.as_object().unwrap();
        members.keys().cloned().collect()
    };
    let schema = &gateway.read("/api/openapi.json")["components"]["schemas"]["Explanation"];
    assert_eq!(names(&schema["properties"]), names(&explained));
    let required = list(&schema["required"]).iter();
    let required: BTreeSet<String> = required
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(required, names(&explained));
}

/// The response to a live request, the explanation before it, and the same for a refused one.
#[test]
fn an_explanation_is_that_of_the_next_request() {
    let quota = "limit = 3\nperiod = \"1h\"\n";
    let rule = |name: &str, more: &str| {
        let expression = format!("'http.request.uri.path eq \"/{name}\"'");
        format!(
            "[[rules]]\nname = \"{name}\"\nmitigate = {expression}\nkey = [\"ip.src\"]\n{quota}{more}\n"
        )
    };
    let algorithms = [
        "sliding_window",
        "fixed_window",
        "sliding_log",
        "token_bucket",
        "gcra",
    ];
    let rules = algorithms.map(|name| rule(name, &format!("algorithm = \"{name}\"")));
    let gateway = Operated::run(&format!("{WATCHED}{}", rules.concat()));
    for name in algorithms {
        let path = format!("/{name}");
        for used in [1, 2, 3, 3, 3] {
            let explained = body(&explain(&gateway, &path, &json!({})));
            let rules = list(&explained["rules"]);
            let own = rules.iter().find(|rule| rule["name"] == name).unwrap();
            assert_eq!(
                (&own["value"], &own["remaining"]),
                (&json!(used), &json!(3 - used)),
                "{own}"
            );
            let live = gateway.client().from("198.51.100.1").get(&path).send();
            let response = &explained["response"];
            assert_eq!(response["status"], live.status, "{name} {used}");
            let shown = response["headers"]["ratelimit"].as_str().unwrap();
            let (shown, sent) = (quota_of(shown), quota_of(live.header("ratelimit").unwrap()));
            assert_eq!(shown.0, sent.0, "{name} {used}");
            // A second can begin between the two.
            assert!(
                shown.1.abs_diff(sent.1) <= 60,
                "{name} {used}: {shown:?} {sent:?}"
            );
        }
    }
}

/// The parameters `r` and `t` of a `RateLimit` field.
fn quota_of(field: &str) -> (u64, u64) {
    let number = |name: &str| {
        let mut parts = field.split(';').map(str::trim);
        let found = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("{field}")).parse().unwrap()
    };
    (number("r"), number("t"))
}

#[test]
fn unknown_keys_are_refused() {
    let gateway = Operated::run(&format!("{WATCHED}{SECRET}"));
    let unlisted = "none of its bans and hottest keys has this text";
    for (keys, message) in [
        (
            json!({"nothing": "h:0"}),
            "`keys`: rule nothing: there is no such rule",
        ),
        (json!({"denied": "x"}), "it has no limit"),
        (json!({"token": 1}), "it must be a string"),
        (json!({"token": "h:0123456789abcdef"}), unlisted),
        (json!({"share": "198.51.100.1 \"a\"…"}), unlisted),
        (json!({"scan": "nobody"}), "ip.src must be an address"),
        (json!({"scan": "::1 x"}), "the key has 2 parts"),
    ] {
        let answer = explain(&gateway, "/token", &keys);
        assert_eq!(answer.status, 422, "{keys}");
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    let scan = rule(&gateway, "scan", &json!({"scan": "203.0.113.7"}));
    assert_eq!(scan["key"], "203.0.113.7");
}
