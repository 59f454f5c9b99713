//! What explain says of each action, without waiting for any of them.

use serde_json::json;

use super::{human, json};

const RULES: &str = r#"
[[upstreams]]
name = "pot"
servers = ["127.0.0.1:9"]
[[rules]]
name = "tagged"
mitigate = 'starts_with(http.request.uri.path, "/tag")'
action = "tag"
[[rules]]
name = "late"
mitigate = 'http.request.uri.path in {"/delay" "/tag/delay"}'
action = "delay"
max_delay = "90s"
[[rules]]
name = "stuck"
mitigate = 'http.request.uri.path eq "/tarpit"'
action = "tarpit"
max_delay = "1h"
[[rules]]
name = "away"
mitigate = 'http.request.uri.path in {"/divert" "/tag/divert"}'
action = "divert"
upstream = "pot"
[[rules]]
name = "gone"
mitigate = 'http.request.uri.path eq "/close"'
action = "close"
"#;

#[test]
fn each_action_has_its_own_description() {
    for (path, words) in [
        (
            "/tag",
            "forwarded to upstream app, tagged tagged; rule tagged: tag",
        ),
        (
            "/delay",
            "held for 90s, then forwarded to upstream app; rule late: delay",
        ),
        (
            "/tag/delay",
            "held for 90s, then forwarded to upstream app, tagged tagged; rule tagged: tag",
        ),
        ("/tarpit", "held for 3600s, then 429 by rule stuck"),
        (
            "/divert",
            "diverted by rule away: forwarded to upstream pot",
        ),
        (
            "/tag/divert",
            "diverted by rule away: forwarded to upstream pot, tagged tagged",
        ),
        ("/close", "closed without a response by rule gone"),
        ("/", "forwarded to upstream app"),
    ] {
        let url = format!("http://example.com{path}");
        let text = human(RULES, &["GET", &url]);
        assert_eq!(text.lines().next(), Some(words), "{path}");
    }
}

#[test]
fn each_action_is_a_decision() {
    for (path, decision, held, upstream, status) in [
        ("/tag", "tag", 0, "app", json!(200)),
        ("/delay", "delay", 90_000, "app", json!(200)),
        ("/tag/delay", "delay", 90_000, "app", json!(200)),
        ("/tarpit", "tarpit", 3_600_000, "app", json!(429)),
        ("/divert", "divert", 0, "pot", json!(200)),
        ("/close", "close", 0, "app", json!(null)),
        ("/", "forward", 0, "app", json!(200)),
    ] {
        let url = format!("http://example.com{path}");
        let report = json(RULES, &["GET", &url, "--repeat", "2"]);
        assert_eq!(report["decision"], decision, "{path}");
        assert_eq!(report["held_ms"], held, "{path}");
        assert_eq!(report["upstream"], upstream, "{path}");
        assert_eq!(report["response"]["status"], status, "{path}");
        assert_eq!(report["repeat"][1]["status"], status, "{path}");
        let tags = if path.starts_with("/tag") {
            json!(["tagged"])
        } else {
            json!([])
        };
        assert_eq!(report["tags"], tags, "{path}");
    }
}

#[test]
fn a_request_frees_its_slot_before_the_next_one() {
    let place = r#"
        [[rules]]
        name = "place"
        mitigate = 'http.request.uri.path eq "/"'
        key = ["ip.src"]
        algorithm = "concurrency"
        limit = 1
    "#;
    let url = "http://example.com/";
    let report = json(place, &["GET", url, "--repeat", "3"]);
    let repeats = report["repeat"].as_array().unwrap().iter();
    let statuses: Vec<_> = repeats.map(|repeat| repeat["status"].clone()).collect();
    assert_eq!(statuses, [200, 200, 200]);
}

#[test]
fn diverted_requests_are_not_counted() {
    let counting = r#"
        [[rules]]
        name = "answers"
        count = 'http.response.code eq 200'
        mitigate = 'http.request.uri.path eq "/divert"'
        key = ["ip.src"]
        limit = 1
        period = "1h"
    "#;
    let rules = format!("{counting}{RULES}");
    let url = "http://example.com/divert";
    let report = json(&rules, &["GET", url, "--repeat", "4"]);
    assert_eq!(report["decision"], "divert");
}
