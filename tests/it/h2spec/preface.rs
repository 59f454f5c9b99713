//! Section 3.4: how a connection begins, on listeners that speak both and on those that do not.

use super::*;
use crate::harness::{Answer, Wire};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How much of the preface tells HTTP/2 from HTTP/1.
const TOLD: usize = b"PRI * HTTP/2.0".len();

/// A connection that sent `bytes`: the codes of its GOAWAY frames.
fn goaways(client: &Client, bytes: &[u8]) -> Vec<u32> {
    let mut wire = client.connect();
    let _ = wire.try_send(bytes);
    let mut codes = Vec::new();
    let mut first = true;
    while let Some((kind, _, _, payload)) = next_frame(&mut wire) {
        assert!(!first || kind == 4, "the first frame is of type {kind}");
        first = false;
        if kind == 7 {
            codes.push(word(&payload[4..]));
        }
    }
    codes
}

/// The preface with one octet changed.
fn changed(at: usize) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    bytes[at] ^= 0x20;
    Frames(bytes).frame(4, 0, 0, b"").0
}

#[test]
fn a_bad_preface_is_an_error_on_a_listener_with_both_protocols() {
    let gateway = Running::with("");
    for at in 0..PREFACE.len() {
        match at < TOLD {
            true => {
                let answer = Answer::parse(&gateway.client().raw(&changed(at)));
                assert_eq!(answer.status / 100, 4, "octet {at}: {}", answer.status);
            }
            false => assert_eq!(goaways(&gateway.client(), &changed(at)), [PROTOCOL], "{at}"),
        }
    }
    for line in [
        "PRI * HTTP/1.1\r\nhost: a\r\n\r\n",
        "PRI / HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2\r\n\r\n",
    ] {
        let answer = Answer::parse(&gateway.client().raw(line.as_bytes()));
        assert_eq!(answer.status / 100, 4, "{line:?}: {}", answer.status);
    }
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn a_bad_preface_is_an_error_after_negotiating_http2() {
    let gateway = Running::with("");
    let client = gateway.tls_client().alpn("h2");
    for at in 0..PREFACE.len() {
        assert_eq!(goaways(&client, &changed(at)), [PROTOCOL], "octet {at}");
    }
    let http1 = b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n";
    assert_eq!(goaways(&client, http1), [PROTOCOL]);
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn http2_is_refused_after_negotiating_http1() {
    let gateway = Running::with("");
    let hello = Frames(PREFACE.to_vec()).frame(4, 0, 0, b"").0;
    let answer = Answer::parse(&gateway.tls_client().raw(&hello));
    assert!(answer.status == 0 || answer.status / 100 == 4 || answer.status == 505);
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn the_preface_is_followed_by_settings() {
    let gateway = Running::with("");
    for client in [gateway.client(), gateway.tls_client().alpn("h2")] {
        for (name, frames) in [
            ("PING", none().frame(6, 0, 0, &[0; 8])),
            ("HEADERS", get(1)),
            ("SETTINGS with ACK", none().frame(4, 1, 0, b"")),
            ("WINDOW_UPDATE", none().frame(8, 0, 0, &[0, 0, 0, 1])),
            ("an unknown type", none().frame(0xfa, 0, 0, b"")),
        ] {
            let bytes = [PREFACE, &frames.0].concat();
            assert_eq!(goaways(&client, &bytes), [PROTOCOL], "{name}");
        }
    }
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn the_preface_may_arrive_in_any_pieces() {
    let gateway = Running::with("");
    let bytes = [PREFACE, &none().frame(4, 0, 0, b"").0, &get(1).0].concat();
    for size in [1, 7, 14, 15, 24, 25, 33] {
        let mut wire = gateway.client().connect();
        for piece in bytes.chunks(size) {
            wire.send(piece);
            thread::yield_now();
        }
        assert_eq!(answered(&mut wire), 200, "{size}");
    }
}

#[test]
fn settings_are_sent_first_and_acknowledged() {
    let gateway = Running::with("");
    let mut wire = gateway.client().connect();
    get(1).open(&mut wire);
    let first = next_frame(&mut wire).unwrap();
    assert_eq!((first.0, first.1, first.2), (4, 0, 0));
    let mut acknowledged = false;
    while let Some((kind, flags, _, payload)) = next_frame(&mut wire) {
        acknowledged |= kind == 4 && flags == 1 && payload.is_empty();
        if kind == 1 {
            break;
        }
    }
    assert!(acknowledged);
}

fn answered(wire: &mut Wire) -> u16 {
    loop {
        let (kind, _, _, payload) = next_frame(wire).unwrap();
        if kind == 1 {
            return status(&payload);
        }
    }
}
