//! HTTP/1.1, byte by byte.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Instant;

use socket2::{Domain, Socket, Type};

use super::answer::{Answer, Asks, now};

pub struct Client {
    stream: TcpStream,
}

/// A connection from this address.
pub fn dial(to: SocketAddr, from: IpAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).unwrap();
    stream
}

impl Client {
    pub fn connect(to: SocketAddr, from: IpAddr) -> Self {
        Self {
            stream: dial(to, from),
        }
    }
}

impl Asks for Client {
    fn ask(&mut self, path: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nhost: example.com\r\naccept: */*\r\n\r\n");
        let began = Instant::now();
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Answer::default();
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        loop {
            let read = self.stream.read(&mut buffer).unwrap();
            assert!(
                read > 0,
                "closed after {:?}",
                String::from_utf8_lossy(&bytes)
            );
            let elapsed = began.elapsed();
            answer.reads += 1;
            if answer.reads == 1 {
                answer.first = elapsed;
            }
            bytes.extend_from_slice(&buffer[..read]);
            if parse(&bytes, &mut answer) {
                answer.last = elapsed;
                answer.at = now();
                return answer;
            }
        }
    }
}

/// Whether the answer is whole.
fn parse(bytes: &[u8], answer: &mut Answer) -> bool {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let fields = head
        .split("\r\n")
        .skip(1)
        .map(|line| line.split_once(": ").unwrap());
    answer.headers = fields.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let rest = &bytes[end + 4..];
    let length = answer
        .headers
        .iter()
        .find(|(name, _)| name == "content-length");
    match length {
        Some((_, length)) => {
            let length: usize = length.parse().unwrap();
            answer.body = rest.to_vec();
            answer.pieces = vec![length];
            rest.len() >= length
        }
        None => chunks(rest, answer),
    }
}

fn chunks(mut rest: &[u8], answer: &mut Answer) -> bool {
    (answer.pieces, answer.body) = (Vec::new(), Vec::new());
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(data) = rest.get(end + 2..end + 4 + size) else {
            return false;
        };
        if size == 0 {
            return true;
        }
        answer.pieces.push(size);
        answer.body.extend_from_slice(&data[..size]);
        rest = &rest[end + 4 + size..];
    }
    false
}
