//! Why an origin server sent no response. The error type is opaque and has predicates.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::UpstreamServer;
use crate::body::BodyError;

/// Why an origin server sent no response.
#[derive(Debug)]
pub struct UpstreamError {
    pub(super) kind: UpstreamErrorKind,
    server: Option<Arc<UpstreamServer>>,
    attempts: u32,
    source: Option<BodyError>,
    retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamErrorKind {
    /// No server of the upstream is eligible.
    NoServer,
    ConnectRefused,
    ConnectFailed,
    ConnectTimeout,
    HandshakeTimeout,
    SettingsTimeout,
    /// The origin server's first bytes are not HTTP/2.
    NoHttp2,
    /// The origin server's certificate is invalid, or the TLS handshake failed.
    Handshake,
    ResponseTimeout,
    /// The origin server closed the connection before it sent a response.
    Closed,
    /// The origin server reset the stream and may have processed the request.
    Reset,
    /// The origin server did not process the request.
    Refused,
    /// The upstream's protocol does not support WebSockets.
    NoUpgrade,
    /// The response is malformed or ambiguous.
    BadResponse,
    /// The head of the response has more bytes than allowed.
    HeadTooLarge,
    /// The response has more headers than allowed.
    TooManyHeaders,
    /// The response ended early.
    CutShort,
    /// The request body ended early or has a length other than declared.
    RequestBody,
    /// The request's target is not a path.
    RequestTarget,
}

// === impl Error ===

impl UpstreamError {
    pub(super) fn at(mut self, server: &Arc<UpstreamServer>) -> Self {
        self.server = Some(Arc::clone(server));
        self
    }

    pub(super) fn after(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    pub(super) fn because(mut self, source: impl Into<BodyError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Creates the error for a WebSocket response with a wrong or missing `sec-websocket-accept`.
    pub fn of_handshake(server: &Arc<UpstreamServer>) -> Self {
        let wrong = "sec-websocket-accept does not match sec-websocket-key";
        Self::from(UpstreamErrorKind::BadResponse)
            .because(wrong)
            .at(server)
    }

    /// Creates the error for an upstream without an eligible server. `retry_after`: when there may be one.
    pub(super) fn no_server(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..UpstreamErrorKind::NoServer.into()
        }
    }

    /// Creates the error for a request body that ended early or has a length other than declared.
    pub(super) fn of_request_body(error: impl Into<BodyError>) -> Self {
        Self::from(UpstreamErrorKind::RequestBody).because(error)
    }

    /// Creates the error for a response body that ended early.
    pub(super) fn of_body(error: BodyError, server: &Arc<UpstreamServer>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(known) => *known,
            Err(source) => Self::from(UpstreamErrorKind::CutShort).because(source),
        };
        error.at(server)
    }

    /// Returns whether the origin server exceeded a timeout.
    pub fn is_timeout(&self) -> bool {
        self.status() == StatusCode::GATEWAY_TIMEOUT
    }

    /// Returns whether no connection could be opened, so that the origin server received nothing.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self.kind,
            UpstreamErrorKind::ConnectRefused
                | UpstreamErrorKind::ConnectFailed
                | UpstreamErrorKind::ConnectTimeout
                | UpstreamErrorKind::HandshakeTimeout
                | UpstreamErrorKind::SettingsTimeout
                | UpstreamErrorKind::NoHttp2
                | UpstreamErrorKind::Handshake
        )
    }

    /// Returns whether the response has more headers than allowed.
    pub(super) fn is_too_many_headers(&self) -> bool {
        self.kind == UpstreamErrorKind::TooManyHeaders
    }

    /// Returns whether the client caused the error. The cause is in the chain of sources.
    pub fn is_bad_request(&self) -> bool {
        matches!(
            self.kind,
            UpstreamErrorKind::RequestBody | UpstreamErrorKind::RequestTarget
        )
    }

    /// Returns the status of the response to the client.
    pub fn status(&self) -> StatusCode {
        match self.kind {
            UpstreamErrorKind::NoServer => StatusCode::SERVICE_UNAVAILABLE,
            UpstreamErrorKind::ConnectTimeout
            | UpstreamErrorKind::HandshakeTimeout
            | UpstreamErrorKind::SettingsTimeout
            | UpstreamErrorKind::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            UpstreamErrorKind::RequestBody | UpstreamErrorKind::RequestTarget => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns one word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        self.kind.words().0
    }

    /// Returns the error text without its cause.
    pub(super) fn sentence(&self) -> &'static str {
        self.kind.words().1
    }

    /// Returns the time until a server may be eligible. `None` if the error has another cause.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the server of the last attempt. `None` if there was no attempt.
    pub fn server(&self) -> Option<&Arc<UpstreamServer>> {
        self.server.as_ref()
    }

    /// Returns how many times the request was sent to a server, or a connection for it was opened.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
}

// === impl UpstreamErrorKind ===

impl UpstreamErrorKind {
    /// Returns the reason in logs and metrics, and the error text.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            UpstreamErrorKind::NoServer => ("no_server", "no server of the upstream is available"),
            UpstreamErrorKind::ConnectRefused => {
                ("connect_refused", "the server refuses connections")
            }
            UpstreamErrorKind::ConnectFailed => ("connect_failed", "the connection failed"),
            UpstreamErrorKind::ConnectTimeout => {
                ("connect_timeout", "no connection within `connect_timeout`")
            }
            UpstreamErrorKind::HandshakeTimeout => (
                "connect_timeout",
                "the origin server accepted the connection, but did not finish the TLS handshake \
                 within `connect_timeout`",
            ),
            UpstreamErrorKind::SettingsTimeout => (
                "connect_timeout",
                "the origin server accepted the connection, but did not start HTTP/2 within \
                 `connect_timeout`; if it does not support HTTP/2, set `protocol = \"http/1.1\"`",
            ),
            UpstreamErrorKind::NoHttp2 => (
                "no_http2",
                "the origin server does not support HTTP/2 on this port: set `protocol = \
                 \"http/1.1\"`",
            ),
            UpstreamErrorKind::Handshake => ("tls_failed", "TLS with the origin server failed"),
            UpstreamErrorKind::ResponseTimeout => {
                ("response_timeout", "no response within `response_timeout`")
            }
            UpstreamErrorKind::Closed => (
                "closed",
                "the origin server closed the connection before it responded",
            ),
            UpstreamErrorKind::Reset => ("reset", "the origin server reset the request"),
            UpstreamErrorKind::Refused => ("refused", "the origin server refused the request"),
            UpstreamErrorKind::NoUpgrade => (
                "no_upgrade",
                "a WebSocket needs HTTP/1.1: set `protocol` to \"http/1.1\" or \"auto\"",
            ),
            UpstreamErrorKind::BadResponse => (
                "bad_response",
                "the response of the origin server is not valid HTTP, or is ambiguous",
            ),
            UpstreamErrorKind::HeadTooLarge => (
                "head_too_large",
                "the head of the response is larger than `max_response_header_bytes`",
            ),
            UpstreamErrorKind::TooManyHeaders => (
                "head_too_large",
                "the response has more headers than `max_response_headers`",
            ),
            UpstreamErrorKind::CutShort => {
                ("cut_short", "the origin server ended its response early")
            }
            UpstreamErrorKind::RequestBody => ("request_body", "the request body ended early"),
            UpstreamErrorKind::RequestTarget => {
                ("request_target", "the request target is not a path")
            }
        }
    }
}

impl From<UpstreamErrorKind> for UpstreamError {
    fn from(kind: UpstreamErrorKind) -> Self {
        Self {
            kind,
            server: None,
            attempts: 0,
            source: None,
            retry_after: None,
        }
    }
}

/// Writes the error text without the reason and the server, which logs write as separate fields.
impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            // The text of the handshake error is sufficient.
            Some(source) if self.kind == UpstreamErrorKind::Handshake => source.fmt(f),
            Some(source) => write!(f, "{}: {source}", self.kind.words().1),
            None => f.write_str(self.kind.words().1),
        }
    }
}

impl std::error::Error for UpstreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
