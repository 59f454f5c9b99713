//! Bytes that mean nothing, and clients that leave in the middle: no core may fall over them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::{check_alive, gateway};
use crate::harness::{END, Frames, PADDED, Running};

const ROUNDS: u32 = 400;

const REQUESTS: [&str; 4] = [
    "GET /a/../b?c=d HTTP/1.1\r\nhost: a.example\r\ncookie: a=b; c\r\n\r\n",
    "POST /p HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhello",
    "POST /p HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n\
     5;x=y\r\nhello\r\n0\r\nt: u\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
    "GET /ws HTTP/1.1\r\nhost: a.example\r\nconnection: upgrade\r\n\
     upgrade: websocket\r\nx-forwarded-for: 1.2.3.4, [::1]:5\r\n\r\n",
];

/// The same numbers each time (xorshift32).
pub(super) struct Numbers(pub(super) u32);

impl Numbers {
    /// The next number, less than `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % bound
    }

    /// Changes, drops or adds a few bytes.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            let byte = self.below(256) as u8;
            match self.below(4) {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes.insert(at, b"\r\n\t :%;,\0\xff"[self.below(10)]),
                _ => bytes.truncate(at + 1),
            }
        }
    }
}

/// Calls `send` with numbers of its own, on several threads.
fn rounds(send: impl Fn(&mut Numbers) + Sync) {
    let next = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= ROUNDS {
                        return;
                    }
                    send(&mut Numbers(0x9e37_79b9 ^ (round + 1)));
                }
            });
        }
    });
}

/// Sends all and ends; waits for the end of the other side.
fn throw(address: SocketAddr, bytes: &[u8]) {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = tcp.write_all(bytes);
    let _ = tcp.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    let _ = tcp.read_to_end(&mut rest);
}

#[test]
fn corrupted_requests_do_not_stop_the_gateway() {
    let gateway = gateway("");
    rounds(|numbers| {
        let request = REQUESTS[numbers.below(REQUESTS.len())];
        let mut bytes = request.as_bytes().to_vec();
        numbers.spoil(&mut bytes);
        throw(gateway.address(0), &bytes);
    });
    check_alive(&gateway);
}

#[test]
fn corrupted_frames_do_not_stop_the_gateway() {
    let gateway = gateway("");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a.example"),
        (":path", "/p?q"),
        ("cookie", "a=b"),
        ("te", "trailers"),
    ];
    let frames = Frames(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec())
        .frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])
        .headers(&fields, 0)
        .data(b"hello", 0)
        .data(b"\x02again\0\0", PADDED)
        .frame(8, 0, 0, &[0, 0, 1, 0])
        .headers(&[("x-sum", "1")], END)
        .frame(3, 0, 1, &[0, 0, 0, 8]);
    rounds(|numbers| {
        let mut bytes = frames.0.clone();
        // The preface stays, or it would not be HTTP/2.
        let mut rest = bytes.split_off(24);
        numbers.spoil(&mut rest);
        bytes.extend_from_slice(&rest);
        throw(gateway.address(0), &bytes);
    });
    check_alive(&gateway);
}

#[test]
fn corrupted_handshakes_do_not_stop_the_gateway() {
    let gateway = gateway("");
    rounds(|numbers| {
        // A record that claims to be a ClientHello, with anything in it.
        let length = 1 + numbers.below(300);
        let mut bytes = vec![22, 3, 1, (length / 256) as u8, length as u8, 1, 0];
        bytes.extend((2..length).map(|_| numbers.below(256) as u8));
        numbers.spoil(&mut bytes);
        throw(gateway.address(1), &bytes);
    });
    check_alive(&gateway);
}

#[test]
fn a_truncated_body_never_becomes_a_request() {
    for rules in ["", DENY, SHADOW] {
        let gateway = gateway(rules);
        for body in [
            "content-length: 10\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\na\r\nhello",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ] {
            let request = format!("POST /p HTTP/1.1\r\nhost: a.example\r\n{body}");
            throw(gateway.address(0), request.as_bytes());
        }
        assert_eq!(gateway.origin.count(), 0);
        check_alive(&gateway);
    }
}

const DENY: &str = "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'";
const SHADOW: &str = "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'\n\
                      action = \"shadow\"";

#[test]
fn disconnects_do_not_stop_the_gateway() {
    let gateway: Running = gateway("");
    rounds(|numbers| {
        let request = REQUESTS[numbers.below(REQUESTS.len())].as_bytes();
        let mut tcp = TcpStream::connect(gateway.address(0)).unwrap();
        let _ = tcp.write_all(&request[..numbers.below(request.len() + 1)]);
    });
    check_alive(&gateway);
}
