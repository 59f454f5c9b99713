//! HTTP/2 with prior knowledge on a plain listener, told from HTTP/1 by its preface.
//!
//! It looks at the first bytes and takes none. It has no deadline: run it under `Watch::guard`.

use std::io;

use tokio::io::Interest;
use tokio::net::TcpStream;

use super::Protocol;

/// The start of the connection preface (RFC 9113, 3.4): no HTTP/1 request begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// What a client on a plain connection speaks: HTTP/2 if it begins with the preface.
pub async fn sniff(stream: &TcpStream) -> io::Result<Protocol> {
    let mut first = [0; PREFACE.len()];
    let mut ended = false;
    loop {
        let seen = stream.peek(&mut first).await?;
        match judge(first.get(..seen).unwrap_or_default()) {
            Some(protocol) => return Ok(protocol),
            None if ended => return Ok(Protocol::Http1),
            None => ended = more(stream).await?,
        }
    }
}

/// `None`: it may become either.
fn judge(first: &[u8]) -> Option<Protocol> {
    match first {
        [] => Some(Protocol::Http1),
        whole if whole == PREFACE => Some(Protocol::Http2),
        part if PREFACE.starts_with(part) => None,
        _ => Some(Protocol::Http1),
    }
}

/// Waits for bytes beyond those already looked at; true: none will come.
pub(super) async fn more(stream: &TcpStream) -> io::Result<bool> {
    // Bytes that stay in the socket keep it readable. A refused read clears that until the
    // kernel reports new ones.
    let _ = stream.try_io(Interest::READABLE, || {
        Err::<(), _>(io::ErrorKind::WouldBlock.into())
    });
    Ok(stream.ready(Interest::READABLE).await?.is_read_closed())
}
