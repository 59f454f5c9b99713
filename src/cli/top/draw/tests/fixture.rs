//! An attack on a login, as docs/operations.md shows it.

use serde_json::{Value, json};

use crate::cli::top::command::TopKey;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::{ListedRow, RowKind, ScreenFigures, StreamFilter};
use crate::clock::{Rfc3339, Timestamp};

/// 2026-11-18T03:14:07Z.
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_794_971_647);

const JA4: &str = "t13i190800_9dc949149365_97f8aa674fd9";

/// A time so many seconds after `NOW`, or before it.
fn at(seconds: i64) -> String {
    let secs = NOW.as_secs().saturating_add_signed(seconds);
    Rfc3339(Timestamp::from_secs(secs)).to_string()
}

/// A series of 180 steps that rises from `low` to `high` after two fifths.
fn series(low: f64, high: f64) -> Vec<f64> {
    let value = |step: i32| {
        let rise = (f64::from(step - 72) / 18.0).clamp(0.0, 1.0);
        low + (high - low) * rise
    };
    (0..180).map(value).collect()
}

/// Name, limit, period, action, ban length, matched, mitigated, keys and bans of a rule.
type RuleFixture = (
    &'static str,
    u64,
    &'static str,
    &'static str,
    &'static str,
    f64,
    f64,
    u64,
    u64,
);

const RULES: [RuleFixture; 10] = [
    ("office", 0, "", "allow", "", 21.0, 21.0, 0, 0),
    ("bad-agents", 0, "", "close", "", 2.2, 2.2, 0, 0),
    ("logins-at-once", 5, "", "block", "", 92.0, 14.0, 61, 0),
    (
        "login-stuffing",
        5,
        "1m",
        "shadow",
        "10m",
        622.0,
        594.0,
        1_609,
        419,
    ),
    ("code-guessing", 5, "15m", "block", "1h", 0.8, 0.1, 38, 1),
    (
        "catalogue-scrape",
        500,
        "10m",
        "shadow",
        "1h",
        448.0,
        118.0,
        2_214,
        1,
    ),
    (
        "pages-too-fast",
        60,
        "1m",
        "delay",
        "",
        610.0,
        15.0,
        18_204,
        0,
    ),
    ("search-flood", 30, "1m", "block", "", 64.0, 9.5, 4_410, 0),
    ("plan-silver", 600, "1m", "block", "", 236.0, 2.1, 212, 0),
    ("invite-spam", 10, "1h", "shadow", "1d", 1.4, 0.6, 83, 1),
];

fn rule(fixture: &RuleFixture) -> Value {
    let (name, limit, period, action, duration, _, _, keys, bans) = *fixture;
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "name": name, "enabled": true, "dry_run": name == "search-flood", "limit": limit, "period": given(period),
        "algorithm": (limit > 0).then_some(if period.is_empty() { "concurrency" } else { "sliding_window" }),
        "key": ["ip.src", "tls.ja4"], "action": action, "duration": given(duration), "escalate": null, "burst": null,
        "count": "http.request.uri.path eq \"/login\" and http.response.code in {401 403}",
        "mitigate": "http.request.uri.path eq \"/login\" or starts_with(http.request.uri.path, \"/account\")",
        "keys": keys, "bans": bans,
        "candidate": (name == "plan-silver").then(|| json!({"algorithm": "gcra", "limit": 300, "period": "1m"})),
    })
}

fn tick() -> Value {
    let rate = |fixture: &RuleFixture| {
        let (name, _, _, _, _, matched, mitigated, keys, bans) = *fixture;
        let is_dry_run = name == "search-flood";
        let own = json!({
            "matched_per_s": matched, "mitigated_per_s": if is_dry_run { 0.0 } else { mitigated },
            "would_mitigate_per_s": if is_dry_run { mitigated } else { 0.0 }, "keys": keys, "bans": bans,
            "candidate": (name == "plan-silver").then(|| json!({"stricter_per_s": 9.8, "laxer_per_s": 0.2})),
        });
        (name.to_owned(), own)
    };
    let rules: serde_json::Map<_, _> = RULES.iter().map(rate).collect();
    json!({
        "ts": at(0), "requests_per_s": 1_897.0, "connections": 8_014, "latency_ms": {"p50": 12.1, "p99": 228.0},
        "actions_per_s": {"forward": 1_140.2, "delay": 15.0, "shadow": 712.6, "block": 16.1, "close": 2.2, "own": 11.0},
        "rules": rules,
    })
}

fn history() -> Value {
    let own = |fixture: &RuleFixture| {
        let (name, .., matched, mitigated, _, _) = *fixture;
        let own = json!({"matched_per_s": series(matched / 9.0, matched), "mitigated_per_s": series(0.0, mitigated)});
        (name.to_owned(), own)
    };
    let rules: serde_json::Map<_, _> = RULES.iter().map(own).collect();
    json!({
        "step_ms": 5_000, "start": at(-900), "rules": rules,
        "actions_per_s": {"forward": series(1_100.0, 1_140.0), "shadow": series(0.0, 712.0), "block": series(2.0, 16.0)},
    })
}

fn status() -> Value {
    let entry = |level: &str, text: &str, detail: &str, since: i64| json!({"level": level, "text": text, "detail": detail, "since": at(since), "link": null});
    let mut entries = vec![
        entry(
            "crit",
            "The last reload was refused",
            "gateway.toml:112:14: unknown field `http.request.uri.pth`.",
            -251,
        ),
        entry(
            "crit",
            "login-stuffing shadows 594 requests per second",
            "0 per second 15 minutes ago. 419 active bans.",
            -540,
        ),
        entry(
            "warn",
            "Store redis is degraded",
            "No reply within 25 ms.",
            -134,
        ),
        entry(
            "warn",
            "app: 10.0.4.13:9000 is unhealthy",
            "Connection refused.",
            -366,
        ),
        entry("note", "7 bans are likely false positives", "", -300),
    ];
    entries[4]["link"] = json!("bans:likely_false_positives");
    json!({
        "version": "0.4.0", "instance": "edge-fra-1", "state": "running", "uptime_s": 1_044_140,
        "connections": {"open": 8_014, "max": 100_000}, "held": {"now": 231, "max": 10_000},
        "store": {"kind": "redis", "state": "degraded"}, "attention": entries,
        "certificates": [{"name": "shop.example", "not_after": at(23 * 86_400 + 3_600)}],
    })
}

/// A gateway during an attack.
pub(super) fn attacked() -> TopModel {
    let mut model = TopModel::new(NOW);
    model.take_status(status());
    model.take_rules(&RULES.iter().map(rule).collect());
    model.take_history(&history());
    model.take_tick(tick());
    for _ in 0..3 {
        model.press(TopKey::Down);
    }
    model
}

fn give(model: &mut TopModel, rows: Vec<ListedRow>, about: Value) {
    let figures = ScreenFigures {
        rows: Some(rows),
        about: Some(about),
        error: None,
    };
    model.take_figures(&model.screen.clone(), figures);
}

fn ban(key: &str, seconds: i64) -> Value {
    json!({
        "id": "00", "rule": "login-stuffing", "key": key, "action": "shadow", "until": at(seconds), "offence": 1,
        "since": at(seconds - 600), "by": "rule", "mitigated": 612, "last_seen": at(0), "addresses": 3,
        "cause": "6 × POST /login 401 in 8 s, python-requests/2.32", "scope": "fleet",
    })
}

fn bans_page() -> Value {
    json!({
        "items": [ban(&format!("203.0.113.42 {JA4}"), 432)], "total": 419, "all": 422, "likely_false_positives": 7,
        "manual": 1,
        "common": [{"rule": "login-stuffing", "field": "tls.ja4", "value": JA4, "share_ratio": 0.98}],
    })
}

/// The rule that mitigates most, opened.
pub(super) fn opened_rule() -> TopModel {
    let mut model = attacked();
    model.press(TopKey::Enter);
    let keys = [
        (42, Some(432), 0, "BR, AS64501, 4 requests/s"),
        (8, Some(160), 0, "US, AS64507, 4 requests/s"),
        (113, Some(595), 0, "ID, AS64500, 3 requests/s"),
        (143, None, 5, "DE, AS64496, 2 requests/min"),
        (36, None, 4, "DE, AS64496, 1 request/min"),
        (9, None, 2, "DE, AS64496, 1 request/min"),
    ];
    let row = |(host, left, count, note): (u8, Option<i64>, u64, &str)| {
        let key = format!("203.0.113.{host} {JA4}");
        let sample = json!({"method": "POST", "url": "/login", "headers": {"user-agent": "curl/8"}, "status": 401});
        ListedRow {
            kind: RowKind::HotKey,
            rule: "login-stuffing".into(),
            object: json!({"key": key, "count": count, "limit": 5, "banned_until": left.map(at), "note": note,
                "sample": sample}),
            key,
        }
    };
    let labels = [
        "below 10 %",
        "10–25 %",
        "25–50 %",
        "50–80 %",
        "80–100 %",
        "over",
    ];
    let details = json!({"distribution": {"labels": labels, "keys": [861, 214, 96, 31, 12, 419]}});
    let about = json!({"rule": details, "bans": bans_page()});
    give(&mut model, keys.map(row).to_vec(), about);
    model
}

fn decision(id: u64, seconds: i64) -> Value {
    let is_ban = id.is_multiple_of(2);
    json!({
        "ts": at(seconds), "id": format!("01JD{id:04}"), "client_ip": format!("203.0.113.{id}"), "asn": 64_500, "country": "BR",
        "ja4": JA4, "method": "POST", "host": "shop.example", "path": format!("/login/{id}"),
        "query": (id == 3).then_some("next=%2Faccount"), "status": if is_ban { 200 } else { 429 },
        "user_agent": "python-requests/2.32", "rule": if is_ban { "login-stuffing" } else { "logins-at-once" },
        "action": if is_ban { "shadow" } else { "block" }, "key": format!("203.0.113.{id} {JA4}"), "dry_run": id == 5,
        "banned": is_ban, "count": 6, "limit": 5, "repeat": id,
    })
}

/// The newest decisions.
pub(super) fn decisions() -> TopModel {
    let mut model = attacked();
    model.press(TopKey::Char('d'));
    let filter = StreamFilter::default();
    for id in 1..40 {
        model.take_decision(&filter, decision(id, id as i64 - 40));
    }
    model.take_skipped(&json!({"count": 541}));
    model.take_tick(tick());
    model.press(TopKey::Down);
    model
}

/// A client with two bans.
pub(super) fn client() -> TopModel {
    let mut model = attacked();
    for key in "/203.0.113.42".chars() {
        model.press(TopKey::Char(key));
    }
    model.press(TopKey::Enter);
    let bans = [
        ban(&format!("203.0.113.42 {JA4}"), 432),
        ban("203.0.113.42", 3_000),
    ];
    let decisions: Vec<_> = (1..8).map(|id| decision(id, -(id as i64) * 7)).collect();
    let mut rows: Vec<_> = bans
        .iter()
        .map(|ban| ListedRow::of(RowKind::Ban, ban))
        .collect();
    rows.extend(
        decisions
            .iter()
            .map(|object| ListedRow::of(RowKind::Decision, object)),
    );
    let about = json!({
        "ip": "203.0.113.42", "asn": 64_501, "as_name": "Example Telecom", "country": "BR", "exempt_until": at(1_800),
        "bans": bans, "decisions": decisions, "mitigated": 1_224, "forwarded": null, "window_start": at(-3_000),
    });
    give(&mut model, rows, about);
    model.press(TopKey::Char('U'));
    model
}

/// The explanation of a decision.
pub(super) fn explained() -> TopModel {
    let mut model = decisions();
    model.press(TopKey::Char('x'));
    let rule = |name: &str, verdict: &str, why: &str, limit: u64, key: Option<&str>| json!({"name": name, "verdict": verdict, "why": why, "limit": limit, "value": 6, "key": key});
    let about = json!({
        "request": "POST https://shop.example/login from 203.0.113.38", "decision": "shadow", "rule": "login-stuffing",
        "response": {"status": 200, "headers": {}}, "notes": [], "class": null,
        "rules": [
            rule("office", "not_matched", "the address is not in @office", 0, None),
            rule("login-stuffing", "shadow", "the key is banned for another 7m 12s", 5, Some("203.0.113.38")),
            rule("search-flood", "would_block", "the 31st request in 1m, and the limit is 30", 30, Some("203.0.113.38")),
            rule("plan-silver", "not_evaluated", "an earlier rule has ended rule evaluation", 0, None),
        ],
    });
    give(&mut model, Vec::new(), about);
    model
}

/// Lists bans on the open screen.
pub(super) fn give_bans(model: &mut TopModel) {
    let page = bans_page();
    let keys = [
        ("203.0.113.42", 432),
        ("192.0.2.17", 482),
        ("h:9575af63781cc265", 61_200),
    ];
    let rows = keys.map(|(key, seconds)| ListedRow::of(RowKind::Ban, &ban(key, seconds)));
    give(model, rows.to_vec(), page);
}

/// Lists servers on the open screen.
pub(super) fn give_servers(model: &mut TopModel) {
    let server = |address: &str, health: &str, reason: Option<&str>| ListedRow {
        kind: RowKind::Server,
        rule: "app".into(),
        key: address.into(),
        object: json!({"address": address, "weight": 1, "backup": false, "state": "ready", "health": health,
            "reason": reason, "since": at(-366), "in_flight": 12, "requests_per_s": 380.2, "error_ratio": 0.002,
            "p99_ms": 228.0}),
    };
    let rows = vec![
        server("10.0.4.13:9000", "unhealthy", Some("connection refused")),
        server("10.0.4.11:9000", "healthy", None),
    ];
    give(model, rows, Value::Null);
}
