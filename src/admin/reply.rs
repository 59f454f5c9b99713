//! Responses of the admin port, with the headers that every one has.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use serde::Serialize;

use super::api_error::ApiError;
use super::event_stream::EventBody;

/// Prevents that text of clients becomes markup, and that other pages embed or read the dashboard.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every response.
const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (CONTENT_SECURITY_POLICY, POLICY),
];

/// The result of an endpoint.
pub(super) type ApiResult = Result<ApiReply, ApiError>;

/// A response, and what it changed.
pub(super) struct ApiReply {
    pub(super) response: Response<ReplyBody>,
    /// The change, for the audit line. `None` if nothing changed.
    pub(super) change: Option<String>,
}

/// The body of a response.
pub(super) enum ReplyBody {
    /// A whole body.
    Full(Full<Bytes>),
    /// A stream of events.
    Events(EventBody),
}

// === impl ApiReply ===

impl ApiReply {
    /// An object as JSON, with status 200.
    pub(super) fn json(object: &impl Serialize) -> Self {
        let text = serde_json::to_string(object);
        Self::text(
            "application/json",
            text.expect("objects have only string keys"),
        )
    }

    /// Text of a media type, with status 200.
    pub(super) fn text(media_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self::with_body(media_type, ReplyBody::Full(Full::new(text.into())))
    }

    /// A body of a media type, with status 200.
    pub(super) fn with_body(media_type: &'static str, body: ReplyBody) -> Self {
        let mut response = Response::new(body);
        let media_type = HeaderValue::from_static(media_type);
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        for (name, value) in SECURITY_HEADERS {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        Self {
            response,
            change: None,
        }
    }

    /// The reply with another status.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        *self.response.status_mut() = status;
        self
    }

    /// The reply of a change, which is written to the log.
    pub(super) fn with_change(self, change: impl Into<String>) -> Self {
        Self {
            change: Some(change.into()),
            ..self
        }
    }
}

impl From<ApiError> for ApiReply {
    fn from(error: ApiError) -> Self {
        let mut reply = Self::json(&error.to_json()).with_status(error.status);
        if let Some(header) = error.header {
            let (name, value) = *header;
            reply.response.headers_mut().insert(name, value);
        }
        reply
    }
}

// === impl ReplyBody ===

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Full(full) => Pin::new(full).poll_frame(context),
            Self::Events(events) => events.poll_event(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(full) => full.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(full) => full.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
