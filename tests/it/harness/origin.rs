//! An origin that answers as a request asks and remembers what it saw.
//!
//! `x-answer: 401` asks for that status, `x-answer-header: name: value` for a field; the body of an answer is `origin METHOD PATH`, or the
//! request's own body where there is one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as the origin got it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET /path HTTP/1.1`.
    pub line: String,
    /// Fields in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A running origin.
pub struct Origin {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Origin {
    /// Starts an origin.
    pub fn start() -> Self {
        Self::answering(usual)
    }

    /// An origin that remembers what it got and answers with these bytes.
    pub fn answering(answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = seen.clone();
        let mut origin = Self::scripted(move |stream| serve(stream, &shared, &answer));
        origin.seen = seen;
        origin
    }

    /// An origin that does with each connection what `script` does, and remembers nothing.
    pub fn scripted(script: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = script.clone();
                thread::spawn(move || script(stream));
            }
        });
        let seen = Arc::default();
        Self { address, seen }
    }

    /// An origin that somebody else plays at `address`.
    pub fn at(address: SocketAddr) -> Self {
        let seen = Arc::default();
        Self { address, seen }
    }

    /// What it got so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests it got so far.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Seen {
    /// The first value of a field.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        fields.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// It has room for as many connections as a gateway makes at once: one that finds none is tried
/// again a second later, and is a failure of the origin after two.
fn listener() -> TcpListener {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).unwrap();
    socket.listen(4096).unwrap();
    socket.into()
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>, answer: &dyn Fn(&Seen) -> Vec<u8>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let bytes = answer(&request);
        seen.lock().unwrap().push(request);
        if writer.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// The answer that a request asks for.
fn usual(request: &Seen) -> Vec<u8> {
    let status: u16 = request
        .header("x-answer")
        .map_or(200, |s| s.parse().unwrap());
    let body = match request.body.as_slice() {
        [] => format!("origin {}", request.line).into_bytes(),
        body => body.to_vec(),
    };
    let head = request.line.starts_with("HEAD ");
    let fields = request.headers.iter();
    let wanted: String = fields
        .filter(|(name, _)| name == "x-answer-header")
        .map(|(_, field)| format!("{field}\r\n"))
        .collect();
    let mut answer = format!(
        "HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\nserver: origin\r\n\
         content-type: text/plain\r\n{wanted}\r\n",
        body.len()
    )
    .into_bytes();
    if !head {
        answer.extend_from_slice(&body);
    }
    answer
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let line = read_line(reader)?;
    let mut headers = Vec::new();
    loop {
        let field = read_line(reader)?;
        let Some((name, value)) = field.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen {
        line,
        headers,
        body: Vec::new(),
    };
    if let Some(length) = seen.header("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).ok()?;
        seen.body = body;
    } else if seen.header("transfer-encoding") == Some("chunked") {
        seen.body = read_chunks(reader)?;
    }
    Some(seen)
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&read_line(reader)?, 16).ok()?;
        let mut chunk = vec![0; size];
        reader.read_exact(&mut chunk).ok()?;
        body.extend_from_slice(&chunk);
        while !read_line(reader)?.is_empty() {}
        if size == 0 {
            return Some(body);
        }
    }
}

fn read_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = Vec::new();
    match reader.read_until(b'\n', &mut line) {
        Ok(1..) => {
            let line = String::from_utf8_lossy(&line);
            Some(line.trim_end_matches(['\r', '\n']).to_owned())
        }
        _ => None,
    }
}
