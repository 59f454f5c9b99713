//! Why an origin gave no answer. Opaque, with questions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::UpstreamServer;
use crate::body::BodyError;

/// Why an origin gave no answer.
#[derive(Debug)]
pub struct UpstreamError {
    pub(super) kind: UpstreamErrorKind,
    server: Option<Arc<UpstreamServer>>,
    source: Option<BodyError>,
    retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamErrorKind {
    /// No server of the upstream can be used.
    NoServer,
    ConnectRefused,
    ConnectFailed,
    ConnectTimeout,
    HandshakeTimeout,
    SettingsTimeout,
    /// The first bytes that the origin sent are not HTTP/2.
    NoHttp2,
    /// The origin has no valid certificate, or does not speak TLS as it should.
    Handshake,
    ResponseTimeout,
    /// The origin closed the connection before its response began.
    Closed,
    /// The origin reset this request alone, and may have acted on it.
    Reset,
    /// The origin did not process the request.
    Refused,
    /// The protocol of the upstream cannot carry a WebSocket.
    NoUpgrade,
    /// The response is malformed or ambiguous.
    BadResponse,
    /// The response began and has no end.
    CutShort,
    /// The request's body broke off, or is not as long as declared.
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

    pub(super) fn because(mut self, source: impl Into<BodyError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The origin changed to a WebSocket without an answer to the key of the handshake.
    pub fn of_handshake(server: &Arc<UpstreamServer>) -> Self {
        let wrong = "sec-websocket-accept is not the answer to the key";
        Self::from(UpstreamErrorKind::BadResponse)
            .because(wrong)
            .at(server)
    }

    /// No server can be used; after this time there may be one.
    pub(super) fn no_server(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..UpstreamErrorKind::NoServer.into()
        }
    }

    /// The client's body broke off, or is not as long as declared.
    pub(super) fn of_request_body(error: impl Into<BodyError>) -> Self {
        Self::from(UpstreamErrorKind::RequestBody).because(error)
    }

    /// Why the body of a server's answer breaks off.
    pub(super) fn of_body(error: BodyError, server: &Arc<UpstreamServer>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(known) => *known,
            Err(source) => Self::from(UpstreamErrorKind::CutShort).because(source),
        };
        error.at(server)
    }

    /// Too slow.
    pub fn is_timeout(&self) -> bool {
        self.status() == StatusCode::GATEWAY_TIMEOUT
    }

    /// No connection could be opened; the origin saw nothing of the request.
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

    /// The client's fault, not the origin's. Its cause is in the chain of sources.
    pub fn is_bad_request(&self) -> bool {
        matches!(
            self.kind,
            UpstreamErrorKind::RequestBody | UpstreamErrorKind::RequestTarget
        )
    }

    /// The status of the client's response.
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

    /// One word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        self.kind.words().0
    }

    /// Where no server can be used: when there may be one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The server that was tried last.
    pub fn server(&self) -> Option<&Arc<UpstreamServer>> {
        self.server.as_ref()
    }
}

// === impl UpstreamErrorKind ===

impl UpstreamErrorKind {
    /// The reason in logs and metrics, and a sentence.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            UpstreamErrorKind::NoServer => {
                ("no_server", "no server of the upstream takes requests now")
            }
            UpstreamErrorKind::ConnectRefused => {
                ("connect_refused", "the server refuses connections")
            }
            UpstreamErrorKind::ConnectFailed => ("connect_failed", "no connection could be made"),
            UpstreamErrorKind::ConnectTimeout => (
                "connect_timeout",
                "no connection was made within `connect_timeout`",
            ),
            UpstreamErrorKind::HandshakeTimeout => (
                "connect_timeout",
                "the origin took the connection, but did not finish the TLS handshake within \
                 `connect_timeout`",
            ),
            UpstreamErrorKind::SettingsTimeout => (
                "connect_timeout",
                "the origin took the connection, but did not begin to speak HTTP/2 within \
                 `connect_timeout`: `protocol = \"http/1.1\"` is for one that does not",
            ),
            UpstreamErrorKind::NoHttp2 => (
                "no_http2",
                "the origin does not speak HTTP/2 on this port: `protocol = \"http/1.1\"` is for \
                 such",
            ),
            UpstreamErrorKind::Handshake => ("tls_failed", "TLS with the origin failed"),
            UpstreamErrorKind::ResponseTimeout => (
                "response_timeout",
                "no answer began within `response_timeout`",
            ),
            UpstreamErrorKind::Closed => (
                "closed",
                "the origin closed the connection before it answered",
            ),
            UpstreamErrorKind::Reset => ("reset", "the origin reset the request"),
            UpstreamErrorKind::Refused => ("refused", "the origin did not take the request"),
            UpstreamErrorKind::NoUpgrade => (
                "no_upgrade",
                "a WebSocket needs HTTP/1.1 here: `protocol = \"http/1.1\"`, or \"auto\", lets it \
                 through",
            ),
            UpstreamErrorKind::BadResponse => (
                "bad_response",
                "the origin's answer is not HTTP, or has two meanings",
            ),
            UpstreamErrorKind::CutShort => ("cut_short", "the origin broke off its answer"),
            UpstreamErrorKind::RequestBody => ("request_body", "the request's body broke off"),
            UpstreamErrorKind::RequestTarget => {
                ("request_target", "the request's target is not a path")
            }
        }
    }
}

impl From<UpstreamErrorKind> for UpstreamError {
    fn from(kind: UpstreamErrorKind) -> Self {
        Self {
            kind,
            server: None,
            source: None,
            retry_after: None,
        }
    }
}

/// A sentence, without the reason and the server: whoever writes it down has these apart.
impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            // What came of the handshake says it all.
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
