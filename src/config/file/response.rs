//! `[responses]`.

use http::{HeaderName, HeaderValue};

use crate::config::{Spanned, Text};

/// One of `[responses]`.
#[derive(Clone, Debug)]
pub struct Response {
    /// What rules call it.
    pub name: Text,
    /// The status; `None`: 200, or 429 where a rule blocks with it.
    pub status: Option<Spanned<u16>>,
    /// The media type. Default `text/plain; charset=utf-8`.
    pub content_type: Spanned<HeaderValue>,
    /// The body, with `{{uuid}}` and the like. Default empty.
    pub body: Text,
    /// Headers beside the media type, in file order.
    pub headers: Vec<Header>,
    /// `shadow`: headers and timing are those of the route's real answers. Default false.
    pub imitate: Spanned<bool>,
}

/// A header of a response.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its name, in lower case.
    pub name: Spanned<HeaderName>,
    /// Its value.
    pub value: Spanned<HeaderValue>,
}
