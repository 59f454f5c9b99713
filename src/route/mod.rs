//! Routes: selects the route of a request, with its redirect or its changes to the message. Pure.
//!
//! The first match wins. A [`RouteTable`] can hold any value per route.

pub mod edit;
mod path;
pub mod redirect;

use std::sync::Arc;

use crate::facts::host;

pub use edit::RouteEdits;
pub use path::{PathPattern, PathSegment};
pub use redirect::RedirectTemplate;

/// The requests that a route matches.
#[derive(Clone, Debug)]
pub struct RoutePattern {
    hosts: Vec<HostPattern>,
    path: PathPattern,
    template: Box<str>,
    label: Arc<str>,
}

/// One host of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Any host.
    Any,
    /// This name, on this port. `None` means any port.
    Exact(Box<str>, Option<Box<str>>),
    /// Every name with this suffix, which starts with a dot. `None` means any port.
    Below(Box<str>, Option<Box<str>>),
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
            template: template.into(),
            label,
        })
    }

    /// The path template; `/*` if the route matches any path.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Hosts and path as written. They identify the route, whatever its position in the table.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Whether the route matches a request for `host` and `path`, both in normal form; the host may
    /// have a port.
    pub fn matches(&self, host: &str, path: &str) -> bool {
        let host_fits = self.hosts.is_empty() || self.hosts.iter().any(|h| h.matches(host));
        host_fits && self.path.matches(path)
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
        let port = host.port.map(|port| port.to_string().into());
        match below {
            true if host.name.starts_with('[') => Err(mistake(text)),
            true => Ok(Self::Below(format!(".{}", host.name).into(), port)),
            false => Ok(Self::Exact(host.name.into(), port)),
        }
    }

    /// Whether the pattern matches `host`, in normal form with or without a port.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name, port) => {
                let rest = host.strip_prefix(&**name);
                rest.is_some_and(|rest| is_port(rest, port.as_deref()))
            }
            Self::Below(suffix, port) => {
                let (name, rest) = split_port(host);
                name.len() > suffix.len()
                    && name.ends_with(&**suffix)
                    && is_port(rest, port.as_deref())
            }
        }
    }
}

/// Whether the text after a name is the wanted port.
fn is_port(rest: &str, wanted: Option<&str>) -> bool {
    match (rest.strip_prefix(':'), wanted) {
        (given, Some(wanted)) => given == Some(wanted),
        (None, None) => rest.is_empty(),
        (Some(_), None) => true,
    }
}

/// Splits a host into the name and the port with its colon.
fn split_port(host: &str) -> (&str, &str) {
    let colon = host.rfind(':').filter(|_| !host.ends_with(']'));
    host.split_at_checked(colon.unwrap_or(host.len()))
        .unwrap_or((host, ""))
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
    pub fn find(&self, host: &str, path: &str) -> Option<(&RoutePattern, &T)> {
        let mut routes = self.iter();
        routes.find(|(pattern, _)| pattern.matches(host, path))
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
