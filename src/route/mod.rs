//! Routes: selects the route of a request, with its redirect or its changes to the message. Pure.
//!
//! The first match wins. A [`RouteTable`] can hold any value per route.

pub mod edit;
mod path;
pub mod redirect;
mod request;
mod rewrite;
pub mod value_template;

use std::sync::Arc;

use crate::facts::host;

pub use edit::RouteEdits;
pub use path::{PathPattern, PathSegment};
pub use redirect::RedirectTemplate;
pub use request::{RoutableRequest, RouteConditions, UrlScheme};
pub use rewrite::PathRewrite;

/// The requests that a route matches.
#[derive(Clone, Debug)]
pub struct RoutePattern {
    hosts: Vec<HostPattern>,
    path: PathPattern,
    /// `None` if hosts and path are all that the route matches.
    conditions: Option<Box<RouteConditions>>,
    name: Option<Box<str>>,
    template: Box<str>,
    label: Arc<str>,
}

/// One host of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Any host.
    Any,
    /// This name, on this port. `None` means any port.
    Exact(Box<str>, Option<u16>),
    /// Every name with this suffix, which starts with a dot. `None` means any port.
    Below(Box<str>, Option<u16>),
}

/// The routes, in file order.
#[derive(Clone, Debug)]
pub struct RouteTable<T> {
    routes: Vec<(RoutePattern, T)>,
}

// === impl RoutePattern ===

impl RoutePattern {
    /// Parses hosts and a path template. Without hosts or path, the route matches any.
    ///
    /// A host is a name, with a port or for all ports; `*.example.com` matches every name below
    /// `example.com`, at any depth, but not `example.com` itself; `*` matches any. In a path,
    /// `{name}` matches one segment that is not empty, and `/*` at the end matches the path before
    /// it and everything below. The error is a message about the first mistake.
    pub fn parse(hosts: &[String], path: Option<&str>) -> Result<Self, String> {
        let template = path.unwrap_or("/*");
        let label = format!("{} {template}", hosts.join(",")).into();
        let hosts = hosts.iter().map(|host| HostPattern::parse(host));
        Ok(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            path: path.map_or(Ok(PathPattern::Any), PathPattern::parse)?,
            conditions: None,
            name: None,
            template: template.into(),
            label,
        })
    }

    /// Adds conditions that a request must meet too.
    pub fn when(mut self, conditions: RouteConditions) -> Self {
        if !conditions.is_empty() {
            self.label = format!("{}{}", self.label, conditions.describe()).into();
            self.conditions = Some(Box::new(conditions));
        }
        self
    }

    /// Gives the route a name for the access log.
    pub fn named(mut self, name: Option<&str>) -> Self {
        self.name = name.map(Box::from);
        self
    }

    /// The path pattern.
    pub fn path(&self) -> &PathPattern {
        &self.path
    }

    /// The name; the path template if the route has none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.template)
    }

    /// The path template; `/*` if the route matches any path.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Hosts, path and conditions. They identify the route, whatever its position in the table.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Whether the route matches the request.
    pub fn matches(&self, request: &RoutableRequest<'_>) -> bool {
        let host_fits = |host: &HostPattern| host.matches(request);
        (self.hosts.is_empty() || self.hosts.iter().any(host_fits))
            && self.path.matches(&request.head.path)
            && (self.conditions.as_deref()).is_none_or(|conditions| conditions.hold(request))
    }
}

// === impl HostPattern ===

impl HostPattern {
    /// Parses a host of a route. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        // No scheme has port 0 as its default, so a written port is always kept.
        let host = host::parse(name, 0).ok_or_else(|| mistake(text))?;
        match below {
            true if host.name.starts_with('[') => Err(mistake(text)),
            true => Ok(Self::Below(format!(".{}", host.name).into(), host.port)),
            false => Ok(Self::Exact(host.name.into(), host.port)),
        }
    }

    /// Whether the pattern matches the host and the port of the request.
    pub fn matches(&self, request: &RoutableRequest<'_>) -> bool {
        let host: &str = &request.head.host;
        let is_port = |port: &Option<u16>| port.is_none_or(|port| port == request.port());
        match self {
            Self::Any => true,
            Self::Exact(name, port) => host == &**name && is_port(port),
            Self::Below(suffix, port) => {
                host.len() > suffix.len() && host.ends_with(&**suffix) && is_port(port)
            }
        }
    }
}

fn mistake(text: &str) -> String {
    let hint = if text.contains("://") {
        "remove the scheme"
    } else if text.contains('/') {
        "remove the path"
    } else if !text.is_ascii() {
        "write its ASCII form (`xn--…`)"
    } else if text.contains('*') {
        "`*` is allowed only at the start, as in `*.example.com`"
    } else {
        "a host is a name or an address, as in `example.com`, `*.example.com` or `[::1]`"
    };
    format!("`{text}` is not a host; {hint}")
}

// === impl RouteTable ===

impl<T> RouteTable<T> {
    /// A table of routes in the given order.
    pub fn new(routes: impl IntoIterator<Item = (RoutePattern, T)>) -> Self {
        Self {
            routes: routes.into_iter().collect(),
        }
    }

    /// The first route that matches the request, with its pattern. `None` if there is none.
    pub fn find(&self, request: &RoutableRequest<'_>) -> Option<(&RoutePattern, &T)> {
        let mut routes = self.iter();
        routes.find(|(pattern, _)| pattern.matches(request))
    }

    /// All routes in order.
    pub fn iter(&self) -> impl Iterator<Item = (&RoutePattern, &T)> {
        self.routes.iter().map(|(pattern, route)| (pattern, route))
    }
}

impl<T> Default for RouteTable<T> {
    fn default() -> Self {
        Self::new([])
    }
}

#[cfg(test)]
mod tests;
