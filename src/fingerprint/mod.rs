//! ClientHello bytes → JA3 and JA4. Pure: no I/O, no clock.
//!
//! [`ClientHello`] parses the bytes, [`ja3`](fn@ja3) and [`ja4`](fn@ja4) compute the two
//! fingerprints. No input causes a panic. A [`Fingerprint`] computes its texts on first read: it
//! keeps the few hundred bytes of the hello that they need, because a rule may read them later.

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

/// The longest stored JA3 string, in bytes. The hash always covers the whole string. Real clients
/// stay below 1,000.
pub const MAX_RAW: usize = 4096;

/// The fingerprints and other properties of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The MD5 of the JA3 string, 32 hexadecimal digits.
    pub ja3: LazyText,
    /// The JA3 string, truncated to [`MAX_RAW`] bytes.
    pub ja3_raw: LazyText,
    /// The JA4 fingerprint.
    pub ja4: LazyText,
    /// The length of the ClientHello message in bytes, including its four-byte header.
    pub length: usize,
    /// The server name that the client requested, as sent. `None` if there is none.
    pub sni: Option<Box<str>>,
}

/// A text of a ClientHello that is computed on first read.
#[derive(Clone, Default)]
pub struct LazyText {
    text: OnceLock<Box<str>>,
    source: Option<HelloText>,
}

/// The source of the text and the function that computes it.
#[derive(Clone)]
struct HelloText {
    /// The message from [`ClientHello::sketch`], shared by all texts of a hello.
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

/// The fingerprints of the ClientHello in these TLS records. Bytes after it are ignored.
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

/// Appends the numbers, each written by `push`, separated by `between`.
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
    /// A text that `make` computes from the hello in `sketch`.
    pub(super) fn new(sketch: Arc<[u8]>, make: fn(&ClientHello<'_>) -> String) -> Self {
        Self {
            text: OnceLock::new(),
            source: Some(HelloText { sketch, make }),
        }
    }

    /// Whether the text has been read.
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

// === impl ClientHelloError ===

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
