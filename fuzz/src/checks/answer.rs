//! Any bytes as the answer of an origin: what they mean does not depend on how they arrive, and
//! no more of them is taken than there are.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode};
use lockgate::upstream::http1::{BodyFraming, ResponseEvent, ResponseReader};

/// Takes the first byte for what was asked, the second and third for the cutting, the rest for what
/// the origin sends.
pub fn answer(data: &[u8]) {
    let [asked, first, second, bytes @ ..] = data else {
        return;
    };
    let method = [Method::GET, Method::HEAD, Method::POST][usize::from(asked % 3)].clone();
    let upgrade = asked & 0x80 != 0 && method == Method::GET;
    let asked = Asked { method, upgrade };
    let whole = asked.read(bytes, &[bytes.len().max(1)]);
    whole.check(&asked, bytes);
    let sizes = [usize::from(*first) % 61 + 1, usize::from(*second) % 7 + 1];
    for sizes in [&sizes[..], &[1]] {
        assert_eq!(asked.read(bytes, sizes), whole);
    }
}

/// What was asked.
struct Asked {
    method: Method,
    upgrade: bool,
}

/// What came of an answer.
#[derive(Debug, Default, PartialEq)]
struct Read {
    heads: Vec<(StatusCode, HeaderMap, Option<BodyFraming>)>,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    ended: bool,
    /// Why it broke off, and then how much is left is of no use.
    broken: Option<&'static str>,
    unread: Vec<u8>,
}

// === impl Asked ===

impl Asked {
    /// Reads bytes that come in pieces of these sizes, in turn.
    fn read(&self, bytes: &[u8], sizes: &[usize]) -> Read {
        let mut reader = ResponseReader::new(&self.method, self.upgrade);
        let mut read = Read::default();
        let mut sizes = sizes.iter().cycle();
        let mut rest = bytes;
        while read.broken.is_none() && !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| rest.len().min(*size));
            let (piece, after) = rest.split_at(size);
            reader.push(piece);
            read.take(&mut reader);
            rest = after;
        }
        if read.broken.is_none() {
            read.unread = reader.unread().to_vec();
        }
        read
    }
}

// === impl Read ===

impl Read {
    /// Takes all that the reader has by now.
    fn take(&mut self, reader: &mut ResponseReader) {
        while !self.ended {
            let before = reader.unread().len();
            match reader.read() {
                Ok(None) => return,
                Ok(Some(event)) => self.note(event),
                Err(error) => {
                    self.broken = Some(error.reason());
                    return;
                }
            }
            assert!(
                self.ended || reader.unread().len() < before,
                "no step ahead"
            );
        }
    }

    fn note(&mut self, event: ResponseEvent) {
        match event {
            ResponseEvent::Head(status, headers, framing) => {
                self.heads.push((status, headers, framing))
            }
            ResponseEvent::Data(data) => {
                assert!(!data.is_empty());
                self.body.extend(data);
            }
            ResponseEvent::Trailers(trailers) => {
                assert!(!trailers.is_empty());
                assert_eq!(self.trailers.replace(trailers), None);
            }
            ResponseEvent::End => self.ended = true,
        }
    }

    fn check(&self, asked: &Asked, bytes: &[u8]) {
        assert!(bytes.ends_with(&self.unread));
        assert!(self.body.len() + self.unread.len() <= bytes.len());
        let Some(((status, headers, framing), interim)) = self.heads.split_last() else {
            assert!(self.body.is_empty() && !self.ended);
            return;
        };
        for (status, _, framing) in interim {
            assert!(status.is_informational(), "{status}");
            assert_eq!(*framing, Some(BodyFraming::Length(0)));
        }
        for (_, headers, _) in &self.heads {
            fields(headers);
        }
        if *status == StatusCode::SWITCHING_PROTOCOLS {
            assert!(asked.upgrade);
        }
        self.body_ends_as_said(*framing, headers);
        if asked.method == Method::HEAD || matches!(status.as_u16(), 100..200 | 204 | 304) {
            assert_eq!(*framing, Some(BodyFraming::Length(0)));
        }
        let trailers = self.trailers.as_ref();
        trailers.into_iter().for_each(fields_behind);
    }

    fn body_ends_as_said(&self, framing: Option<BodyFraming>, headers: &HeaderMap) {
        let length = self.body.len() as u64;
        let said = headers.get(CONTENT_LENGTH);
        match framing {
            Some(BodyFraming::Length(all)) => {
                assert!(length <= all && (!self.ended || length == all));
                assert!(self.trailers.is_none());
            }
            Some(BodyFraming::Chunked) => assert_eq!(said, None),
            None => {
                assert_eq!(said, None);
                assert!(!self.ended && self.broken.is_none() && self.unread.is_empty());
            }
        }
    }
}

/// One framing at most, and nothing about the connection.
fn fields(headers: &HeaderMap) {
    assert!(headers.get_all(CONTENT_LENGTH).iter().count() <= 1);
    for name in ["keep-alive", "proxy-connection", "te", "proxy-authenticate"] {
        assert!(!headers.contains_key(name), "{name}");
    }
    assert!(!headers.contains_key(TRANSFER_ENCODING));
    plain(headers);
}

fn fields_behind(trailers: &HeaderMap) {
    for name in [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "set-cookie",
    ] {
        assert!(!trailers.contains_key(name), "{name}");
    }
    plain(trailers);
}

fn plain(headers: &HeaderMap) {
    let control = |byte: &u8| *byte != b'\t' && byte.is_ascii_control();
    for value in headers.values() {
        assert!(!value.as_bytes().iter().any(control), "{value:?}");
    }
}
