//! Why an origin gave no answer. Opaque, with questions.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::Server;
use super::balance::Nobody;
use crate::body::BodyError;
use crate::trust::{self, Peer};

/// Why an origin gave no answer.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
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
    /// The origin took the connection and did not finish the handshake.
    HandshakeTimeout,
    /// The origin took the connection and did not say that it speaks HTTP/2.
    SettingsTimeout,
    /// What the origin said first is not HTTP/2.
    NoHttp2,
    /// The origin could not prove who it is, or does not speak TLS as it should.
    Handshake,
    ResponseTimeout,
    /// The origin closed before it answered.
    Closed,
    /// The origin broke off this request alone, and may have acted on it.
    Reset,
    /// The origin says that it has not looked at the request.
    Refused,
    /// The protocol of the upstream cannot carry a WebSocket.
    NoUpgrade,
    /// Its answer has no single meaning.
    BadResponse,
    /// Its answer had begun and has no end.
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

    /// The stream failed before the answer.
    pub(super) fn of_stream(error: io::Error) -> Self {
        let closed = Self::from(Kind::Closed);
        match alert(&error) {
            Some(said) => closed.because(said),
            None => closed.because(error),
        }
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

    /// The origin says that it has not looked at the request: it can be sent again.
    pub(super) fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    pub(super) fn is_closed(&self) -> bool {
        self.kind == Kind::Closed
    }

    /// The origin broke off this request, but not its connection.
    pub(super) fn is_reset(&self) -> bool {
        self.kind == Kind::Reset
    }

    /// What the client is told.
    pub fn status(&self) -> StatusCode {
        match self.kind {
            Kind::NoServer => StatusCode::SERVICE_UNAVAILABLE,
            Kind::ConnectTimeout
            | Kind::HandshakeTimeout
            | Kind::SettingsTimeout
            | Kind::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            Kind::ConnectRefused
            | Kind::ConnectFailed
            | Kind::NoHttp2
            | Kind::Handshake
            | Kind::Closed
            | Kind::Reset
            | Kind::Refused
            | Kind::NoUpgrade
            | Kind::BadResponse
            | Kind::CutShort => StatusCode::BAD_GATEWAY,
            Kind::RequestBody | Kind::RequestTarget => StatusCode::BAD_REQUEST,
        }
    }

    /// One word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            Kind::NoServer => "no_server",
            Kind::ConnectRefused => "connect_refused",
            Kind::ConnectFailed => "connect_failed",
            Kind::ConnectTimeout | Kind::HandshakeTimeout | Kind::SettingsTimeout => {
                "connect_timeout"
            }
            Kind::NoHttp2 => "no_http2",
            Kind::ResponseTimeout => "response_timeout",
            Kind::Handshake => "tls_failed",
            Kind::Closed => "closed",
            Kind::Reset => "reset",
            Kind::Refused => "refused",
            Kind::NoUpgrade => "no_upgrade",
            Kind::BadResponse => "bad_response",
            Kind::CutShort => "cut_short",
            Kind::RequestBody => "request_body",
            Kind::RequestTarget => "request_target",
        }
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
    fn sentence(self) -> &'static str {
        match self {
            Kind::NoServer => "no server of the upstream takes requests now",
            Kind::ConnectRefused => "the server refuses connections",
            Kind::ConnectFailed => "no connection could be made",
            Kind::ConnectTimeout => "no connection was made within `connect_timeout`",
            Kind::HandshakeTimeout => {
                "the origin took the connection, but did not finish the TLS handshake within \
                 `connect_timeout`"
            }
            Kind::SettingsTimeout => {
                "the origin took the connection, but did not begin to speak HTTP/2 within \
                 `connect_timeout`: `protocol = \"http/1.1\"` is for one that does not"
            }
            Kind::NoHttp2 => {
                "the origin does not speak HTTP/2 on this port: `protocol = \"http/1.1\"` is for \
                 such"
            }
            Kind::Handshake => "TLS with the origin failed",
            Kind::ResponseTimeout => "no answer began within `response_timeout`",
            Kind::Closed => "the origin closed the connection before it answered",
            Kind::Reset => "the origin reset the request",
            Kind::Refused => "the origin did not take the request",
            Kind::NoUpgrade => {
                "a WebSocket needs HTTP/1.1 here: `protocol = \"http/1.1\"`, or \"auto\", lets it \
                 through"
            }
            Kind::BadResponse => "the origin's answer is not HTTP, or has two meanings",
            Kind::CutShort => "the origin broke off its answer",
            Kind::RequestBody => "the request's body broke off",
            Kind::RequestTarget => "the request's target is not a path",
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

impl From<Nobody> for Error {
    fn from(Nobody(time): Nobody) -> Self {
        Self {
            retry_after: Some(time),
            ..Kind::NoServer.into()
        }
    }
}

/// A sentence, without the reason and the server: whoever writes it down has these apart.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            // What came of the handshake says it all.
            Some(source) if self.kind == Kind::Handshake => source.fmt(f),
            Some(source) => write!(f, "{}: {source}", self.kind.sentence()),
            None => f.write_str(self.kind.sentence()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What an origin's alert means, if that is what ended the stream.
pub(super) fn alert(error: &io::Error) -> Option<String> {
    trust::alert(error, Peer::Origin { ca: false })
}
