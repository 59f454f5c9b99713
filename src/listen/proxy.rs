//! The PROXY header in front of a connection: taken off its socket, and nothing behind it.
//!
//! It has no deadline: run it under `Watch::guard`. Whether the peer may send one is the caller's
//! to know.

use std::fmt;
use std::io::{self, ErrorKind::UnexpectedEof};
use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::sniff;
use crate::facts::proxy::{self, Bad, LONGEST, Said};

/// How much is looked at first: headers without extensions are shorter.
const USUAL: usize = 256;

/// Why a connection has no PROXY header.
#[derive(Debug)]
pub enum NoHeader {
    /// It begins with something else.
    Bad(Bad),
    /// It ended, or its socket failed.
    Io(io::Error),
}

// === impl NoHeader ===

impl fmt::Display for NoHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHeader::Bad(bad) => f.write_str(bad.reason()),
            NoHeader::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for NoHeader {
    fn from(error: io::Error) -> Self {
        NoHeader::Io(error)
    }
}

/// Takes the PROXY header off a connection; `None`: it says nothing about who the client is.
pub async fn proxy_header(stream: &mut TcpStream) -> Result<Option<SocketAddr>, NoHeader> {
    let mut bytes = vec![0; USUAL];
    let mut ended = false;
    loop {
        let seen = stream.peek(&mut bytes).await?;
        match proxy::parse(bytes.get(..seen).unwrap_or_default()).map_err(NoHeader::Bad)? {
            Some((said, length)) => {
                // The bytes are there: this takes them, and no more.
                bytes.resize(length, 0);
                stream.read_exact(&mut bytes).await?;
                return Ok(match said {
                    Said::Source(client) => Some(client),
                    Said::Nothing => None,
                });
            }
            None if seen == bytes.len() && seen < LONGEST => bytes.resize(LONGEST, 0),
            None if seen == 0 || ended => return Err(NoHeader::Io(UnexpectedEof.into())),
            None => ended = sniff::more(stream).await?,
        }
    }
}
