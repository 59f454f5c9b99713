//! The codec of HTTP/1.1 without a connection: the head that an origin would get, and what becomes
//! of the bytes that it would send, however they are cut. Fuzzing comes in here; no request does.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::Outbound;
use super::answer::{self, Asked, Length};
use super::download;
use super::error::{Error, Kind};
use super::inbox::Inbox;
use super::upload::Upload;

/// Reads the answers that come over one connection to one request.
pub struct Reader {
    inbox: Inbox,
    asked: Asked,
    /// How long the body is, once its head was read.
    length: Option<Length>,
}

/// What an origin said next.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A head; after an interim one comes another.
    Head(StatusCode, HeaderMap, Framing),
    /// A piece of the body.
    Data(Bytes),
    /// The end of the body, with trailers.
    Trailers(HeaderMap),
    /// The end of the body.
    End,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
    /// With its connection.
    Close,
}

/// The bytes of a request's head, up to and with the empty line.
pub fn request_head(outbound: Outbound<'_>) -> Result<Vec<u8>, Error> {
    Ok(Upload::new(outbound)?.into_head())
}

// === impl Reader ===

impl Reader {
    /// Reads what is answered to `method`, or to a WebSocket handshake.
    pub fn new(method: &Method, upgrade: bool) -> Self {
        Self {
            inbox: Inbox::default(),
            asked: Asked::new(method, upgrade),
            length: None,
        }
    }

    /// Takes in what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
    }

    /// What came and was not read yet.
    pub fn unread(&self) -> &[u8] {
        self.inbox.bytes()
    }

    /// What was said next; `None` if more has to come.
    pub fn read(&mut self) -> Result<Option<Event>, Error> {
        let Some(length) = &mut self.length else {
            return self.head();
        };
        if download::is_over(length) {
            return Ok(Some(Event::End));
        }
        let frame = download::take(&mut self.inbox, length);
        let frame = frame.map_err(|error| Error::from(Kind::BadResponse).because(error))?;
        let Some(frame) = frame else {
            return Ok(download::is_over(length).then_some(Event::End));
        };
        Ok(match frame.into_data() {
            Ok(data) => Some(Event::Data(data)),
            Err(frame) => frame.into_trailers().ok().map(Event::Trailers),
        })
    }

    fn head(&mut self) -> Result<Option<Event>, Error> {
        let Some(head) = answer::read(&mut self.inbox, self.asked)? else {
            return Ok(None);
        };
        let framing = Framing::from(&head.length);
        let is_last = head.status == StatusCode::SWITCHING_PROTOCOLS;
        if is_last || !head.status.is_informational() {
            self.length = Some(head.length);
        }
        Ok(Some(Event::Head(head.status, head.headers, framing)))
    }
}

// === impl Framing ===

impl From<&Length> for Framing {
    fn from(length: &Length) -> Self {
        match length {
            Length::Exact(length) => Self::Length(*length),
            Length::Chunked(_) => Self::Chunked,
            Length::Close => Self::Close,
        }
    }
}
