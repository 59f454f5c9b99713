//! The state of servers for operators: whether they are drained, whether they are healthy, why not, and since when.
//! Never selects a server.

use std::sync::Arc;

use super::server::ServerFigures;
use super::server_health::{ServerHealth, mark};
use super::{ServerRegistry, Upstream, UpstreamError, UpstreamServer};
use crate::clock::Timestamp;

/// One configured server as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The address as configured.
    pub address: Arc<str>,
    /// The weight.
    pub weight: u32,
    /// Whether the server is used only if no primary is eligible.
    pub is_backup: bool,
    /// Whether an operator drains the server.
    pub is_drained: bool,
    /// Why the server gets no requests although it is not drained. `None` if it is healthy.
    pub trouble: Option<String>,
    /// When it became healthy or unhealthy. `None` if it has been healthy since it was added.
    pub since: Option<Timestamp>,
    /// The counters.
    pub figures: ServerFigures,
}

/// What is known about the health of one address, apart from its marks.
#[derive(Debug, Default)]
pub(super) struct HealthNote {
    trouble: Option<&'static str>,
    since: Option<Timestamp>,
    /// The reason of the last failed health check.
    check_error: String,
    /// The sentence of the last failed request. Empty without one.
    request_error: &'static str,
}

// === impl ServerStatus ===

impl ServerStatus {
    /// Returns whether the server gets requests.
    pub fn takes_requests(&self) -> bool {
        !self.is_drained && self.trouble.is_none()
    }
}

// === impl Upstream ===

impl Upstream {
    /// Returns the state of each configured server, in the order of the configuration.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let servers = self.servers();
        let figures = self.figures().into_iter().zip(&self.specs);
        let status = figures.map(|((address, figures), counted)| {
            let own: Vec<_> = servers.iter().filter(|s| *s.label() == address).collect();
            let (trouble, since) = self.health_of(&own);
            ServerStatus {
                is_drained: counted.counts.is_drained(),
                weight: counted.spec.weight,
                is_backup: counted.spec.backup,
                address,
                trouble,
                since,
                figures,
            }
        });
        status.collect()
    }

    /// Drains the server that is configured as `address`, or makes it available again. Returns `false` if there is no
    /// such server.
    pub fn set_drained(&self, address: &str, drained: bool, registry: &ServerRegistry) -> bool {
        let is_known = self.labels().any(|label| label == address);
        if is_known {
            registry.set_drained(&self.name, address, drained);
        }
        is_known
    }

    /// Returns why none of these addresses is healthy, and since when. The first is `None` if one is healthy.
    fn health_of(&self, addresses: &[&Arc<UpstreamServer>]) -> (Option<String>, Option<Timestamp>) {
        let troubles = addresses.iter().map(|server| server.health_trouble(self));
        let troubles: Option<Vec<String>> = troubles.collect();
        let trouble = troubles.map(|all| {
            let first = all.into_iter().next();
            first.unwrap_or_else(|| "its name has no address".to_owned())
        });
        let since = addresses
            .iter()
            .filter_map(|server| server.note.lock().since);
        (trouble, since.max())
    }
}

// === impl UpstreamServer ===

impl UpstreamServer {
    /// Remembers since when the server is healthy or not. Called at least once per second.
    pub fn note_health(&self, now: Timestamp) {
        let trouble = self.trouble();
        let mut note = self.note.lock();
        if note.trouble != trouble {
            note.trouble = trouble;
            note.since = Some(now);
        }
    }

    /// Remembers the reason of a failed health check. Empty if the check passed.
    pub(super) fn note_check(&self, error: &str) {
        if !error.is_empty() {
            error.clone_into(&mut self.note.lock().check_error);
        }
    }

    /// Remembers why a request has failed.
    pub(super) fn note_failure(&self, error: &UpstreamError) {
        self.note.lock().request_error = error.sentence();
    }

    /// Returns why the server is unhealthy in `upstream`. `None` if it is healthy.
    fn health_trouble(&self, upstream: &Upstream) -> Option<String> {
        let marks = self.health.marks() & upstream.relevant_marks();
        if marks & mark::UNHEALTHY != 0 {
            let error = self.note.lock().check_error.clone();
            return Some(format!("health check failed: {error}"));
        }
        if marks & mark::OPEN != 0 {
            return Some("circuit breaker open".to_owned());
        }
        if marks & mark::EJECTED != 0 {
            return Some(match self.note.lock().request_error {
                "" => "failing".to_owned(),
                error => format!("failing: {error}"),
            });
        }
        (marks & mark::BUSY != 0).then(|| "busy: it sent 503 with Retry-After".to_owned())
    }
}

// === impl ServerHealth ===

impl ServerHealth {
    /// Marks the server as drained, or removes the mark.
    pub(super) fn set_drained(&self, drained: bool) {
        if drained {
            self.mark(mark::DRAINED);
        } else {
            self.unmark(mark::DRAINED);
        }
    }

    /// Returns whether an operator drains the server.
    pub(super) fn is_drained(&self) -> bool {
        !self.is_clear(mark::DRAINED)
    }
}
