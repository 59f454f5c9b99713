//! HTTP/2 frame by frame, with no opinion about what may be sent.

use super::Wire;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// END_STREAM.
pub const END: u8 = 0x1;
/// END_HEADERS.
pub const WHOLE: u8 = 0x4;
/// PADDED.
pub const PADDED: u8 = 0x8;

/// Frames to send.
#[derive(Clone, Default)]
pub struct Frames(pub Vec<u8>);

/// What came of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An answer with this status.
    Status(u16),
    /// RST_STREAM with this code.
    Reset(u32),
    /// GOAWAY with this code.
    Goaway(u32),
    /// The connection ended without a word.
    Closed,
}

impl Frames {
    /// Any frame.
    pub fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        let length = u32::try_from(payload.len()).unwrap();
        self.0.extend_from_slice(&length.to_be_bytes()[1..]);
        self.0.extend_from_slice(&[kind, flags]);
        self.0.extend_from_slice(&stream.to_be_bytes());
        self.0.extend_from_slice(payload);
        self
    }

    /// HEADERS on stream 1 with these fields as literals, and more flags than END_HEADERS.
    pub fn headers(self, fields: &[(&str, &str)], flags: u8) -> Self {
        self.frame(1, flags | WHOLE, 1, &block(fields))
    }

    /// DATA on stream 1.
    pub fn data(self, bytes: &[u8], flags: u8) -> Self {
        self.frame(0, flags, 1, bytes)
    }

    /// Opens a connection on `wire`, sends the frames and gives the whole answer on stream 1.
    pub fn answer(&self, mut wire: Wire) -> (u16, Vec<u8>) {
        self.open(&mut wire);
        let (mut answer, mut body) = (0, Vec::new());
        while let Some((kind, stream, payload)) = frame(&mut wire) {
            match (kind, stream) {
                (1, 1) => answer = status(&payload),
                (0, 1) => body.extend_from_slice(&payload),
                (3, 1) => break,
                _ => {}
            }
        }
        (answer, body)
    }

    /// Opens a connection on `wire` and sends the frames.
    pub fn open(&self, wire: &mut Wire) {
        let opening = Frames(PREFACE.to_vec()).frame(4, 0, 0, &[]);
        let bytes = [opening.0, self.0.clone()].concat();
        let _ = wire.try_send(&bytes);
    }

    /// Opens a connection on `wire`, sends the frames and gives what came of stream 1.
    pub fn heard(&self, mut wire: Wire) -> Heard {
        self.open(&mut wire);
        loop {
            let Some((kind, stream, payload)) = frame(&mut wire) else {
                return Heard::Closed;
            };
            match (kind, stream) {
                (1, 1) => return Heard::Status(status(&payload)),
                (3, 1) => return Heard::Reset(word(&payload)),
                (7, _) => return Heard::Goaway(word(&payload[4..])),
                _ => {}
            }
        }
    }
}

/// A header block of literals without names in the table (RFC 7541, 6.2.2).
pub fn block<T: AsRef<[u8]>>(fields: &[(T, T)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            string(&mut out, text.as_ref());
        }
    }
    out
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    match u8::try_from(text.len()) {
        Ok(length @ ..127) => out.push(length),
        _ => {
            out.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                out.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text);
}

/// The next frame: its type, flags, stream and payload. `None`: the connection has ended.
pub fn next_frame(wire: &mut Wire) -> Option<(u8, u8, u32, Vec<u8>)> {
    let head = wire.try_exactly(9)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let stream = word(&head[5..]) & 0x7fff_ffff;
    let payload = wire.try_exactly(length as usize)?;
    Some((head[3], head[4], stream, payload))
}

fn frame(wire: &mut Wire) -> Option<(u8, u32, Vec<u8>)> {
    let (kind, _, stream, payload) = next_frame(wire)?;
    Some((kind, stream, payload))
}

/// The first four octets of a payload.
pub fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// `:status` comes first: out of the static table, or a literal that names its entry 8.
pub fn status(block: &[u8]) -> u16 {
    let block = match block {
        // A change of the table's size.
        [0x20..0x40, rest @ ..] => rest,
        all => all,
    };
    match block {
        [first @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(first - 0x88)],
        [0x48 | 0x08, 3, digits @ ..] => {
            let digits = String::from_utf8_lossy(&digits[..3]);
            digits.parse().unwrap()
        }
        // Three digits in Huffman's code: 0, 1 and 2 have five bits, the others six.
        [0x48 | 0x08, 0x82, a, b, ..] => huffman(u32::from_be_bytes([*a, *b, 0, 0])),
        [0x48 | 0x08, 0x83, a, b, c, ..] => huffman(u32::from_be_bytes([*a, *b, *c, 0])),
        other => panic!("no status in {other:x?}"),
    }
}

fn huffman(mut bits: u32) -> u16 {
    let mut number = 0;
    for _ in 0..3 {
        let (digit, length) = match bits >> 27 {
            five @ 0..3 => (five, 5),
            _ => ((bits >> 26) - 0x19 + 3, 6),
        };
        number = number * 10 + digit;
        bits <<= length;
    }
    u16::try_from(number).unwrap()
}
