//! Origins that are broken or mean harm: a client gets 502, an answer that visibly breaks off, or
//! a good one, and the connection is never used again.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use toml::{Table, Value};

use super::table::{self, byte};
use crate::harness::{self, Answer, Origin, Running};

const CONFIG: &str = r#"
[server]
workers = 1
drain_timeout = "5s"
[log]
access = "off"
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "origin"
servers = ["{origin}"]
response_timeout = "1s"
[[routes]]
upstream = "origin"
"#;

/// An answer, and what must come of it.
struct Fault {
    name: String,
    method: String,
    send: Vec<u8>,
    then: String,
    later: Vec<u8>,
    expect: Expect,
}

enum Expect {
    Status(u16),
    Cut,
    Whole(u16, Vec<u8>),
}

/// What a client got.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// An answer to its end.
    Whole(u16, Vec<u8>),
    /// The head of one, and not all of its body.
    Cut(u16),
    /// Neither.
    Nothing,
}

/// An origin that does what the path asks for.
#[derive(Clone, Default)]
struct Broken {
    faults: Arc<Vec<Fault>>,
    /// The connection of the last answer.
    held: Arc<Mutex<Option<TcpStream>>>,
    /// What was sent on a connection that had broken the rules.
    again: Arc<Mutex<Vec<String>>>,
}

#[test]
fn origin_faults_are_contained_for_http_1_clients() {
    run(|gateway, method, path| {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        heard(&gateway.client().raw(request.as_bytes()), method == "HEAD")
    });
}

#[test]
fn origin_faults_are_contained_for_http_2_clients() {
    run(|gateway, method, path| {
        let told = harness::run(async {
            let mut talk = gateway.client().talk().await;
            let request = talk.request(method, path);
            talk.send(request).await
        });
        match (told.status, told.error) {
            (0, _) => Heard::Nothing,
            (status, None) => Heard::Whole(status, told.body),
            (status, Some(_)) => Heard::Cut(status),
        }
    });
}

fn run(ask: impl Fn(&Running, &str, &str) -> Heard) {
    let broken = Broken::new(faults());
    assert!(broken.faults.len() >= 70);
    let own = broken.clone();
    let origin = Origin::scripted(move |stream| drop(own.serve(stream)));
    let gateway = Running::before(origin, CONFIG);
    let mut wrong = Vec::new();
    for (number, fault) in broken.faults.iter().enumerate() {
        let heard = ask(&gateway, &fault.method, &format!("/fault/{number}"));
        if !fault.expect.is(&heard) {
            wrong.push(format!("{}: {heard:?}", fault.name));
        }
        broken.speak_unasked(fault);
        let after = ask(&gateway, "GET", "/ok");
        if after != Heard::Whole(200, b"fine".to_vec()) {
            wrong.push(format!("after {}: {after:?}", fault.name));
        }
    }
    let again = broken.again.lock().unwrap();
    wrong.extend(again.iter().map(|name| format!("used again: {name}")));
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

fn faults() -> Vec<Fault> {
    let file = table::read(include_str!("../../data/hostile/faults.toml"));
    let faults = table::tables(&file, "fault");
    faults.into_iter().map(Fault::read).collect()
}

impl Fault {
    fn read(table: &Table) -> Self {
        let text = |key, otherwise: &str| match table.contains_key(key) {
            true => table::text(table, key),
            false => otherwise.to_owned(),
        };
        let bytes = |key| table::expand(&text(key, "")).chars().map(byte).collect();
        let number = |value: &Value| u16::try_from(value.as_integer().unwrap()).unwrap();
        Self {
            name: text("name", ""),
            method: text("method", "GET"),
            send: bytes("send"),
            then: text("then", "keep"),
            later: bytes("later"),
            expect: match &table["expect"] {
                Value::String(word) if word == "cut" => Expect::Cut,
                Value::String(_) => {
                    let status = table.get("status").map_or(200, number);
                    Expect::Whole(status, bytes("body"))
                }
                status => Expect::Status(number(status)),
            },
        }
    }
}

impl Expect {
    fn is(&self, heard: &Heard) -> bool {
        match (self, heard) {
            (Expect::Status(wanted), Heard::Whole(status, _)) => status == wanted,
            // Where it is seen before the head was passed on, the client need not get that.
            (Expect::Cut, Heard::Cut(200) | Heard::Whole(502, _)) => true,
            (Expect::Whole(wanted, body), Heard::Whole(status, got)) => {
                status == wanted && got == body
            }
            _ => false,
        }
    }
}

impl Broken {
    fn new(faults: Vec<Fault>) -> Self {
        Self {
            faults: Arc::new(faults),
            ..Self::default()
        }
    }

    /// Serves one connection; an error is its end.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        // Or the kernel would hold back what nobody asked for.
        stream.set_nodelay(true)?;
        let mut broken: Option<&Fault> = None;
        while let Some(path) = path(&mut stream)? {
            if let Some(fault) = broken {
                self.again.lock().unwrap().push(fault.name.clone());
            }
            let Some(number) = path.strip_prefix("/fault/") else {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine")?;
                continue;
            };
            let fault = &self.faults[number.parse::<usize>().unwrap()];
            broken = Some(fault);
            *self.held.lock().unwrap() = Some(stream.try_clone()?);
            stream.write_all(&fault.send)?;
            match fault.then.as_str() {
                "close" => return stream.shutdown(std::net::Shutdown::Both),
                "reset" => return self.reset(&stream),
                "drip" => loop {
                    stream.write_all(b"x")?;
                    thread::sleep(Duration::from_millis(20));
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// The connection ends with RST when its last handle goes.
    fn reset(&self, stream: &TcpStream) -> std::io::Result<()> {
        *self.held.lock().unwrap() = None;
        socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
    }

    /// Says what nobody asked for.
    fn speak_unasked(&self, fault: &Fault) {
        let held = self.held.lock().unwrap().take();
        if let (Some(mut stream), false) = (held, fault.later.is_empty()) {
            // It may have been closed already, which is as good.
            let _ = stream.write_all(&fault.later);
        }
    }
}

/// The path of the next request, which has no body.
fn path(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8(head).unwrap();
    Ok(head.split(' ').nth(1).map(str::to_owned))
}

/// What a client got over HTTP/1.1, by a strict reading.
fn heard(bytes: &[u8], of_head: bool) -> Heard {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Heard::Nothing;
    };
    let (head, rest) = bytes.split_at(end + 4);
    let answer = Answer::parse(head);
    let empty = of_head || matches!(answer.status, 204 | 304);
    let body = match answer.header("content-length") {
        _ if empty => Some(rest.to_vec()),
        Some(length) => {
            let length: usize = length.parse().unwrap();
            (rest.len() >= length).then(|| rest.to_vec())
        }
        None => chunks(rest),
    };
    match body {
        Some(body) => Heard::Whole(answer.status, body),
        None => Heard::Cut(answer.status),
    }
}

/// The body in chunks that end as they must.
fn chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|w| w == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        let chunk = rest.get(end + 2..end + 2 + size)?;
        body.extend_from_slice(chunk);
        rest = rest[end + 2 + size..].strip_prefix(b"\r\n")?;
        if size == 0 {
            return rest.is_empty().then_some(body);
        }
    }
}
