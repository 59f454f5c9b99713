//! A WebSocket on a stream of HTTP/2 (RFC 8441), and an origin that takes WebSockets. What flows
//! through them is bytes: no frames of RFC 6455.

use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use bytes::Bytes;
use h2::ext::Protocol;
use http::HeaderMap;

use super::{Origin, Talk, Told, Wire};

/// What `/chat?push` says first.
pub const PUSHED: usize = 16 * 1024 * 1024;

type Heads = Arc<Mutex<Vec<String>>>;

/// A stream that was opened.
pub struct Socket {
    /// The status of the answer.
    pub status: u16,
    /// The fields of the answer.
    pub headers: HeaderMap,
    stream: h2::SendStream<Bytes>,
    body: h2::RecvStream,
}

/// An origin that takes a WebSocket for `/chat` and says back what it hears, and for `/chat?end`
/// and ends it, and for `/chat?deaf` and never ends it, and for `/chat?long` and takes three
/// seconds to end it, and for `/chat?late` half a second late, and for `/chat?push` and says MiBs
/// before it listens; `/wrong` gets a wrong answer to the key, `/no` a 403, and all others a 200.
pub struct Echo {
    /// The origin.
    pub origin: Origin,
    /// The heads that it got.
    pub heads: Heads,
    /// How many of its WebSockets have ended.
    pub ended: Arc<AtomicUsize>,
}

impl Talk {
    /// Asks for a WebSocket, or what `protocol` says, as soon as the gateway allows it.
    pub async fn ask_for(
        &mut self,
        protocol: &'static str,
        path: &str,
    ) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
        while !self.may_extend() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let request = self.request("CONNECT", path);
        let request = request.extension(Protocol::from_static(protocol));
        let request = request.header("sec-websocket-version", "13");
        let request = request.header("sec-websocket-protocol", "chat");
        self.open(request, false).await
    }

    /// Opens a WebSocket.
    pub async fn socket(&mut self, path: &str) -> Socket {
        let (answer, stream) = self.ask_for("websocket", path).await;
        let (head, body) = answer.await.unwrap().into_parts();
        Socket {
            status: head.status.as_u16(),
            headers: head.headers,
            stream,
            body,
        }
    }

    /// All that comes of the wish for a WebSocket, if it is none.
    pub async fn refused(&mut self, path: &str) -> Told {
        let (answer, _stream) = self.ask_for("websocket", path).await;
        Told::hear(answer).await
    }
}

impl Socket {
    /// Sends bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.stream.send_data(bytes, false).unwrap();
    }

    /// Ends this side.
    pub fn end(&mut self) {
        self.stream.send_data(Bytes::new(), true).unwrap();
    }

    /// Breaks it off.
    pub fn reset(mut self) {
        self.stream.send_reset(h2::Reason::CANCEL);
    }

    /// So many bytes, or fewer if it ends.
    pub async fn hear(&mut self, length: usize) -> Vec<u8> {
        let mut heard = Vec::new();
        while heard.len() < length {
            let Some(data) = self.body.data().await else {
                break;
            };
            let data = data.unwrap();
            self.body
                .flow_control()
                .release_capacity(data.len())
                .unwrap();
            heard.extend_from_slice(&data);
        }
        heard
    }
}

impl Echo {
    /// Starts it.
    pub fn start() -> Self {
        let (heads, ended) = <(Heads, Arc<AtomicUsize>)>::default();
        let (seen, over) = (heads.clone(), ended.clone());
        let origin = Origin::scripted(move |stream| {
            let mut wire = Wire::new(stream.try_clone().unwrap());
            while let Some(head) = wire.try_head() {
                let head = String::from_utf8(head).unwrap();
                seen.lock().unwrap().push(head.clone());
                let answer = answer(&head);
                if head.contains("?late ") {
                    std::thread::sleep(Duration::from_millis(500));
                }
                let sent = wire.try_send(answer.as_bytes());
                if sent.is_err() || !answer.contains(" 101 ") {
                    continue;
                }
                if head.contains("?push ") {
                    let _ = wire.try_send(&[b'.'; PUSHED]);
                }
                if !head.contains("?end ") {
                    let _ = std::io::copy(&mut &stream, &mut &stream);
                }
                if head.contains("?long ") {
                    for _ in 0..8 {
                        std::thread::sleep(Duration::from_millis(400));
                        let _ = wire.try_send(b".");
                    }
                }
                if head.contains("?deaf ") {
                    loop {
                        std::thread::park();
                    }
                }
                // Whatever holds the socket.
                let _ = stream.shutdown(Shutdown::Both);
                over.fetch_add(1, Ordering::SeqCst);
                return;
            }
        });
        Self {
            origin,
            heads,
            ended,
        }
    }
}

fn answer(head: &str) -> String {
    let path = head.split(' ').nth(1).unwrap();
    let switch = |accept: &str, first: &str| {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-accept: {accept}\r\nsec-websocket-protocol: chat\r\n\r\n{first}"
        )
    };
    let mut lines = head.lines();
    let key = lines.find_map(|line| line.strip_prefix("sec-websocket-key: "));
    match (path, key) {
        ("/chat", Some(key)) => switch(&accept(key), "first"),
        ("/chat?end" | "/chat?deaf" | "/chat?long" | "/chat?late" | "/chat?push", Some(key)) => {
            switch(&accept(key), "")
        }
        ("/wrong", _) => switch("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", ""),
        ("/no", _) => "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno".to_owned(),
        _ => "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nplain".to_owned(),
    }
}

/// RFC 6455, section 4.2.2.
fn accept(key: &str) -> String {
    let whole = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let bits = digest(&SHA1_FOR_LEGACY_USE_ONLY, whole.as_bytes());
    let bits = bits.as_ref().iter().map(|byte| format!("{byte:08b}"));
    let bits: Vec<char> = bits.collect::<String>().chars().collect();
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = bits.chunks(6).map(|bits| {
        let bits = format!("{:0<6}", bits.iter().collect::<String>());
        char::from(digits[usize::from_str_radix(&bits, 2).unwrap()])
    });
    sextets.chain(['=']).collect()
}
