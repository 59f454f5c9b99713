//! A client that sends without end and reads only what it must.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::harness::Frames;

/// Turns after which a flood counts as endured. Who does not read must send more than sockets hold.
const ENOUGH: u32 = 100_000;
const ENOUGH_UNREAD: u32 = 1_000_000;

/// How long a write may be held up before the flood counts as stopped.
const HELD_UP: Duration = Duration::from_secs(3);

/// Bytes that are sent, over and over.
pub struct Flood {
    pub name: &'static str,
    opening: Vec<u8>,
    /// The bytes of a turn.
    turn: Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>,
    reads: bool,
}

/// What came of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// GOAWAY with this code.
    Goaway(u32),
    /// An answer of HTTP/1 with this status, and the end.
    Status(u16),
    /// The connection ended without a word.
    Closed,
    /// Nothing more was taken.
    HeldUp,
    /// All was taken.
    Endured,
}

impl Flood {
    /// A flood of HTTP/2 frames, which depend on the number of the turn.
    pub fn http2(name: &'static str, turn: impl Fn(u32) -> Frames + Send + Sync + 'static) -> Self {
        let preface = Frames(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
        Self {
            name,
            opening: preface.frame(4, 0, 0, b"").0,
            turn: Box::new(move |n| turn(n).0),
            reads: true,
        }
    }

    /// A flood of HTTP/1.
    pub fn http1(name: &'static str, opening: &str, turn: &str) -> Self {
        let turn = turn.as_bytes().to_vec();
        Self {
            name,
            opening: opening.as_bytes().to_vec(),
            turn: Box::new(move |_| turn.clone()),
            reads: true,
        }
    }

    /// Sends these frames first.
    pub fn opening(mut self, frames: Frames) -> Self {
        self.opening.extend(frames.0);
        self
    }

    /// Reads nothing of what comes back.
    pub fn deaf(mut self) -> Self {
        self.reads = false;
        self
    }

    /// Sends until it is stopped.
    pub fn run(&self, address: SocketAddr) -> Ended {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_write_timeout(Some(HELD_UP)).unwrap();
        let mut heard = Vec::new();
        let mut bytes = self.opening.clone();
        let turns = if self.reads { ENOUGH } else { ENOUGH_UNREAD };
        for number in 0..turns {
            bytes.extend((self.turn)(number));
            if number % 64 != 63 {
                continue;
            }
            match stream.write_all(&bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ended::HeldUp,
                Err(_) => return self.rest(&mut stream, heard),
            }
            bytes.clear();
            if self.reads && read(&mut stream, &mut heard, Duration::from_micros(200)) {
                return said(&heard);
            }
            if said(&heard) != Ended::Closed {
                return self.rest(&mut stream, heard);
            }
        }
        Ended::Endured
    }

    fn rest(&self, stream: &mut TcpStream, mut heard: Vec<u8>) -> Ended {
        while !read(stream, &mut heard, Duration::from_secs(20)) {}
        said(&heard)
    }
}

/// Reads what is there; true: the connection has ended.
fn read(stream: &mut TcpStream, heard: &mut Vec<u8>, patience: Duration) -> bool {
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut buffer = [0; 64 * 1024];
    match stream.read(&mut buffer) {
        Ok(0) => true,
        Ok(n) => {
            heard.extend_from_slice(&buffer[..n]);
            false
        }
        Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// What the gateway said about the flood, so far.
fn said(heard: &[u8]) -> Ended {
    if heard.starts_with(b"HTTP/1.1 ") {
        let mut statuses = heard.windows(12).filter(|w| w.starts_with(b"HTTP/1.1 "));
        let last = statuses.next_back().unwrap();
        let status: u16 = String::from_utf8_lossy(&last[9..]).parse().unwrap();
        return if status < 400 {
            Ended::Closed
        } else {
            Ended::Status(status)
        };
    }
    let mut rest = heard;
    while let [a, b, c, kind, _, _, _, _, _, payload @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if *kind == 7 && payload.len() >= 8 {
            return Ended::Goaway(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
        rest = payload.get(length..).unwrap_or_default();
    }
    Ended::Closed
}
