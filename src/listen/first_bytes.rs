//! What a connection begins with: a PROXY header, which is taken off, and the preface of HTTP/2 with
//! prior knowledge, which is only looked at.
//!
//! Neither has a deadline: run them under [`super::ConnectionTimer::guard`]. Whether the peer may
//! send a PROXY header is for the caller to check.

use std::io::{self, ErrorKind::InvalidData, ErrorKind::UnexpectedEof};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;

use super::HttpVersion;
use crate::facts::proxy::{self, LONGEST, ProxyHeader};

/// How much is looked at first: PROXY headers without extensions are shorter.
const USUAL: usize = 256;

/// The start of the connection preface (RFC 9113, 3.4): no HTTP/1 request begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Takes the PROXY header off a connection. `None` if the header names no client. Fails with
/// `InvalidData` if the connection begins with something else.
pub async fn proxy_header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut bytes = vec![0; USUAL];
    let mut ended = false;
    loop {
        let seen = stream.peek(&mut bytes).await?;
        let parsed = proxy::parse(bytes.get(..seen).unwrap_or_default());
        match parsed.map_err(|bad| io::Error::new(InvalidData, bad.reason()))? {
            Some((said, length)) => {
                // The bytes are there: this takes them, and no more.
                bytes.resize(length, 0);
                stream.read_exact(&mut bytes).await?;
                return Ok(match said {
                    ProxyHeader::Source(client) => Some(client),
                    ProxyHeader::Nothing => None,
                });
            }
            None if seen == bytes.len() && seen < LONGEST => bytes.resize(LONGEST, 0),
            None if seen == 0 || ended => return Err(UnexpectedEof.into()),
            None => ended = await_more(stream).await?,
        }
    }
}

/// What a client on a plain connection speaks: HTTP/2 if it begins with the preface.
pub async fn sniff(stream: &TcpStream) -> io::Result<HttpVersion> {
    let mut first = [0; PREFACE.len()];
    let mut ended = false;
    loop {
        let seen = stream.peek(&mut first).await?;
        match protocol_of(first.get(..seen).unwrap_or_default()) {
            Some(protocol) => return Ok(protocol),
            None if ended => return Ok(HttpVersion::Http1),
            None => ended = await_more(stream).await?,
        }
    }
}

/// `None` while it may become either.
fn protocol_of(first: &[u8]) -> Option<HttpVersion> {
    match first {
        [] => Some(HttpVersion::Http1),
        whole if whole == PREFACE => Some(HttpVersion::Http2),
        part if PREFACE.starts_with(part) => None,
        _ => Some(HttpVersion::Http1),
    }
}

/// Waits for bytes beyond those already looked at. Returns whether the client has ended its side.
async fn await_more(stream: &TcpStream) -> io::Result<bool> {
    // Bytes that stay in the socket keep it readable. A refused read clears that until the
    // kernel reports new ones.
    let _ = stream.try_io(Interest::READABLE, || {
        Err::<(), _>(io::ErrorKind::WouldBlock.into())
    });
    Ok(stream.ready(Interest::READABLE).await?.is_read_closed())
}
