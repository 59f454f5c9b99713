//! `concurrency` places come back however a request ends.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use super::{beginning, deny, frames, head, upgrade};
use crate::harness::{Frames, Origin, Running, Wire, wait_until};

/// One request at once below `/`, whoever sends it.
const PLACE: &str = r#"
[[rules]]
name = "place"
mitigate = 'starts_with(http.request.uri.path, "/")'
key = []
algorithm = "concurrency"
limit = 1
"#;

/// A rule that counts answers: what an origin was asked is finished for nobody.
const COUNTING: &str = r#"
[[rules]]
name = "answers"
count = 'http.response.code eq 999'
mitigate = 'starts_with(http.request.uri.path, "/")'
key = ["ip.src"]
limit = 1
period = "1h"
"#;

/// A gateway with one place in front of `origin`.
fn gateway(origin: &Origin, more: &str) -> Running {
    let config = beginning("off").replace("{origin}", &origin.address.to_string());
    let config = config.replace("[[routes]]", "response_timeout = \"300ms\"\n[[routes]]");
    Running::on(&format!("{config}{PLACE}{more}"))
}

/// An origin that answers `/free` at once, and other paths with `answer` and then not until it
/// is told to go on.
fn holding(answer: &'static [u8]) -> (Origin, Sender<()>) {
    let (go, wait): (Sender<()>, Receiver<()>) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        while let Some(head) = wire.try_head() {
            let free = head.windows(6).any(|bytes| bytes == b"/free ");
            let sent = match free {
                true => wire.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
                false => wire.try_send(answer),
            };
            if sent.is_err() || !free && wait.lock().unwrap().recv().is_err() {
                return;
            }
        }
    });
    (origin, go)
}

#[track_caller]
fn is_taken(gateway: &Running) {
    let refused = gateway.client().get("/free").send();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
}

/// The place is free again, and it is one place.
fn wait_until_free(gateway: &Running) {
    wait_until("the place is free", || {
        gateway.client().get("/free").send().status == 200
    });
    gateway.client().get("/free").times(3).all_are(200);
}

/// The head of an answer and some of its body.
const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome";

#[test]
fn a_slot_is_taken_until_the_response_ends() {
    let (origin, go) = holding(BEGUN);
    let gateway = gateway(&origin, "");
    let mut wire = gateway.client().connect();
    wire.send(head("GET", "/held", "1.1", 0).as_bytes());
    wire.head();
    assert_eq!(wire.exactly(4), b"some");
    is_taken(&gateway);
    is_taken(&gateway);
    // The origin breaks off.
    drop(go);
    wire.rest();
    wait_until_free(&gateway);
}

#[test]
fn the_end_of_a_response_frees_its_slot() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "");
    let mut wire = gateway.client().connect();
    for method in ["GET", "HEAD", "OPTIONS", "POST"] {
        for _ in 0..3 {
            wire.send(head(method, "/x", "1.1", 0).as_bytes());
            let status = match method {
                "HEAD" => crate::harness::Answer::parse(&wire.head()).status,
                _ => wire.answer().status,
            };
            assert_eq!(status, 200, "{method}");
            wait_until_free(&gateway);
        }
    }
}

#[test]
fn a_disconnect_frees_the_slot() {
    for more in ["", COUNTING] {
        for answer in [BEGUN, b""] {
            let (origin, _go) = holding(answer);
            let config = beginning("off").replace("{origin}", &origin.address.to_string());
            let gateway = Running::on(&format!("{config}{PLACE}{more}"));
            let mut wire = gateway.client().connect();
            wire.send(head("GET", "/held", "1.1", 0).as_bytes());
            match answer.is_empty() {
                true => wait_until("the origin is asked", || in_flight(&gateway) == 1),
                false => drop(wire.head()),
            }
            is_taken(&gateway);
            // The origin goes on holding.
            drop(wire);
            wait_until_free(&gateway);

            let mut wire = gateway.client().connect();
            let before = in_flight(&gateway);
            frames("GET", "/held", 0).open(&mut wire);
            wait_until("the origin is asked", || in_flight(&gateway) > before);
            is_taken(&gateway);
            wire.send(&Frames::default().frame(3, 0, 1, &[0, 0, 0, 8]).0);
            wait_until_free(&gateway);
        }
    }
}

#[test]
fn a_disconnect_cancels_a_response_that_no_rule_would_count() {
    let elsewhere = COUNTING.replace(
        "http.response.code eq 999",
        r#"http.request.uri.path eq "/login" and http.response.code eq 999"#,
    );
    let allowed = [&deny("allowed", "/held", "allow", ""), COUNTING].concat();
    for rules in [elsewhere, allowed] {
        let (origin, _go) = holding(b"");
        let config = beginning("off").replace("{origin}", &origin.address.to_string());
        let gateway = Running::on(&format!("{config}{rules}"));
        let mut wire = gateway.client().connect();
        wire.send(head("GET", "/held", "1.1", 0).as_bytes());
        wait_until("the origin is asked", || in_flight(&gateway) == 1);
        // The origin goes on holding.
        drop(wire);
        wait_until("the origin is left", || in_flight(&gateway) == 0);
    }
}

fn in_flight(gateway: &Running) -> u64 {
    let metrics = gateway.metrics();
    let mut lines = metrics.lines();
    let line = lines.find(|line| line.starts_with("lockgate_upstream_in_flight{"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_failed_origin_frees_the_slot() {
    let silent = Origin::scripted(|stream| drop(Wire::new(stream).rest()));
    let gateway_504 = gateway(&silent, "");
    gateway_504.client().get("/").times(3).all_are(504);

    let closing = Origin::scripted(drop);
    let gateway_502 = gateway(&closing, "");
    gateway_502.client().get("/").times(3).all_are(502);
}

#[test]
fn a_refusal_by_a_later_rule_frees_the_slot_immediately() {
    let origin = Origin::start();
    let forever = "max_delay = \"1h\"";
    let rules = [
        deny("no", "/block", "block", ""),
        deny("shadow", "/shadow", "shadow", ""),
        deny("close", "/close", "close", ""),
        deny("tarpit", "/tarpit", "tarpit", forever),
    ];
    let gateway = gateway(&origin, &rules.concat());
    for (path, status) in [("/block", 429), ("/shadow", 200), ("/close", 0)] {
        for _ in 0..3 {
            assert_eq!(gateway.client().get(path).send().status, status, "{path}");
            // No wait: it was free before the answer came.
            gateway.client().get("/free").times(1).all_are(200);
        }
    }
    let mut held = gateway.client().connect();
    held.send(head("GET", "/tarpit", "1.1", 0).as_bytes());
    wait_until("it is held", || {
        gateway.metrics().contains("lockgate_held_requests 1\n")
    });
    gateway.client().get("/free").times(1).all_are(200);
}

#[test]
fn a_held_request_keeps_its_slot() {
    let origin = Origin::start();
    let delay = deny("delay", "/delay", "delay", "max_delay = \"1h\"");
    let gateway = gateway(&origin, &delay);
    let mut held = gateway.client().connect();
    held.send(head("GET", "/delay", "1.1", 0).as_bytes());
    wait_until("it is held", || {
        gateway.metrics().contains("lockgate_held_requests 1\n")
    });
    is_taken(&gateway);
    drop(held);
    wait_until_free(&gateway);
}

#[test]
fn a_tunnel_keeps_its_slot_until_it_closes() {
    let origin = Origin::scripted(|stream| {
        let mut wire = Wire::new(stream.try_clone().unwrap());
        while let Some(head) = wire.try_head() {
            if head.windows(6).any(|bytes| bytes == b"/free ") {
                wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
                continue;
            }
            wire.send(
                b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
                  connection: upgrade\r\n\r\n",
            );
            let _ = std::io::copy(&mut &stream, &mut &stream);
            return;
        }
    });
    let gateway = gateway(&origin, "");
    for _ in 0..2 {
        let mut wire = gateway.client().connect();
        wire.send(upgrade("/chat").as_bytes());
        assert_eq!(wire.answer().status, 101);
        wire.send(b"ping");
        assert_eq!(wire.exactly(4), b"ping");
        is_taken(&gateway);
        gateway
            .gateway()
            .reloader()
            .reload(lockgate::gateway::ReloadTrigger::Signal)
            .unwrap();
        is_taken(&gateway);
        drop(wire);
        wait_until_free(&gateway);
    }
}
