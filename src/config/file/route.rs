//! `[[routes]]`.

use std::ops::Range;

use http::{HeaderName, HeaderValue};

use super::Header;
use crate::config::{Spanned, Text};

/// One of `[[routes]]`.
#[derive(Clone, Debug)]
pub struct Route {
    /// The header of the section.
    pub span: Range<usize>,
    /// Hosts it is for; empty: any.
    pub hosts: Vec<Text>,
    /// A template of paths it is for; `None`: any.
    pub path: Option<Text>,
    /// Where its requests go; there in a file without errors.
    pub target: Option<Target>,
    /// Changes of what its origin gets.
    pub request_headers: HeaderEdits,
    /// Changes of what its clients get.
    pub response_headers: HeaderEdits,
    /// A beginning of paths that its origin does not get.
    pub strip_prefix: Option<Text>,
    /// The form of paths that its origin gets. Default normalized.
    pub forward_path: Spanned<PathForm>,
}

/// `request_headers` or `response_headers` of a route.
#[derive(Clone, Debug, Default)]
pub struct HeaderEdits {
    /// Headers that replace others of their names.
    pub set: Vec<Header>,
    /// Headers that go.
    pub remove: Vec<Spanned<HeaderName>>,
}

/// A form of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// The one that routes and rules see.
    Normalized,
    /// As the client sent it.
    Raw,
}

/// Where the requests of a route go.
#[derive(Clone, Debug)]
pub enum Target {
    /// To the upstream of that name.
    Upstream(Text),
    /// Nowhere: the gateway answers.
    Respond(Respond),
    /// To another address; a template.
    Redirect(Text),
}

/// `respond` of a route.
#[derive(Clone, Debug)]
pub struct Respond {
    /// The status. Default 200.
    pub status: Spanned<u16>,
    /// The media type. Default `text/plain; charset=utf-8`.
    pub content_type: Spanned<HeaderValue>,
    /// The body. Default empty.
    pub body: Text,
}
