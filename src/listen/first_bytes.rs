//! The first bytes of a connection: reads a PROXY header, and peeks at the preface of HTTP/2 with prior
//! knowledge.
//!
//! Neither has a timeout: run them under [`super::ConnectionTimer::guard`]. The caller checks whether the peer
//! may send a PROXY header.

use std::io::{self, ErrorKind::InvalidData, ErrorKind::UnexpectedEof};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;

use super::HttpVersion;
use crate::facts::proxy::{self, LONGEST, ProxyHeader};

/// The number of bytes peeked at first: PROXY headers without extensions are shorter.
const USUAL: usize = 256;

/// The start of the connection preface (RFC 9113, 3.4): no HTTP/1 request begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Reads the PROXY header of a connection. `None` if the header names no client. Fails with `InvalidData` if the
/// connection does not begin with one.
pub async fn proxy_header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut bytes = vec![0; USUAL];
    let mut ended = false;
    loop {
        let seen = stream.peek(&mut bytes).await?;
        let parsed = proxy::parse(bytes.get(..seen).unwrap_or_default());
        match parsed.map_err(|bad| io::Error::new(InvalidData, bad.reason()))? {
            Some((said, length)) => {
                // The bytes have arrived: this reads exactly the header.
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

/// Returns the HTTP version on a connection without TLS: HTTP/2 if it begins with the preface.
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

/// Returns the version. `None` while both are possible.
fn protocol_of(first: &[u8]) -> Option<HttpVersion> {
    match first {
        [] => Some(HttpVersion::Http1),
        whole if whole == PREFACE => Some(HttpVersion::Http2),
        part if PREFACE.starts_with(part) => None,
        _ => Some(HttpVersion::Http1),
    }
}

/// Waits for more bytes than those already peeked at. Returns whether the client has ended its side.
async fn await_more(stream: &TcpStream) -> io::Result<bool> {
    // Peeked bytes keep the socket readable. A failed read clears the readiness until the kernel reports new
    // bytes.
    let _ = stream.try_io(Interest::READABLE, || {
        Err::<(), _>(io::ErrorKind::WouldBlock.into())
    });
    Ok(stream.ready(Interest::READABLE).await?.is_read_closed())
}
