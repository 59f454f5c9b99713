//! ClientHello bytes → JA3 and JA4. Pure: no I/O, no clock.
//!
//! [`ClientHello`] reads the bytes, [`ja3`](fn@ja3) and [`ja4`](fn@ja4) make the two fingerprints. No
//! input makes it panic. A [`Fingerprint`] computes nothing that is not read: it keeps the few
//! hundred bytes of the hello that matter, so that a rule may come to read it later.

mod cursor;
mod hello;
mod ja3;
mod ja4;
mod lazy;
mod order;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

pub use hello::{ClientHello, client_hello};
pub use ja3::ja3;
pub use ja4::ja4;
pub use lazy::Lazy;

/// The longest JA3 string that is kept, in bytes. Its hash always covers the whole string; real
/// clients stay under 1,000.
pub const MAX_RAW: usize = 4096;

/// What a ClientHello shows of the program that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The MD5 of the JA3 string, 32 hexadecimal digits.
    pub ja3: Lazy,
    /// The JA3 string, at most [`MAX_RAW`] bytes of it.
    pub ja3_raw: Lazy,
    /// The JA4 fingerprint.
    pub ja4: Lazy,
    /// Bytes of the ClientHello message, its four-byte header included.
    pub length: usize,
    /// The server name that the client asked for, as sent.
    pub sni: Option<Box<str>>,
}

/// Why bytes are not a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes end before the message does.
    Incomplete,
    /// A record that carries no handshake message.
    NotHandshake,
    /// A handshake message of another type.
    NotClientHello,
    /// The lengths inside the message do not add up.
    Malformed,
}

/// The fingerprints of the ClientHello that these TLS records carry. Bytes after it are ignored.
pub fn of_records(records: &[u8]) -> Result<Fingerprint, Error> {
    let message = client_hello(records)?;
    let hello = ClientHello::parse(&message)?;
    let sketch = hello.sketch();
    Ok(Fingerprint {
        ja3: Lazy::new(sketch.clone(), |hello| ja3(hello).1),
        ja3_raw: Lazy::new(sketch.clone(), ja3_raw),
        ja4: Lazy::new(sketch, ja4),
        length: message.len(),
        sni: hello.server_name().map(Into::into),
    })
}

fn ja3_raw(hello: &ClientHello<'_>) -> String {
    let (mut raw, _) = ja3(hello);
    raw.truncate(MAX_RAW);
    raw
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the ClientHello is incomplete",
            Self::NotHandshake => "the record is not a TLS handshake record",
            Self::NotClientHello => "the handshake message is not a ClientHello",
            Self::Malformed => "the ClientHello is malformed",
        })
    }
}

impl std::error::Error for Error {}
