//! What routes match of a request, and the conditions of a route in addition to host and path.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::path::PathPattern;
use crate::facts::client_ip::ClientIpResolver;
use crate::facts::{ClientConnection, RequestHead};

/// What routes match of a request.
#[derive(Clone, Copy)]
pub struct RoutableRequest<'r> {
    /// The request's head.
    pub head: &'r RequestHead<'r>,
    /// The request's headers.
    pub headers: &'r HeaderMap,
    /// The connection of the request.
    pub connection: &'r ClientConnection,
    /// Says whether a trusted proxy received the request over TLS.
    pub client_ip: &'r ClientIpResolver,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlScheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
}

/// The conditions of a route in addition to host and path. All must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteConditions {
    /// The name of the listener. `None` for any.
    pub listener: Option<Arc<str>>,
    /// The scheme that the client used. `None` for any.
    pub scheme: Option<UrlScheme>,
    /// The methods. Empty for any.
    pub methods: Vec<Method>,
    /// Headers, one line of which has exactly this value.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The paths that the route leaves to the routes after it.
    pub except: Option<PathPattern>,
}

// === impl RoutableRequest ===

impl RoutableRequest<'_> {
    /// The scheme that the client used, according to the connection or to a trusted proxy.
    pub fn scheme(&self) -> UrlScheme {
        if self.client_ip.is_secure(self.connection, self.headers) {
            UrlScheme::Https
        } else {
            UrlScheme::Http
        }
    }

    /// The port that the client requested: that of the authority, or else the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.head.port.unwrap_or(match self.scheme() {
            UrlScheme::Http => 80,
            UrlScheme::Https => 443,
        })
    }
}

// === impl UrlScheme ===

impl UrlScheme {
    /// The scheme as text.
    pub const fn name(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }
}

// === impl RouteConditions ===

impl RouteConditions {
    /// Whether the route has no conditions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the request meets all conditions.
    pub fn hold(&self, request: &RoutableRequest<'_>) -> bool {
        let head = request.head;
        let is_listener = |name: &Arc<str>| *name == request.connection.listener;
        self.listener.as_ref().is_none_or(is_listener)
            && self.scheme.is_none_or(|scheme| scheme == request.scheme())
            && (self.methods.is_empty() || self.methods.contains(head.method))
            && self.headers_hold(request.headers)
            && self
                .except
                .as_ref()
                .is_none_or(|path| !path.matches(&head.path))
    }

    fn headers_hold(&self, headers: &HeaderMap) -> bool {
        let mut wanted = self.headers.iter();
        wanted.all(|(name, value)| headers.get_all(name).iter().any(|line| line == value))
    }

    /// Describes the conditions in one line, to distinguish routes with equal hosts and paths.
    pub(super) fn describe(&self) -> String {
        let listener = self.listener.iter().map(|name| format!(" listener={name}"));
        let scheme = self.scheme.iter().map(|one| format!(" {}", one.name()));
        let methods = self.methods.iter().map(|method| format!(" {method}"));
        let header = |(name, value): &(HeaderName, HeaderValue)| format!(" {name}={value:?}");
        let headers = self.headers.iter().map(header);
        listener
            .chain(scheme)
            .chain(methods)
            .chain(headers)
            .collect()
    }
}
