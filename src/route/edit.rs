//! What a route changes: the path that an origin gets, fields of the request and of the answer.
//!
//! Fields that say where a message ends or what becomes of its connection are the gateway's own
//! and cannot be named here.

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::facts::{RequestHead, host, path};

/// What a route changes on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteEdits {
    /// The path that an origin gets.
    pub path: ForwardPath,
    /// Fields that an origin gets, after all that the gateway does to them.
    pub request: HeaderChanges,
    /// Fields that a client gets.
    pub response: HeaderChanges,
}

/// The path that an origin gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForwardPath {
    /// Its normal form.
    #[default]
    Normal,
    /// The bytes that the client sent.
    Raw,
    /// Its normal form without this beginning, where it has it.
    Without(Box<str>),
}

/// Fields to set and to remove. A name stands here once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// These replace all fields of their names.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// These go.
    pub remove: Vec<HeaderName>,
}

/// Which message a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// To an origin.
    Request,
    /// To a client.
    Response,
}

// === impl RouteEdits ===

impl RouteEdits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// === impl ForwardPath ===

impl ForwardPath {
    /// Reads `strip_prefix`; the error is one sentence.
    pub fn without(prefix: &str) -> Result<Self, String> {
        if !prefix.starts_with('/') {
            return Err(format!("`{prefix}` is not a path; it starts with `/`"));
        }
        if prefix.ends_with('/') {
            let right = prefix.trim_end_matches('/');
            return Err(match right {
                "" => "`/` is the beginning of every path: nothing would be left out".to_owned(),
                _ => format!("`{prefix}` ends with `/`; write `{right}`"),
            });
        }
        if prefix.contains(['*', '{', '}']) {
            return Err(format!(
                "`{prefix}` holds a placeholder; a prefix is plain text, as in `/api`"
            ));
        }
        match path::normalise(prefix) {
            Ok(normal) if *normal == *prefix => Ok(Self::Without(prefix.into())),
            Ok(normal) => Err(format!(
                "no path begins with `{prefix}`; its normal form is `{normal}`"
            )),
            Err(_) => Err(format!(
                "no path begins with `{prefix}`; such a path is refused"
            )),
        }
    }

    /// The target that an origin gets: a path and the query.
    pub fn target<'h>(&self, head: &'h RequestHead<'_>) -> Cow<'h, str> {
        match self {
            Self::Normal => head.uri(),
            Self::Raw => Cow::Borrowed(head.raw_uri()),
            Self::Without(prefix) => match head.uri() {
                Cow::Borrowed(uri) => strip(uri, prefix),
                Cow::Owned(uri) => Cow::Owned(strip(&uri, prefix).into_owned()),
            },
        }
    }
}

/// What begins with a prefix that ends within a segment does not begin with it.
fn strip<'u>(uri: &'u str, prefix: &str) -> Cow<'u, str> {
    match uri.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => Cow::Borrowed(rest),
        Some(rest) if rest.is_empty() || rest.starts_with('?') => Cow::Owned(format!("/{rest}")),
        _ => Cow::Borrowed(uri),
    }
}

// === impl HeaderChanges ===

impl HeaderChanges {
    /// Whether nothing of this name stays as it is.
    pub fn replace<N: ?Sized>(&self, name: &N) -> bool
    where
        HeaderName: PartialEq<N>,
    {
        let set = self.set.iter().map(|(own, _)| own);
        self.remove.iter().chain(set).any(|own| own == name)
    }

    /// The host that a request is for, instead of the one that the client named.
    pub fn host(&self) -> Option<&str> {
        let (_, value) = self.set.iter().find(|(name, _)| *name == header::HOST)?;
        value.to_str().ok()
    }

    /// Changes a head. The order of what stays is kept, and what is set comes last: an answer that
    /// imitates another looks like it after this too, whatever it lacks.
    pub fn apply(&self, headers: &mut HeaderMap) {
        self.strip(headers);
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
    }

    /// Takes out what is set or removed. Trailers need no more: what may not
    /// stand in the head does not come behind the body either.
    pub fn strip(&self, headers: &mut HeaderMap) {
        if headers.keys().any(|name| self.replace(name)) {
            let mut kept = HeaderMap::with_capacity(headers.len() + self.set.len());
            for (name, value) in headers.iter().filter(|(name, _)| !self.replace(name)) {
                kept.append(name, value.clone());
            }
            *headers = kept;
        }
    }
}

// === impl MessageKind ===

impl MessageKind {
    /// Whether a field of this name is the gateway's own: framing and the connection (RFC 9110,
    /// section 7.6.1; RFC 9112, section 6), and what it says about itself.
    pub fn owns(self, name: &HeaderName) -> bool {
        let framing = [
            header::CONNECTION,
            header::CONTENT_LENGTH,
            header::TE,
            header::TRAILER,
            header::TRANSFER_ENCODING,
            header::UPGRADE,
        ];
        let text = name.as_str();
        framing.contains(name)
            || matches!(text, "keep-alive" | "proxy-connection" | "http2-settings")
            || text.starts_with("x-lockgate-")
            || match self {
                Self::Request => *name == header::EXPECT,
                Self::Response => *name == header::DATE,
            }
    }
}

/// Whether a value names a host, with or without a port.
pub fn is_host(value: &HeaderValue) -> bool {
    let text = value.to_str().ok();
    text.is_some_and(|text| !text.is_empty() && host::parse(text, 0).is_some())
}

#[cfg(test)]
mod tests;
