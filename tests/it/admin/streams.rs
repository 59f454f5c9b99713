//! Streams: their number, their head, and when they end.

use super::{CONFIG, Operated};
use crate::harness::{Folder, Wire, wait_until};

const STREAM: &[u8] = b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn open(gateway: &Operated) -> Wire {
    let mut wire = gateway.admin().connect();
    wire.send(STREAM);
    wire
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
