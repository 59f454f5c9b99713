//! Streams: their number, their head, and when they end.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{CONFIG, Operated, WATCHED};
use crate::harness::{Folder, Wire, wait_until};

fn open(gateway: &Operated) -> Wire {
    open_with(gateway, "")
}

fn open_with(gateway: &Operated, query: &str) -> Wire {
    let mut wire = gateway.admin().connect();
    let head = format!("GET /api/events{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    wire.send(head.as_bytes());
    wire
}

/// A stream of which the first tick was read.
fn started(gateway: &Operated, query: &str) -> Wire {
    let mut wire = open_with(gateway, query);
    assert!(wire.head().starts_with(b"HTTP/1.1 200 "));
    assert_eq!(event(&mut wire).0, "tick");
    wire
}

/// The kind and the data of the next event.
fn event(wire: &mut Wire) -> (String, Value) {
    let event = next_event(wire);
    let (kind, data) = event.split_once("\ndata: ").unwrap();
    (kind.to_owned(), serde_json::from_str(data).unwrap())
}

/// The events until `is_last` is true, the last one included.
fn events_until(wire: &mut Wire, is_last: impl Fn(&str, &Value) -> bool) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    for _ in 0..1000 {
        let (kind, data) = event(wire);
        let ends = is_last(&kind, &data);
        events.push((kind, data));
        if ends {
            return events;
        }
    }
    panic!("waited in vain: {events:?}");
}

/// The next decision.
fn decision(wire: &mut Wire) -> Value {
    let events = events_until(wire, |kind, _| kind == "decision");
    events.into_iter().next_back().unwrap().1
}

/// Reads until the next event.
fn next_event(wire: &mut Wire) -> String {
    let event = String::from_utf8(wire.head_of_chunk()).unwrap();
    event.split_once("event: ").unwrap().1.to_owned()
}

impl Wire {
    /// The bytes of a chunk with an event, which ends with an empty line.
    fn head_of_chunk(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\n\n") {
            bytes.extend(self.exactly(1));
        }
        bytes
    }
}

#[test]
fn a_stream_starts_with_a_tick() {
    let gateway = Operated::run(CONFIG);
    let mut stream = open(&gateway);
    let head = String::from_utf8(stream.head()).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        head.contains("content-type: text/event-stream\r\n"),
        "{head}"
    );
    let event = next_event(&mut stream);
    let data = event.strip_prefix("tick\ndata: ").unwrap();
    let tick: serde_json::Value = serde_json::from_str(data.trim()).unwrap();
    assert!(tick["requests_per_s"].is_number());
    assert!(next_event(&mut stream).starts_with("tick\n"));
}

#[test]
fn the_seventeenth_stream_waits_for_another_to_end() {
    let gateway = Operated::run(CONFIG);
    let mut streams: Vec<_> = (0..16).map(|_| open(&gateway)).collect();
    for stream in &mut streams {
        assert!(stream.head().starts_with(b"HTTP/1.1 200 "));
    }
    let answer = gateway.admin().get("/api/events").send();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    gateway.admin().get("/api/status").times(1).all_are(200);
    drop(streams.pop());
    wait_until("a slot is free", || {
        open(&gateway).head().starts_with(b"HTTP/1.1 200 ")
    });
}

#[test]
fn new_connections_never_replace_a_stream() {
    let gateway = Operated::run(CONFIG);
    let mut stream = open(&gateway);
    stream.head();
    let _silent: Vec<_> = (0..80).map(|_| gateway.admin().connect()).collect();
    gateway.admin().get("/healthz").times(2).all_are(200);
    for _ in 0..2 {
        assert!(next_event(&mut stream).starts_with("tick\n"));
    }
}

#[test]
fn a_head_request_opens_no_stream() {
    let gateway = Operated::run(CONFIG);
    let head = gateway.admin().method("HEAD", "/api/events");
    let answers = head.times(20);
    assert!(answers.all_are(200).body.is_empty());
}

#[test]
fn a_stream_ends_when_a_reload_changes_the_token() {
    let folder = Folder::new();
    let token = folder.write("admin.token", "old\n");
    let config = CONFIG.replace("[admin]", &format!("[admin]\ntoken_file = {token:?}"));
    let gateway = Operated::run(&config);
    let mut wire = gateway.admin().connect();
    wire.send(b"GET /api/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer old\r\n\r\n");
    wire.head();
    next_event(&mut wire);
    gateway.process.reload(&config);
    next_event(&mut wire);
    folder.write("admin.token", "new\n");
    gateway.process.reload(&config);
    let rest = String::from_utf8(wire.rest()).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[test]
fn a_decision_appears_redacted() {
    let gateway = Operated::run(WATCHED);
    let mut stream = started(&gateway, "?rule=login");
    let bot = gateway.client().from("203.0.113.7");
    let bot = bot
        .header("cookie", "sid=s3cret")
        .header("user-agent", "bot/1");
    bot.get("/login?next=%2F")
        .times(3)
        .then_all(&[200, 200, 429]);
    let decision = decision(&mut stream);
    for (field, value) in [
        ("client_ip", json!("203.0.113.7")),
        ("asn", json!(64500)),
        ("country", json!("ZZ")),
        ("ja4", Value::Null),
        ("method", json!("GET")),
        ("path", json!("/login")),
        ("query", json!("next=%2F")),
        ("status", json!(429)),
        ("user_agent", json!("bot/1")),
        ("rule", json!("login")),
        ("action", json!("block")),
        ("dry_run", json!(false)),
        ("banned", json!(false)),
        ("count", json!(3)),
        ("limit", json!(2)),
        ("repeat", json!(1)),
    ] {
        assert_eq!(decision[field], value, "{field}");
    }
    let key = decision["key"].as_str().unwrap();
    assert!(key.starts_with("203.0.113.7 h:"), "{key}");
    assert!(!decision.to_string().contains("s3cret"));
}

#[test]
fn a_stream_has_only_the_decisions_that_it_asks_for() {
    let gateway = Operated::run(WATCHED);
    let mut streams = [
        "?rule=scan",
        "?ip=203.0.113.8",
        "?action=forward",
        "?action=block&ip=::ffff:203.0.113.8",
    ]
    .map(|query| started(&gateway, query));
    let of = |address: &str| gateway.client().from(address);
    of("203.0.113.7").get("/denied").times(1).all_are(429);
    of("203.0.113.8").get("/denied").times(1).all_are(429);
    of("203.0.113.7").get("/").times(1).all_are(200);
    of("203.0.113.7").get("/.env").times(2).last_is(429);
    let [scan, client, forwarded, both] = &mut streams;
    assert_eq!(decision(scan)["rule"], "scan");
    assert_eq!(decision(client)["client_ip"], "203.0.113.8");
    let forwarded = decision(forwarded);
    assert_eq!(
        (&forwarded["rule"], &forwarded["key"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(decision(both)["client_ip"], "203.0.113.8");
    for wrong in [
        "rule=nothing",
        "ip=nobody",
        "ip=203.0.113.0/24",
        "action=explode",
    ] {
        let path = format!("/api/events?{wrong}");
        gateway.admin().get(&path).times(1).all_are(422);
    }
}

#[test]
fn decisions_beyond_the_limit_are_counted() {
    let gateway = Operated::run(WATCHED);
    let mut stream = started(&gateway, "?rule=denied");
    for client in 0..200 {
        let client = gateway.client().from(&format!("198.51.100.{client}"));
        client.get("/denied").times(1).all_are(429);
    }
    let (mut sent, mut skipped) = (0, 0);
    while sent + skipped < 200 {
        let second = events_until(&mut stream, |kind, _| kind == "tick");
        let decisions = second.iter().filter(|(kind, _)| kind == "decision");
        let repeats = decisions.map(|(_, data)| data["repeat"].as_u64().unwrap());
        sent += repeats.sum::<u64>();
        for (place, (kind, data)) in second.iter().enumerate() {
            if kind == "skipped" {
                assert_eq!(place + 2, second.len(), "it comes before the tick");
                assert!(data["ts"].is_string());
                skipped += data["count"].as_u64().unwrap();
            }
        }
    }
    assert_eq!(sent + skipped, 200);
    assert!(skipped > 0);
}

#[test]
fn a_mark_says_what_to_read_again_and_a_reload_ends_no_stream() {
    let gateway = Operated::run(WATCHED);
    let mut stream = started(&gateway, "?rule=scan");
    gateway
        .process
        .reload(&WATCHED.replace("limit = 2", "limit = 3"));
    let mark = events_until(&mut stream, |kind, _| kind == "mark")
        .pop()
        .unwrap()
        .1;
    assert_eq!(
        (&mark["kind"], &mark["bad"]),
        (&json!("reload"), &json!(false))
    );
    gateway
        .client()
        .from("203.0.113.7")
        .get("/.env")
        .times(2)
        .last_is(429);
    let events = events_until(&mut stream, |kind, data| {
        kind == "mark" && data["kind"] == "ban"
    });
    let kinds: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert!(kinds.contains(&"decision"), "{kinds:?}");
}

#[test]
fn readers_that_stall_are_closed_and_cost_little_memory() {
    let mut config = WATCHED.to_owned();
    for rule in 0..1000 {
        write!(
            config,
            "[[rules]]\nname = \"r{rule}\"\nmitigate = 'http.host eq \"{rule}\"'\n"
        )
        .unwrap();
    }
    let gateway = Operated::run(&config);
    let before = gateway.process.memory("VmRSS");
    let _stalled: Vec<_> = (0..16).map(|_| open(&gateway)).collect();
    wait_until("all streams are open", || {
        gateway.admin().get("/api/events").send().status == 503
    });
    let is_free = (0..4000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let head = gateway.admin().method("HEAD", "/api/events");
        head.send().status == 200
    });
    assert!(is_free, "no stream was closed");
    let grown = gateway.process.memory("VmHWM").saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
}
