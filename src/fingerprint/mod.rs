//! ClientHello bytes → JA3 and JA4. Pure: no I/O, no clock.
//!
//! [`ClientHello`] reads the bytes, [`ja3`](fn@ja3) and [`ja4`](fn@ja4) make the two fingerprints. No
//! input makes it panic. A [`Fingerprint`] computes nothing that is not read: it keeps the few
//! hundred bytes of the hello that matter, so that a rule may come to read it later.

mod hello;
mod ja3;
mod ja4;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

pub use hello::{ClientHello, client_hello};
pub use ja3::ja3;
pub use ja4::ja4;

/// The longest JA3 string that is kept, in bytes. Its hash always covers the whole string; real
/// clients stay under 1,000.
pub const MAX_RAW: usize = 4096;

/// What a ClientHello shows of the program that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The MD5 of the JA3 string, 32 hexadecimal digits.
    pub ja3: LazyText,
    /// The JA3 string, at most [`MAX_RAW`] bytes of it.
    pub ja3_raw: LazyText,
    /// The JA4 fingerprint.
    pub ja4: LazyText,
    /// Bytes of the ClientHello message, its four-byte header included.
    pub length: usize,
    /// The server name that the client asked for, as sent.
    pub sni: Option<Box<str>>,
}

/// Text of a ClientHello that nothing may ever ask for.
#[derive(Clone, Default)]
pub struct LazyText {
    text: OnceLock<Box<str>>,
    source: Option<HelloText>,
}

/// What the text is made of, and how.
#[derive(Clone)]
struct HelloText {
    /// What [`ClientHello::sketch`] gave: one copy for all texts of a hello.
    sketch: Arc<[u8]>,
    make: fn(&ClientHello<'_>) -> String,
}

/// Why bytes are not a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientHelloError {
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
pub fn of_records(records: &[u8]) -> Result<Fingerprint, ClientHelloError> {
    let message = client_hello(records)?;
    let hello = ClientHello::parse(&message)?;
    let sketch = hello.sketch();
    Ok(Fingerprint {
        ja3: LazyText::new(sketch.clone(), |hello| ja3(hello).1),
        ja3_raw: LazyText::new(sketch.clone(), ja3_raw),
        ja4: LazyText::new(sketch, ja4),
        length: message.len(),
        sni: hello.server_name().map(Into::into),
    })
}

fn ja3_raw(hello: &ClientHello<'_>) -> String {
    let (mut raw, _) = ja3(hello);
    raw.truncate(MAX_RAW);
    raw
}

/// Appends the numbers, each as `push` writes it, with `between` between them.
fn push_list(
    out: &mut Vec<u8>,
    numbers: impl Iterator<Item = u16>,
    between: u8,
    push: impl Fn(&mut Vec<u8>, u16),
) {
    let start = out.len();
    for number in numbers {
        push(out, number);
        out.push(between);
    }
    if out.len() > start {
        out.pop();
    }
}

/// Appends two hexadecimal digits for each byte.
fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.extend_from_slice(&[hex_digit(byte >> 4), hex_digit(byte)]);
    }
}

/// The hexadecimal digit of the low four bits.
fn hex_digit(value: u8) -> u8 {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = DIGITS.get(usize::from(value & 15));
    digit.copied().unwrap_or_default()
}

/// The buffer as text. Only ASCII is ever written.
fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap_or_default()
}

// === impl LazyText ===

impl LazyText {
    /// What `make` says of the hello that `sketch` stands for.
    pub(super) fn new(sketch: Arc<[u8]>, make: fn(&ClientHello<'_>) -> String) -> Self {
        Self {
            text: OnceLock::new(),
            source: Some(HelloText { sketch, make }),
        }
    }

    /// Whether anything has asked for it.
    pub fn is_computed(&self) -> bool {
        self.text.get().is_some()
    }

    fn compute(&self) -> Box<str> {
        let source = self.source.as_ref();
        let text =
            source.and_then(|from| Some((from.make)(&ClientHello::parse(&from.sketch).ok()?)));
        text.unwrap_or_default().into()
    }
}

impl Deref for LazyText {
    type Target = str;

    fn deref(&self) -> &str {
        self.text.get_or_init(|| self.compute())
    }
}

impl<T: Into<Box<str>>> From<T> for LazyText {
    fn from(text: T) -> Self {
        Self {
            text: OnceLock::from(text.into()),
            source: None,
        }
    }
}

impl PartialEq for LazyText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for LazyText {}

impl fmt::Debug for LazyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for LazyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

// === impl Error ===

impl fmt::Display for ClientHelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the ClientHello is incomplete",
            Self::NotHandshake => "the record is not a TLS handshake record",
            Self::NotClientHello => "the handshake message is not a ClientHello",
            Self::Malformed => "the ClientHello is malformed",
        })
    }
}

impl std::error::Error for ClientHelloError {}
