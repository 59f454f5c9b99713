//! What RFC 9113 and RFC 7541 ask of a server, case by case, over TLS and with prior knowledge.
//!
//! A case is named after its section. It sends frames, and says what must come back.

mod frames;
mod hpack;
mod messages;
mod preface;
mod states;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::harness::{Client, Frames, Running, block, next_frame, status, word};

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL: u32 = 1;
pub const FLOW_CONTROL: u32 = 3;
pub const CLOSED: u32 = 5;
pub const SIZE: u32 = 6;
pub const REFUSED: u32 = 7;
pub const COMPRESSION: u32 = 9;
pub const CALM: u32 = 11;

/// The payload of the PING with which a case ends.
const LAST: &[u8] = b"the last";

/// What must come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A connection error: GOAWAY with one of these codes, and the end.
    Goaway(&'static [u32]),
    /// A stream error: RST_STREAM with one of these codes, or GOAWAY with it, since 5.4.1 lets an
    /// endpoint treat a stream error as one of the connection.
    Reset(u32, &'static [u32]),
    /// A whole answer with this status on this stream.
    Status(u32, u16),
    /// No error: the PING at the end is answered.
    Alive,
}

/// One case.
pub struct Case {
    name: String,
    first: Frames,
    /// Sent when the answer on stream 1 has ended.
    then: Option<Frames>,
    want: Want,
}

/// Frames, and what must come back.
pub fn case(name: impl Into<String>, first: Frames, want: Want) -> Case {
    Case {
        name: name.into(),
        first,
        then: None,
        want,
    }
}

/// Frames, more of them when stream 1 is closed, and what must come back.
pub fn after(name: impl Into<String>, first: Frames, then: Frames, want: Want) -> Case {
    let then = Some(then);
    Case {
        then,
        ..case(name, first, want)
    }
}

/// No frames yet.
pub fn none() -> Frames {
    Frames::default()
}

/// The head of a request with this method.
pub fn head(method: &str) -> Vec<u8> {
    block(&[
        (":method", method),
        (":scheme", "http"),
        (":authority", "a.example"),
        (":path", "/"),
    ])
}

/// A whole GET on this stream.
pub fn get(stream: u32) -> Frames {
    none().frame(1, 0x5, stream, &head("GET"))
}

/// The head of a POST on this stream.
pub fn post(stream: u32) -> Frames {
    none().frame(1, 0x4, stream, &head("POST"))
}

#[test]
fn the_gateway_conforms_to_the_http2_standard() {
    let gateway = Running::with("[limits]\nmax_header_bytes = \"16KiB\"");
    let cases: Vec<Case> = [
        frames::cases(),
        states::cases(),
        messages::cases(),
        hpack::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(cases.len() >= 140, "{} cases", cases.len());
    let clients = [gateway.client(), gateway.tls_client().alpn("h2")];
    for client in clients {
        let wrong = run(&client, &cases);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
    let errors = gateway.metrics();
    let counted = |kind: &str| !errors.contains(&format!("{{kind=\"{kind}\"}} 0\n"));
    assert!(counted("malformed"), "{errors}");
    gateway.client().times(1).all_are(200);
}

fn run(client: &Client, cases: &[Case]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let heard = Mutex::new(Vec::new());
                    // Silence panics, after what was heard before.
                    let _ = thread::scope(|s| s.spawn(|| case.listen(client, &heard)).join());
                    let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
                    if !case.is_met(&heard) {
                        let text = format!("{}: {:?}, got {heard:?}", case.name, case.want);
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

impl Case {
    /// Takes down what comes back, until the case is decided or the connection ends.
    fn listen(&self, client: &Client, heard: &Mutex<Vec<String>>) {
        let mut wire = client.connect();
        let ping = |frames: Frames| frames.frame(6, 0, 0, LAST);
        let mut then = self.then.clone();
        match &then {
            Some(_) => self.first.open(&mut wire),
            None => ping(self.first.clone()).open(&mut wire),
        }
        while !self.is_decided(&heard.lock().unwrap()) {
            let Some((kind, flags, stream, payload)) = next_frame(&mut wire) else {
                heard.lock().unwrap().push("end".into());
                return;
            };
            let event = match kind {
                1 => format!("status {stream} {}", status(&payload)),
                3 => format!("reset {stream} {}", word(&payload)),
                6 if payload == LAST && flags == 1 => "pong".into(),
                7 => format!("goaway {}", word(&payload[4..])),
                _ => format!("type {kind}"),
            };
            heard.lock().unwrap().push(event);
            let ends = kind < 2 && flags & 1 == 1 && stream == 1;
            if let (true, Some(frames)) = (ends || kind == 3, then.take_if(|_| ends || kind == 3)) {
                let _ = wire.try_send(&ping(frames).0);
            }
        }
    }

    fn is_decided(&self, heard: &[String]) -> bool {
        match self.want {
            Want::Goaway(_) => false,
            Want::Reset(stream, _) => {
                let reset = format!("reset {stream} ");
                heard.iter().any(|event| event.starts_with(&reset))
            }
            Want::Status(stream, _) => {
                let status = format!("status {stream} ");
                heard.iter().any(|event| event.starts_with(&status))
            }
            Want::Alive => heard.iter().any(|event| event == "pong"),
        }
    }

    fn is_met(&self, heard: &[String]) -> bool {
        let has = |event: String| heard.contains(&event);
        let gone = |codes: &[u32]| {
            let told = codes.iter().any(|code| has(format!("goaway {code}")));
            told && has("end".into())
        };
        match self.want {
            Want::Goaway(codes) => gone(codes),
            Want::Reset(stream, codes) => {
                let reset = |code: &u32| has(format!("reset {stream} {code}"));
                codes.iter().any(reset) || gone(codes)
            }
            Want::Status(stream, status) => has(format!("status {stream} {status}")),
            Want::Alive => {
                let bad = |event: &String| event.starts_with("goaway") || event == "end";
                has("pong".into()) && !heard.iter().any(bad)
            }
        }
    }
}
