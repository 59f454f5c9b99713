//! HTTP/1.1 to an origin, with a codec of our own: `upload` writes, `response_head` and
//! `response_body` read, `exchange` drives both directions of one `connection`.
//!
//! The items of this file are for fuzzing: the codec without a connection.

pub(super) mod connection;
pub(super) mod exchange;
pub(super) mod response_body;
pub(super) mod response_head;
pub(super) mod upload;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use self::connection::ReadBuffer;
use self::response_body::BodyEnd;
use self::response_head::ExpectedResponse;
pub use self::upload::BodyFraming;
use self::upload::H1Upload;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::{OutboundRequest, Upstream};

/// Reads the responses to one request from the bytes of a connection.
pub struct ResponseReader {
    buffer: ReadBuffer,
    expected: ExpectedResponse,
    /// The end of the body, once the head was read.
    length: Option<BodyEnd>,
}

/// The next part of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseEvent {
    /// A head, and the framing of the body. `None` if the body ends with the connection. After an
    /// informational head, another head follows.
    Head(StatusCode, HeaderMap, Option<BodyFraming>),
    /// A piece of the body.
    Data(Bytes),
    /// The end of the body, with trailers.
    Trailers(HeaderMap),
    /// The end of the body.
    End,
}

/// Returns the bytes of a request head, including the empty line.
pub fn request_head(outbound: OutboundRequest<'_>) -> Result<Vec<u8>, UpstreamError> {
    Ok(H1Upload::new(outbound)?.into_head())
}

// === impl ResponseReader ===

impl ResponseReader {
    /// Creates a reader for the response to `method`, or to a WebSocket handshake if `upgrade` is set.
    pub fn new(method: &Method, upgrade: bool) -> Self {
        Self {
            buffer: ReadBuffer::default(),
            expected: ExpectedResponse::new(method, upgrade, &Upstream::without_servers("")),
            length: None,
        }
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.push(bytes);
    }

    /// Returns the received bytes that were not read yet.
    pub fn unread(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Reads the next part. `None` if more bytes are needed.
    pub fn read(&mut self) -> Result<Option<ResponseEvent>, UpstreamError> {
        let Some(length) = &mut self.length else {
            return self.head();
        };
        let bad = |error| UpstreamError::from(UpstreamErrorKind::BadResponse).because(error);
        Ok(match length.take(&mut self.buffer).map_err(bad)? {
            None => length.is_over().then_some(ResponseEvent::End),
            Some(frame) => match frame.into_data() {
                Ok(data) => Some(ResponseEvent::Data(data)),
                Err(frame) => frame.into_trailers().ok().map(ResponseEvent::Trailers),
            },
        })
    }

    fn head(&mut self) -> Result<Option<ResponseEvent>, UpstreamError> {
        let Some(head) = response_head::read(&mut self.buffer, self.expected)? else {
            return Ok(None);
        };
        let framing = match head.length {
            BodyEnd::Exact(length) => Some(BodyFraming::Length(length)),
            BodyEnd::Chunked(_) => Some(BodyFraming::Chunked),
            BodyEnd::Close => None,
        };
        let is_final = head.is_final();
        let event = ResponseEvent::Head(head.status, head.headers, framing);
        self.length = is_final.then_some(head.length);
        Ok(Some(event))
    }
}
