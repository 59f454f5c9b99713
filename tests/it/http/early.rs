//! Clients that do not wait: bytes behind a request for a tunnel, before its answer. They reach the
//! origin as they are, or are a request like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Answer, Echo, Origin, Running, Wire, run, wait_until};

/// It would be spoilt if it were a request.
const TWICE: &str = "POST /next HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\
    content-length: 5\r\n\r\nhello";
const PLAIN: &str = "GET /next HTTP/1.1\r\nhost: example.com\r\n\r\n";

fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n"
    )
}

fn gateway() -> (Running, Echo) {
    let echo = Echo::start();
    let running = Running::with_origin(Origin::at(echo.origin.address), "");
    (running, echo)
}

/// Connections of both kinds, after `bytes` came in each of the ways that they can.
fn said(gateway: &Running, head: &str, early: &str) -> Vec<Wire> {
    let mut wires = Vec::new();
    for client in [gateway.client(), gateway.tls_client()] {
        let mut at_once = client.connect();
        at_once.send(format!("{head}{early}").as_bytes());
        let mut later = client.connect();
        later.send(head.as_bytes());
        sleep(Duration::from_millis(100));
        later.send(early.as_bytes());
        let mut torn = client.connect();
        let (first, second) = early.split_at(early.len() / 2);
        torn.send(format!("{head}{first}").as_bytes());
        sleep(Duration::from_millis(100));
        torn.send(second.as_bytes());
        wires.extend([at_once, later, torn]);
    }
    wires
}

#[test]
fn early_tunnel_bytes_reach_the_origin_unchanged() {
    let (gateway, echo) = gateway();
    for path in ["/chat?late", "/chat"] {
        for mut wire in said(&gateway, &upgrade(path), TWICE) {
            assert_eq!(wire.answer().status, 101);
            let first = if path == "/chat" { "first" } else { "" };
            let whole = format!("{first}{TWICE}");
            assert_eq!(wire.exactly(whole.len()), whole.as_bytes());
            wire.send(TWICE.as_bytes());
            assert_eq!(wire.exactly(TWICE.len()), TWICE.as_bytes());
        }
    }
    assert_eq!(echo.heads.lock().unwrap().len(), 12);
}

/// More than is read at once.
#[test]
fn many_early_tunnel_bytes_arrive_complete() {
    let (gateway, _echo) = gateway();
    let noise = TWICE.repeat(3000);
    for client in [gateway.client(), gateway.tls_client()] {
        let mut wire = client.connect();
        wire.send(format!("{}{noise}", upgrade("/chat?late")).as_bytes());
        assert_eq!(wire.answer().status, 101);
        assert!(wire.exactly(noise.len()) == noise.as_bytes());
    }
}

#[test]
fn early_bytes_are_a_request_if_no_tunnel_opens() {
    let (gateway, _echo) = gateway();
    for mut wire in said(&gateway, &upgrade("/no"), PLAIN) {
        assert_eq!(wire.answer().status, 403);
        let next = wire.answer();
        assert_eq!((next.status, next.text().as_str()), (200, "plain"));
        assert_eq!(wire.get("/more").status, 200);
    }
    for mut wire in said(&gateway, &upgrade("/no"), TWICE) {
        assert_eq!(wire.answer().status, 403);
        assert_eq!(Answer::parse(&wire.rest()).status, 400);
    }
    // One that is no upgrade at all.
    let h2c = upgrade("/").replace("websocket", "h2c");
    for mut wire in said(&gateway, &h2c, PLAIN) {
        assert_eq!(wire.answer().status, 200);
        assert_eq!(wire.answer().status, 200);
    }
}

/// The answer that counts is the one to the request for the tunnel.
#[test]
fn earlier_pipelined_requests_do_not_affect_a_tunnel() {
    let (gateway, _echo) = gateway();
    let head = format!("{PLAIN}{PLAIN}{}", upgrade("/chat?late"));
    for mut wire in said(&gateway, &head, TWICE) {
        assert_eq!(wire.answer().status, 200);
        assert_eq!(wire.answer().status, 200);
        assert_eq!(wire.answer().status, 101);
        assert_eq!(wire.exactly(TWICE.len()), TWICE.as_bytes());
    }
}

#[test]
fn a_malformed_upgrade_request_closes_the_connection() {
    let (gateway, echo) = gateway();
    let head = upgrade("/chat").replace("host", "h\tost");
    for mut wire in said(&gateway, &head, "") {
        wire.send(TWICE.as_bytes());
        assert_eq!(Answer::parse(&wire.rest()).status, 400);
    }
    assert!(echo.heads.lock().unwrap().is_empty());
}

/// Nobody waits for the answer any more, so the origin is not made to go on with it.
#[test]
fn a_disconnect_cancels_the_request_despite_early_bytes() {
    let (asked, given_up) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asks, gives_up) = (asked.clone(), given_up.clone());
    let origin = Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        wire.head();
        asks.fetch_add(1, Ordering::SeqCst);
        // It never answers.
        wire.rest();
        gives_up.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = Running::with_origin(origin, "");
    for head in [PLAIN, &upgrade("/chat")] {
        for behind in ["", "G", PLAIN] {
            let before = asked.load(Ordering::SeqCst);
            let wires = said(&gateway, head, behind);
            let all = before + wires.len();
            wait_until("all are asked", || asked.load(Ordering::SeqCst) == all);
            assert_eq!(given_up.load(Ordering::SeqCst), before);
            drop(wires);
            wait_until("all are given up", || {
                given_up.load(Ordering::SeqCst) == all
            });
        }
    }
}

#[test]
fn an_http_2_tunnel_may_send_early_bytes_too() {
    let (gateway, _echo) = gateway();
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        let (answer, mut stream) = talk.ask_for("websocket", "/chat?late").await;
        stream.send_data(TWICE.into(), false).unwrap();
        let mut body = answer.await.unwrap().into_body();
        let mut heard = Vec::new();
        while heard.len() < TWICE.len() {
            heard.extend_from_slice(&body.data().await.unwrap().unwrap());
        }
        assert_eq!(heard, TWICE.as_bytes());
    });
}

/// Whose answer comes first says nothing of what is behind the second.
#[test]
fn an_earlier_request_for_another_protocol_opens_no_tunnel() {
    let (gateway, _echo) = gateway();
    let before = "POST /plain HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
        upgrade: h2c\r\ncontent-length: 3\r\n\r\nabc";
    for client in [gateway.client(), gateway.tls_client()] {
        let mut wire = client.connect();
        wire.send(format!("{before}{}{TWICE}", upgrade("/chat?late")).as_bytes());
        assert_ne!(wire.answer().status, 101);
        assert_eq!(wire.answer().status, 101);
        assert_eq!(wire.exactly(TWICE.len()), TWICE.as_bytes());
    }
}
