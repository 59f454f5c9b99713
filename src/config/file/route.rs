//! `[[routes]]`.

use std::ops::Range;

use http::HeaderValue;

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
