//! Routes that the gateway answers itself: `respond` and `redirect`.

use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};

use super::Asked;
use crate::body::Body;

/// A fixed answer of a route.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: StatusCode,
    /// The `content-type`.
    pub content_type: HeaderValue,
    /// The body, as it is.
    pub body: String,
}

/// A redirect whose target is known.
pub struct Redirect(pub HeaderValue);

// === impl Reply ===

impl Reply {
    /// The answer.
    pub fn answer(&self, asked: &Asked<'_>) -> Response<Body> {
        asked.answer(self.status, &self.content_type, self.body.clone())
    }
}

// === impl Redirect ===

impl Redirect {
    /// 308: the client repeats the same method and body there (RFC 9110, 15.4.9).
    pub fn answer(self, asked: &Asked<'_>) -> Response<Body> {
        let nothing = HeaderValue::from_static("");
        let mut response = asked.answer(StatusCode::PERMANENT_REDIRECT, &nothing, String::new());
        response.headers_mut().insert(LOCATION, self.0);
        response
    }
}
