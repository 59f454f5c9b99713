//! The changes of a route: the path that an upstream gets, and headers of the request and response.
//!
//! Headers that define the framing of a message or control its connection belong to the gateway and
//! cannot be changed here.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::rewrite::PathRewrite;
use super::value_template::ValueTemplate;
use crate::expr::FieldFacts;
use crate::facts::{RequestHead, host, path};

/// The changes of a route to requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteEdits {
    /// The path that the upstream gets.
    pub path: ForwardPath,
    /// Changes to request headers, after all changes of the gateway itself.
    pub request: HeaderChanges,
    /// Changes to response headers.
    pub response: HeaderChanges,
}

/// The path that the upstream gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForwardPath {
    /// The normal form of the path.
    #[default]
    Normal,
    /// The bytes that the client sent.
    Raw,
    /// The normal form without this prefix, if the path starts with it.
    Without(Box<str>),
    /// Another path.
    Rewrite(PathRewrite),
}

/// Headers to set and to remove. Each name occurs only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// Headers to set; they replace all headers with their names.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Headers to set to a value that depends on the request, or to remove if it has no such value.
    pub computed: Vec<(HeaderName, Arc<ValueTemplate>)>,
    /// Headers to remove.
    pub remove: Vec<HeaderName>,
}

/// The message that a header belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request to an upstream.
    Request,
    /// A response to a client.
    Response,
}

// === impl RouteEdits ===

impl RouteEdits {
    /// Whether the route changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// === impl ForwardPath ===

impl ForwardPath {
    /// Parses `strip_prefix`. The error is a message for the user.
    pub fn without(prefix: &str) -> Result<Self, String> {
        if !prefix.starts_with('/') {
            return Err(format!("`{prefix}` is not a path; it starts with `/`"));
        }
        if prefix.ends_with('/') {
            let right = prefix.trim_end_matches('/');
            return Err(match right {
                "" => "every path starts with `/`: nothing would be removed".to_owned(),
                _ => format!("`{prefix}` ends with `/`; write `{right}`"),
            });
        }
        if prefix.contains(['*', '{', '}']) {
            return Err(format!(
                "`{prefix}` contains a placeholder; a prefix is plain text, as in `/api`"
            ));
        }
        match path::normalise(prefix) {
            Ok(normal) if *normal == *prefix => Ok(Self::Without(prefix.into())),
            Ok(normal) => Err(format!(
                "no path starts with `{prefix}`; its normal form is `{normal}`"
            )),
            Err(_) => Err(format!(
                "no path starts with `{prefix}`; the gateway refuses such a path"
            )),
        }
    }

    /// The target that the upstream gets: a path and the query.
    pub fn target<'h>(&self, head: &'h RequestHead<'_>) -> Cow<'h, str> {
        match self {
            Self::Normal => head.uri(),
            Self::Raw => Cow::Borrowed(head.raw_uri()),
            Self::Without(prefix) => match head.uri() {
                Cow::Borrowed(uri) => strip(uri, prefix),
                Cow::Owned(uri) => Cow::Owned(strip(&uri, prefix).into_owned()),
            },
            // `OPTIONS *` has no path.
            Self::Rewrite(_) if head.path == "*" => head.uri(),
            Self::Rewrite(rewrite) => {
                let mut target = rewrite.apply(&head.path);
                if let Some(query) = head.query {
                    target.push('?');
                    target.push_str(query);
                }
                Cow::Owned(target)
            }
        }
    }
}

/// Removes the prefix, but only at a segment boundary.
fn strip<'u>(uri: &'u str, prefix: &str) -> Cow<'u, str> {
    match uri.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => Cow::Borrowed(rest),
        Some(rest) if rest.is_empty() || rest.starts_with('?') => Cow::Owned(format!("/{rest}")),
        _ => Cow::Borrowed(uri),
    }
}

// === impl HeaderChanges ===

impl HeaderChanges {
    /// The changes with the values for a request.
    pub fn resolve(&self, facts: &dyn FieldFacts) -> Cow<'_, Self> {
        if self.computed.is_empty() {
            return Cow::Borrowed(self);
        }
        let (mut set, mut remove) = (self.set.clone(), self.remove.clone());
        for (name, template) in &self.computed {
            match template.fill(facts) {
                Some(value) => set.push((name.clone(), value)),
                // A client must not be able to send a value that the request does not have.
                None => remove.push(name.clone()),
            }
        }
        let computed = Vec::new();
        Cow::Owned(Self {
            set,
            computed,
            remove,
        })
    }

    /// Whether headers with this name are set or removed.
    pub fn replace<N: ?Sized>(&self, name: &N) -> bool
    where
        HeaderName: PartialEq<N>,
    {
        let set = self.set.iter().map(|(own, _)| own);
        let computed = self.computed.iter().map(|(own, _)| own);
        let mut all = self.remove.iter().chain(set).chain(computed);
        all.any(|own| own == name)
    }

    /// The `Host` that replaces the client's. `None` if the route keeps it.
    pub fn host(&self) -> Option<&str> {
        let (_, value) = self.set.iter().find(|(name, _)| *name == header::HOST)?;
        value.to_str().ok()
    }

    /// Applies resolved changes to a head. Unchanged headers keep their order and headers that are set come
    /// last, so a shadow response equals the one that it imitates even if it lacked some of these.
    pub fn apply(&self, headers: &mut HeaderMap) {
        self.strip(headers);
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
    }

    /// Removes the headers that are set or removed. For trailers this is enough: a header that may
    /// not be in the head may not be in the trailers either.
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
    /// Whether a header belongs to the gateway: framing and connection headers (RFC 9110, section
    /// 7.6.1; RFC 9112, section 6), and the gateway's own headers.
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

/// Whether a value is a host, with or without a port.
pub fn is_host(value: &HeaderValue) -> bool {
    let text = value.to_str().ok();
    text.is_some_and(|text| !text.is_empty() && host::parse(text, 0).is_some())
}

#[cfg(test)]
mod tests;
