//! The servers of a Cluster, as one core sees them.
//!
//! When a server fails, calls for its keys fail immediately, and those for the other servers go on. A server fails when
//! three calls in a row time out and it has not replied for twice the timeout, or when it cannot be reached. The
//! supervisor tries it again with one call at a time, so no request waits for it.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use redis::{Arg, Cmd, ErrorKind, RedisError, ServerErrorKind};
use tracing::{info, warn};

use super::{MAX_TIMEOUTS, RedisLink, TOO_SLOW};
use crate::store::StoreError;
use crate::store::redis::slot_owners::SlotOwners;

/// The servers of a Cluster. Empty for other stores.
#[derive(Default)]
pub(super) struct ClusterNodes {
    owners: RefCell<SlotOwners>,
    /// The state of each owner.
    states: RefCell<Vec<NodeState>>,
    /// The number of servers that have failed.
    failed: Cell<usize>,
}

/// The circuit breaker of a server.
#[derive(Default)]
struct NodeState {
    /// The number of timeouts since the last reply.
    timeouts: u32,
    last_reply: Option<Instant>,
    /// A key of the server, to try it with. `None` unless the server has failed.
    failed_key: Option<Vec<u8>>,
}

/// A call whose outcome says something about a server of a Cluster. Dropped without an outcome, it has timed out.
pub(super) struct NodeWatch<'a> {
    link: &'a RedisLink,
    command: &'a Cmd,
    /// The index of the server. `None` for other stores, and after the outcome is known.
    owner: Option<usize>,
    generation: u64,
    began: Instant,
}

/// Whether a server of a Cluster that returns this error cannot be used for now.
pub(super) fn is_unusable(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown};
    matches!(
        error.kind(),
        ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(BusyLoading | ClusterDown | MasterDown)
    )
}

// === impl ClusterNodes ===

impl ClusterNodes {
    /// Whether a server has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.get() > 0
    }

    /// Whether the servers have these slots.
    pub(super) fn has_owners(&self, owners: &SlotOwners) -> bool {
        *self.owners.borrow() == *owners
    }

    /// The names of the servers that have failed.
    pub(super) fn failed_names(&self) -> Vec<String> {
        let owners = self.owners.borrow();
        let failed = self.failed_keys().into_iter();
        failed.map(|(owner, _)| owners.name(owner)).collect()
    }

    /// The servers that have failed, each with one of its keys.
    pub(super) fn failed_keys(&self) -> Vec<(usize, Vec<u8>)> {
        let states = self.states.borrow();
        let keys = states.iter().map(|state| state.failed_key.clone());
        let failed = keys.enumerate();
        failed
            .filter_map(|(owner, key)| Some((owner, key?)))
            .collect()
    }

    /// Uses the servers that the Cluster has now. Those that are not new keep their state. Returns the names of those
    /// that had failed and are gone.
    pub(super) fn replace(&self, owners: SlotOwners) -> Vec<String> {
        let old_owners = self.owners.replace(owners);
        let old = self.states.take().into_iter().enumerate();
        let old = old.map(|(owner, state)| (old_owners.name(owner), state));
        let mut old: std::collections::BTreeMap<String, NodeState> = old.collect();
        let owners = self.owners.borrow();
        let states = (0..owners.count()).map(|owner| old.remove(&owners.name(owner)));
        self.states
            .replace(states.map(Option::unwrap_or_default).collect());
        self.failed.set(self.failed_keys().len());
        let gone = old
            .into_iter()
            .filter(|(_, state)| state.failed_key.is_some());
        gone.map(|(name, _)| name).collect()
    }

    /// Changes the state of a server.
    fn change<T>(&self, owner: usize, change: impl FnOnce(&mut NodeState) -> T) -> Option<T> {
        self.states.borrow_mut().get_mut(owner).map(change)
    }
}

// === impl RedisLink ===

impl RedisLink {
    /// Watches a call. Fails immediately if the server of its key has failed.
    pub(super) fn watch<'a>(&'a self, command: &'a Cmd) -> Result<NodeWatch<'a>, StoreError> {
        let owner = key(command)
            .filter(|_| self.is_cluster())
            .map(|key| self.nodes.owners.borrow().owner(key));
        let has_failed = |state: &mut NodeState| state.failed_key.is_some();
        if owner.and_then(|owner| self.nodes.change(owner, has_failed)) == Some(true) {
            return Err(StoreError::Unavailable);
        }
        Ok(NodeWatch {
            link: self,
            command,
            owner,
            generation: self.generation.get(),
            began: self.clock.instant(),
        })
    }

    /// Lets calls use a server again that has replied.
    pub(super) fn recover_node(&self, owner: usize) {
        let recovered = self.nodes.change(owner, std::mem::take);
        if recovered.is_some_and(|state| state.failed_key.is_some()) {
            self.nodes.failed.set(self.nodes.failed.get() - 1);
            let name = self.nodes.owners.borrow().name(owner);
            self.report_recovered_node(&name);
        }
    }

    /// Logs that a server of the Cluster is used again, if it is by all cores.
    pub(super) fn report_recovered_node(&self, server: &str) {
        if self.shared.health.recover_node(server) {
            let store = &self.shared.settings.address;
            info!(%store, %server, "server of the Cluster connected");
        }
    }

    /// Opens the circuit breaker of a server.
    fn fail_node(&self, owner: usize, key: Vec<u8>, reason: &str) {
        let fail = |state: &mut NodeState| state.failed_key.replace(key).is_none();
        if self.nodes.change(owner, fail) != Some(true) {
            return;
        }
        self.nodes.failed.set(self.nodes.failed.get() + 1);
        let server = self.nodes.owners.borrow().name(owner);
        if self.shared.health.fail_node(&server) {
            let store = &self.shared.settings.address;
            warn!(
                %store, %server, %reason,
                "server of the Cluster unavailable, rules use their on_failure fallback for its keys"
            );
        }
        self.suspected.notify_one();
    }
}

// === impl NodeWatch ===

impl NodeWatch<'_> {
    /// The server has replied.
    pub(super) fn replied(mut self) {
        let now = self.link.clock.instant();
        if let Some(owner) = self.current_owner() {
            self.link.nodes.change(owner, |state| {
                state.timeouts = 0;
                state.last_reply = Some(now);
            });
        }
    }

    /// The server cannot be used.
    pub(super) fn failed(mut self, reason: &str) {
        if let Some(owner) = self.current_owner() {
            let key = key(self.command).unwrap_or_default().to_vec();
            self.link.fail_node(owner, key, reason);
        }
    }

    /// The server of this call, if the Cluster has not been looked up since, and if the outcome was not known.
    fn current_owner(&mut self) -> Option<usize> {
        let is_current = self.generation == self.link.generation.get();
        self.owner.take().filter(|_| is_current)
    }
}

impl Drop for NodeWatch<'_> {
    fn drop(&mut self) {
        let Some(owner) = self.current_owner() else {
            return;
        };
        let (now, timeout) = (self.link.clock.instant(), self.link.shared.settings.timeout);
        // The client may have gone, or an earlier call of the same request may have taken most of its time.
        if now.saturating_duration_since(self.began) < timeout / 2 {
            return;
        }
        let timed_out = self.link.nodes.change(owner, |state| {
            state.timeouts = state.timeouts.saturating_add(1);
            let quiet = |last: Instant| now.saturating_duration_since(last) >= 2 * timeout;
            state.timeouts >= MAX_TIMEOUTS && state.last_reply.is_none_or(quiet)
        });
        if timed_out == Some(true) {
            let key = key(self.command).unwrap_or_default().to_vec();
            self.link.fail_node(owner, key, TOO_SLOW);
        }
    }
}

/// The first key of a command.
fn key(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter().map(|word| match word {
        Arg::Simple(word) => word,
        _ => &[],
    });
    let name = words.next()?;
    // EVALSHA SCRIPT COUNT KEY …
    let before = if name.starts_with(b"EVAL") { 2 } else { 0 };
    words.nth(before)
}
