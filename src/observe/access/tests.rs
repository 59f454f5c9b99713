//! Access log lines, parsed by an independent parser.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;

fn record() -> AccessRecord<'static> {
    AccessRecord {
        ts: Timestamp::from_millis(1_767_323_045_678),
        id: "01J",
        client_ip: "203.0.113.7".parse().unwrap(),
        peer_ip: "2001:db8::1".parse().unwrap(),
        asn: None,
        country: None,
        ja3: None,
        ja4: None,
        tls: None,
        proto: "HTTP/1.1",
        method: "GET",
        host: None,
        path: b"/",
        query: None,
        trace_id: None,
        listener: "public",
        route: None,
        status: 200,
        upstream: None,
        server: None,
        attempts: 0,
        upstream_duration: None,
        rule: None,
        action: None,
        held: None,
        error: None,
        user_agent: None,
        referer: None,
        credentials: None,
        key_fields: &[],
        fields: &[],
    }
}

const CLOSING: AccessEnd = AccessEnd {
    bytes_in: 0,
    bytes_out: 5,
    duration: Duration::from_micros(1_002),
    cut: None,
    ended_by: None,
};

fn json_line(record: &AccessRecord<'_>, closing: &AccessEnd) -> String {
    let mut out = Vec::new();
    record.json(&mut out);
    closing.json(&mut out);
    String::from_utf8(out).unwrap()
}

fn text_line(record: &AccessRecord<'_>) -> String {
    let mut out = Vec::new();
    record.text(&mut out);
    CLOSING.text(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn every_documented_field_is_present() {
    let text = json_line(&record(), &CLOSING);
    assert_eq!(
        text,
        concat!(
            r#"{"ts":"2026-01-02T03:04:05.678Z","id":"01J","client_ip":"203.0.113.7","#,
            r#""peer_ip":"2001:db8::1","asn":null,"country":null,"ja3":null,"ja4":null,"#,
            r#""tls":null,"proto":"HTTP/1.1","method":"GET","host":null,"path":"/","#,
            r#""query":null,"trace_id":null,"listener":"public","route":null,"status":200,"#,
            r#""upstream":null,"server":null,"attempts":0,"upstream_ms":null,"#,
            r#""rule":null,"action":null,"held_ms":null,"error":null,"user_agent":null,"referer":null,"#,
            r#""client":null,"client_id":null,"clearance":null,"challenge":null,"key_fields":{},"#,
            r#""bytes_in":0,"bytes_out":5,"duration_ms":1.002,"cut":null,"ended_by":null}"#
        )
    );
}

#[test]
fn key_parts_keep_their_types_and_missing_is_not_empty() {
    let text = |text: &'static [u8]| ScalarValue::Bytes(text.into());
    let name = "http.request.headers[\"x-key\"]";
    let fields = [
        (name, LoggedField::One(text(b"h:5f2a"))),
        (
            "http.request.headers.names",
            LoggedField::Many(vec![text(b"a"), text(b"b")]),
        ),
        ("ip.src.asnum", LoggedField::One(ScalarValue::Int(-1))),
        (
            "ip.src",
            LoggedField::One(ScalarValue::Ip("::1".parse().unwrap())),
        ),
        ("ssl", LoggedField::One(ScalarValue::Bool(true))),
        ("http.referer", LoggedField::Missing),
        ("http.user_agent", LoggedField::One(text(b""))),
    ];
    let record = AccessRecord {
        key_fields: &fields,
        asn: Some(u32::MAX),
        upstream_duration: Some(Duration::from_secs(3)),
        held: Some(Duration::from_millis(1500)),
        ..record()
    };
    let back: serde_json::Value = serde_json::from_str(&json_line(&record, &CLOSING)).unwrap();
    let wanted = json!({
        name: "h:5f2a", "ip.src.asnum": -1, "ip.src": "::1", "ssl": true,
        "http.referer": null, "http.user_agent": "", "http.request.headers.names": ["a", "b"],
    });
    assert_eq!(back["key_fields"], wanted);
    assert_eq!(back["asn"], json!(u32::MAX));
    assert_eq!(back["upstream_ms"], json!(3000.0));
    assert_eq!(back["held_ms"], json!(1500.0));
}

#[test]
fn a_text_line_is_readable() {
    let record = AccessRecord {
        host: Some(b"example.com"),
        path: b"/login",
        query: Some(b"a=1"),
        status: 429,
        rule: Some("login"),
        action: Some("block"),
        user_agent: Some(b"curl/8 \x1b[2J"),
        ..record()
    };
    assert_eq!(
        text_line(&record),
        "2026-01-02T03:04:05.678Z 203.0.113.7 \"GET example.com/login?a=1 HTTP/1.1\" 429 rule=login \
         action=block agent=\"curl/8 \\u{001b}[2J\" id=01J 5B 1.002ms"
    );
}

#[test]
fn text_is_written_only_to_terminals() {
    let (mut reader, writer) = pipe().unwrap();
    let sink = LineSink::stream(File::from(OwnedFd::from(writer))).unwrap();
    let log = AccessLog::new(sink, LogOutput::Text);
    for _ in 0..2 {
        let mut line = log.start(&record());
        log.finish(&mut line, &CLOSING);
    }
    drop(log);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let ids: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["01J", "01J"]);
}

#[test]
fn an_aborted_response_is_logged_as_such() {
    for (cut, word) in AbortReason::ALL.map(|cut| (cut, cut.name())) {
        let closing = AccessEnd {
            cut: Some(cut),
            ..CLOSING
        };
        let json = json_line(&record(), &closing);
        assert!(
            json.ends_with(&format!(r#","cut":"{word}","ended_by":null}}"#)),
            "{json}"
        );
        let mut text = Vec::new();
        closing.text(&mut text);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, format!(" 5B 1.002ms cut={word}"));
    }
}

#[test]
fn long_durations_stay_numbers() {
    let closing = AccessEnd {
        duration: Duration::MAX,
        ..CLOSING
    };
    let back: serde_json::Value = serde_json::from_str(&json_line(&record(), &closing)).unwrap();
    assert!(back["duration_ms"].as_f64().unwrap() > 1e21);
}

proptest! {
    #[test]
    fn hostile_bytes_cannot_leave_their_field(
        path in any::<Vec<u8>>(), host in any::<Option<Vec<u8>>>(),
        agent in any::<Vec<u8>>(), name in any::<String>(), method in any::<String>(),
    ) {
        let value = ScalarValue::Bytes(agent.as_slice().into());
        let fields = [(name.as_str(), LoggedField::Many(vec![value.clone(), value]))];
        let record = AccessRecord {
            path: &path, query: Some(&path), host: host.as_deref(), method: &method,
            user_agent: Some(&agent), referer: Some(&agent), key_fields: &fields, ..record()
        };
        let json = json_line(&record, &CLOSING);
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        let object = back.as_object().unwrap();
        prop_assert_eq!(object.len(), 38);
        prop_assert_eq!(&object["method"], &serde_json::json!(method));
        prop_assert_eq!(object["host"].is_null(), host.is_none());
        prop_assert!(object["key_fields"].as_object().unwrap().contains_key(&name));
        if let Ok(path) = std::str::from_utf8(&path) {
            prop_assert_eq!(&object["path"], &serde_json::json!(path));
        }
        let text = text_line(&record);
        prop_assert!(!json.chars().chain(text.chars()).any(char::is_control));
    }
}
