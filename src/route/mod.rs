//! Routes: which one a request takes, where a redirect leads, what is changed on the way. Pure.
//!
//! The first match wins. What a route does is not known here: a [`RouteTable`] holds any value.

pub mod edit;
mod path;
pub mod redirect;

use std::sync::Arc;

use crate::facts::host;

pub use edit::RouteEdits;
pub use path::{PathPattern, PathSegment};
pub use redirect::RedirectTemplate;

/// Which requests a route takes.
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
    /// This name; `None`: on any port.
    Exact(Box<str>, Option<Box<str>>),
    /// Every name that ends so, dot included; `None`: on any port.
    Below(Box<str>, Option<Box<str>>),
}

/// Routes in order.
#[derive(Clone, Debug)]
pub struct RouteTable<T> {
    routes: Vec<(RoutePattern, T)>,
}

// === impl RoutePattern ===

impl RoutePattern {
    /// Reads hosts and a path template. No hosts: any; no path: any.
    ///
    /// A host is a name, with a port or for all ports; `*.example.com` is every name below
    /// `example.com`, at any depth, and not `example.com` itself; `*` is any. In a path, `{name}`
    /// is one segment that is not empty, and `/*` at the end matches the path before it and all
    /// below. The error is one sentence about the first mistake.
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

    /// The path template; `/*` where the route takes any path.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Hosts and path as written: the same for the same route, whatever stands around it.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Whether a request to this host, in normal form with or without a port, and this path, in
    /// normal form, takes the route.
    pub fn matches(&self, host: &str, path: &str) -> bool {
        let host_fits = self.hosts.is_empty() || self.hosts.iter().any(|h| h.matches(host));
        host_fits && self.path.matches(path)
    }
}

// === impl HostPattern ===

impl HostPattern {
    /// Reads a host of a route; the error is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        // Port 0 is nobody's default: whatever port is written stays.
        let host = host::parse(name, 0).ok_or_else(|| mistake(text))?;
        let port = host.port.map(|port| port.to_string().into());
        match below {
            true if host.name.starts_with('[') => Err(mistake(text)),
            true => Ok(Self::Below(format!(".{}", host.name).into(), port)),
            false => Ok(Self::Exact(host.name.into(), port)),
        }
    }

    /// Whether `host`, in normal form with or without a port, is meant.
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

/// Whether what follows a name is the port wanted.
fn is_port(rest: &str, wanted: Option<&str>) -> bool {
    match (rest.strip_prefix(':'), wanted) {
        (given, Some(wanted)) => given == Some(wanted),
        (None, None) => rest.is_empty(),
        (Some(_), None) => true,
    }
}

/// The name, and the port with its colon.
fn split_port(host: &str) -> (&str, &str) {
    let colon = host.rfind(':').filter(|_| !host.ends_with(']'));
    host.split_at_checked(colon.unwrap_or(host.len()))
        .unwrap_or((host, ""))
}

fn mistake(text: &str) -> String {
    let hint = if text.contains("://") {
        "leave the scheme out"
    } else if text.contains('/') {
        "leave the path out"
    } else if !text.is_ascii() {
        "write its ASCII form (`xn--…`)"
    } else if text.contains('*') {
        "`*` stands only for the first labels, as in `*.example.com`"
    } else {
        "a host is a name or an address, as in `example.com`, `*.example.com` or `[::1]`"
    };
    format!("`{text}` is not a host; {hint}")
}

// === impl RouteTable ===

impl<T> RouteTable<T> {
    /// A table of routes in the order given.
    pub fn new(routes: impl IntoIterator<Item = (RoutePattern, T)>) -> Self {
        Self {
            routes: routes.into_iter().collect(),
        }
    }

    /// The first route that takes the request, with its pattern.
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
