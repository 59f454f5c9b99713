//! Routes: which one a request takes, where a redirect leads, what is changed on the way. Pure.
//!
//! The first match wins. What a route does is not known here: a [`Table`] holds any value.

pub mod edit;
mod hosts;
mod path;
pub mod redirect;

use std::sync::Arc;

pub use edit::Edits;
pub use hosts::HostPattern;
pub use path::{PathPattern, Segment};
pub use redirect::Redirect;

/// Which requests a route takes.
#[derive(Clone, Debug)]
pub struct Pattern {
    hosts: Vec<HostPattern>,
    path: PathPattern,
    template: Box<str>,
    label: Arc<str>,
}

/// Routes in order.
#[derive(Clone, Debug)]
pub struct Table<T> {
    routes: Vec<(Pattern, T)>,
}

/// A mistake in a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where it is.
    pub which: Which,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
}

/// The part of a route that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The host at this place of the list.
    Host(usize),
    /// The path template.
    Path,
    /// The redirect template.
    Redirect,
}

// === impl Pattern ===

impl Pattern {
    /// Reads hosts and a path template. No hosts: any; no path: any.
    ///
    /// A host is a name, with a port or for all ports; `*.example.com` is every name below
    /// `example.com`, at any depth, and not `example.com` itself; `*` is any. In a path, `{name}`
    /// is one segment that is not empty, and `/*` at the end matches the path before it and all
    /// below.
    pub fn parse(hosts: &[String], path: Option<&str>) -> Result<Self, Error> {
        let read = |(at, host): (usize, &String)| {
            HostPattern::parse(host).map_err(|message| Which::Host(at).wrong(message))
        };
        let template = path.unwrap_or("/*");
        let label = format!("{} {template}", hosts.join(",")).into();
        let hosts = hosts
            .iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()?;
        let path_pattern = match path {
            Some(path) => PathPattern::parse(path).map_err(|m| Which::Path.wrong(m))?,
            None => PathPattern::Any,
        };
        Ok(Self {
            hosts,
            path: path_pattern,
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

// === impl Table ===

impl<T> Table<T> {
    /// A table of routes in the order given.
    pub fn new(routes: impl IntoIterator<Item = (Pattern, T)>) -> Self {
        Self {
            routes: routes.into_iter().collect(),
        }
    }

    /// The first route that takes the request, with its path template.
    pub fn find(&self, host: &str, path: &str) -> Option<(&str, &T)> {
        let (pattern, route) = self.find_pattern(host, path)?;
        Some((pattern.template(), route))
    }

    /// The first route that takes the request, with its pattern.
    pub fn find_pattern(&self, host: &str, path: &str) -> Option<(&Pattern, &T)> {
        let mut routes = self.iter();
        routes.find(|(pattern, _)| pattern.matches(host, path))
    }

    /// All routes in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Pattern, &T)> {
        self.routes.iter().map(|(pattern, route)| (pattern, route))
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new([])
    }
}

// === impl Which ===

impl Which {
    fn wrong(self, message: String) -> Error {
        Error {
            which: self,
            message,
        }
    }
}

#[cfg(test)]
mod tests;
