//! Why an origin gave no answer. Opaque, with questions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::Server;
use crate::body::BodyError;

/// Why an origin gave no answer.
#[derive(Debug)]
pub struct Error {
    pub(super) kind: Kind,
    server: Option<Arc<Server>>,
    source: Option<BodyError>,
    retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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

impl Error {
    pub(super) fn at(mut self, server: &Arc<Server>) -> Self {
        self.server = Some(Arc::clone(server));
        self
    }

    pub(super) fn because(mut self, source: impl Into<BodyError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The origin changed to a WebSocket without an answer to the key of the handshake.
    pub fn of_handshake(server: &Arc<Server>) -> Self {
        let wrong = "sec-websocket-accept is not the answer to the key";
        Self::from(Kind::BadResponse).because(wrong).at(server)
    }

    /// No server can be used; after this time there may be one.
    pub(super) fn no_server(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Kind::NoServer.into()
        }
    }

    /// The client's body broke off, or is not as long as declared.
    pub(super) fn of_request_body(error: impl Into<BodyError>) -> Self {
        Self::from(Kind::RequestBody).because(error)
    }

    /// Why the body of a server's answer breaks off.
    pub(super) fn of_body(error: BodyError, server: &Arc<Server>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(known) => *known,
            Err(source) => Self::from(Kind::CutShort).because(source),
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
            Kind::ConnectRefused
                | Kind::ConnectFailed
                | Kind::ConnectTimeout
                | Kind::HandshakeTimeout
                | Kind::SettingsTimeout
                | Kind::NoHttp2
                | Kind::Handshake
        )
    }

    /// The client's fault, not the origin's. Its cause is in the chain of sources.
    pub fn is_bad_request(&self) -> bool {
        matches!(self.kind, Kind::RequestBody | Kind::RequestTarget)
    }

    /// The status of the client's response.
    pub fn status(&self) -> StatusCode {
        match self.kind {
            Kind::NoServer => StatusCode::SERVICE_UNAVAILABLE,
            Kind::ConnectTimeout
            | Kind::HandshakeTimeout
            | Kind::SettingsTimeout
            | Kind::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            Kind::RequestBody | Kind::RequestTarget => StatusCode::BAD_REQUEST,
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
    pub fn server(&self) -> Option<&Arc<Server>> {
        self.server.as_ref()
    }
}

// === impl Kind ===

impl Kind {
    /// The reason in logs and metrics, and a sentence.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::NoServer => ("no_server", "no server of the upstream takes requests now"),
            Kind::ConnectRefused => ("connect_refused", "the server refuses connections"),
            Kind::ConnectFailed => ("connect_failed", "no connection could be made"),
            Kind::ConnectTimeout => (
                "connect_timeout",
                "no connection was made within `connect_timeout`",
            ),
            Kind::HandshakeTimeout => (
                "connect_timeout",
                "the origin took the connection, but did not finish the TLS handshake within \
                 `connect_timeout`",
            ),
            Kind::SettingsTimeout => (
                "connect_timeout",
                "the origin took the connection, but did not begin to speak HTTP/2 within \
                 `connect_timeout`: `protocol = \"http/1.1\"` is for one that does not",
            ),
            Kind::NoHttp2 => (
                "no_http2",
                "the origin does not speak HTTP/2 on this port: `protocol = \"http/1.1\"` is for \
                 such",
            ),
            Kind::Handshake => ("tls_failed", "TLS with the origin failed"),
            Kind::ResponseTimeout => (
                "response_timeout",
                "no answer began within `response_timeout`",
            ),
            Kind::Closed => (
                "closed",
                "the origin closed the connection before it answered",
            ),
            Kind::Reset => ("reset", "the origin reset the request"),
            Kind::Refused => ("refused", "the origin did not take the request"),
            Kind::NoUpgrade => (
                "no_upgrade",
                "a WebSocket needs HTTP/1.1 here: `protocol = \"http/1.1\"`, or \"auto\", lets it \
                 through",
            ),
            Kind::BadResponse => (
                "bad_response",
                "the origin's answer is not HTTP, or has two meanings",
            ),
            Kind::CutShort => ("cut_short", "the origin broke off its answer"),
            Kind::RequestBody => ("request_body", "the request's body broke off"),
            Kind::RequestTarget => ("request_target", "the request's target is not a path"),
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            server: None,
            source: None,
            retry_after: None,
        }
    }
}

/// A sentence, without the reason and the server: whoever writes it down has these apart.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            // What came of the handshake says it all.
            Some(source) if self.kind == Kind::Handshake => source.fmt(f),
            Some(source) => write!(f, "{}: {source}", self.kind.words().1),
            None => f.write_str(self.kind.words().1),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
