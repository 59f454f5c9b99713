//! An origin that reads strictly and keeps what it got, whole requests or not.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use super::strict::{self, Message, Read};
use super::table::Wanted;
use crate::harness::{Origin, Running};

/// What came over a connection.
#[derive(Clone, Debug)]
pub enum Got {
    /// A request.
    Whole(Message),
    /// The beginning of one, and then the end of the connection.
    Part(String),
    /// What is no request as the gateway writes one.
    Wrong(String),
}

/// What an origin got.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Got>>>);

impl Recorder {
    /// A gateway before such an origin that trusts no proxy and whose idle connections end soon.
    pub fn behind(rules: &str) -> (Running, Self) {
        let recorder = Self::default();
        let own = recorder.clone();
        let origin = Origin::scripted(move |stream| own.record(stream));
        let config = include_str!("gateway.toml");
        (
            Running::before(origin, &format!("{config}{rules}")),
            recorder,
        )
    }

    /// All it got so far.
    pub fn got(&self) -> Vec<Got> {
        self.0.lock().unwrap().clone()
    }

    fn record(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..read]);
            loop {
                match strict::read(&bytes) {
                    Read::Whole(message, length) => {
                        bytes.drain(..length);
                        self.push(Got::Whole(message));
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
                    }
                    Read::More => break,
                    Read::Wrong(why) => {
                        let text = String::from_utf8_lossy(&bytes);
                        return self.push(Got::Wrong(format!("{why} in {text:?}")));
                    }
                }
            }
        }
        if !bytes.is_empty() {
            self.push(Got::Part(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }

    fn push(&self, got: Got) {
        self.0.lock().unwrap().push(got);
    }
}

impl Got {
    /// Whether it is of the case with this number.
    pub fn is_of(&self, case: usize) -> bool {
        match self {
            Got::Whole(message) => message.field("x-case") == Some(&case.to_string()),
            Got::Part(text) | Got::Wrong(text) => text.contains(&format!("x-case: {case}\r")),
        }
    }
}

impl Message {
    /// The same without what every request has: what the test is about.
    #[track_caller]
    pub fn wanted(&self) -> Wanted {
        let text = |(name, value): &(String, String)| format!("{name}: {value}");
        let host = self.field("host").unwrap().to_owned();
        let (own, others): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|(name, _)| is_written(name));
        let mut seen: Vec<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        seen.sort_unstable();
        let before = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), before, "doubled: {seen:?}");
        assert_eq!(self.field("x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(self.field("x-real-ip"), Some("127.0.0.1"));
        assert_eq!(self.field("x-forwarded-host"), Some(&*host));
        assert_eq!(self.field("x-forwarded-proto"), Some("http"));
        assert_eq!(self.field("x-request-id").map(str::len), Some(32));
        Wanted {
            line: self.line.clone(),
            host,
            fields: others.into_iter().map(text).collect(),
            body: self.body.clone(),
            trailers: self.trailers.iter().map(text).collect(),
            closes: false,
        }
    }
}

/// Whether a field is the gateway's own, or the number of the case.
fn is_written(name: &str) -> bool {
    let own = ["host", "x-case", "x-real-ip", "x-request-id"];
    let framing = ["content-length", "transfer-encoding"];
    let forwarded = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
    own.contains(&name) || framing.contains(&name) || forwarded.contains(&name)
}
