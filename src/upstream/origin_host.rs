//! Which host origin servers receive: the one that the client requested, a configured one, or their own name.

use std::sync::Arc;

use super::{ServerEndpoint, Upstream, UpstreamServer};

/// The host of forwarded requests. A host that a route sets takes precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OriginHost {
    /// The host that the client requested.
    #[default]
    Client,
    /// This host.
    Fixed(Arc<str>),
    /// The name or address of the server.
    Server,
}

// === impl Upstream ===

impl Upstream {
    /// Returns the host of requests to `server`. `None` for the host that the client requested.
    pub(super) fn host_for(&self, server: &UpstreamServer) -> Option<Arc<str>> {
        match &self.host {
            OriginHost::Client => None,
            OriginHost::Fixed(host) => Some(Arc::clone(host)),
            OriginHost::Server => Some(self.own_host(server)),
        }
    }

    /// Returns the name or address of a server as written, without the default port of the scheme. A Unix socket
    /// has no name: `localhost`.
    pub(super) fn own_host(&self, server: &UpstreamServer) -> Arc<str> {
        if let ServerEndpoint::Unix(_) = server.endpoint {
            return "localhost".into();
        }
        let label = server.label();
        let default = if self.tls.is_some() { ":443" } else { ":80" };
        match label.strip_suffix(default) {
            Some(name) => name.into(),
            None => Arc::clone(label),
        }
    }
}
