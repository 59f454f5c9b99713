//! Looks up the host names of servers and updates the upstreams.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::{TICK, jittered};
use crate::process::{ProcessState, RunningGateway};
use crate::snapshot::Snapshot;
use crate::upstream::{HostPort, Upstream};

/// The maximum time that a start or a reload waits for the first lookup of a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The host names of all upstreams.
pub(super) struct NameResolver {
    live: Arc<RunningGateway>,
    names: HashMap<HostPort, Rc<RefCell<Following>>>,
    /// The upstreams of the previous call.
    upstreams: Vec<Arc<Upstream>>,
}

/// The lookup state of one name.
struct Following {
    due: Instant,
    running: bool,
    /// Whether the last lookup failed, which was already logged.
    failed: bool,
}

// === impl NameResolver ===

impl NameResolver {
    pub(super) fn new(live: Arc<RunningGateway>) -> Self {
        Self {
            live,
            names: HashMap::new(),
            upstreams: Vec::new(),
        }
    }

    /// Starts the lookups that are due, and drops removed names. Returns when the next lookup is due.
    pub(super) fn start_due(&mut self, upstreams: &[Arc<Upstream>], now: Instant) -> Instant {
        self.catch_up(upstreams);
        let mut intervals: HashMap<&HostPort, Duration> = HashMap::new();
        for upstream in upstreams {
            for name in upstream.names() {
                let interval = intervals.entry(name).or_insert(upstream.resolve_interval);
                *interval = upstream.resolve_interval.min(*interval);
            }
        }
        if self.names.len() != intervals.len() {
            let live: Vec<&HostPort> = intervals.keys().copied().collect();
            self.live.process.servers.keep_names(&live);
        }
        self.names.retain(|name, _| intervals.contains_key(name));
        let mut next = now + TICK;
        for (name, interval) in intervals {
            let following = self.following(name, now, interval);
            let mut state = following.borrow_mut();
            if state.due <= now && !state.running {
                state.due = jittered(now, interval);
                state.running = true;
                self.start(name.clone(), following.clone());
            }
            if !state.running {
                next = next.min(state.due);
            }
        }
        next
    }

    /// Updates new upstreams: lookups that ended before the reload updated only the old upstreams.
    fn catch_up(&mut self, upstreams: &[Arc<Upstream>]) {
        let known = |one: &Arc<Upstream>| self.upstreams.iter().any(|old| Arc::ptr_eq(old, one));
        if upstreams.iter().all(known) {
            return;
        }
        for upstream in upstreams {
            upstream.follow(&self.live.process.servers);
        }
        self.upstreams = upstreams.to_vec();
    }

    /// Returns the state of a name. A name with known addresses is looked up after its interval, others now.
    fn following(
        &mut self,
        name: &HostPort,
        now: Instant,
        interval: Duration,
    ) -> Rc<RefCell<Following>> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let found = !self.live.process.servers.addresses(name).is_empty();
        let following = Rc::new(RefCell::new(Following {
            due: if found { jittered(now, interval) } else { now },
            running: false,
            // The first lookup has already logged the failure.
            failed: !found,
        }));
        self.names.insert(name.clone(), following.clone());
        following
    }

    fn start(&self, name: HostPort, following: Rc<RefCell<Following>>) {
        let live = self.live.clone();
        tokio::task::spawn_local(async move {
            let asked = name.clone();
            let looked_up = tokio::task::spawn_blocking(move || asked.resolve()).await;
            let mut state = following.borrow_mut();
            state.running = false;
            let looked_up = looked_up.unwrap_or_else(|error| Err(io::Error::other(error)));
            state.failed = take_in(&live, &name, looked_up, state.failed);
        });
    }
}

/// Stores the result of a lookup. Returns whether it failed. `failed` is set if the previous lookup failed,
/// which was already logged.
fn take_in(
    live: &RunningGateway,
    name: &HostPort,
    looked_up: io::Result<Vec<SocketAddr>>,
    failed: bool,
) -> bool {
    let process = &live.process;
    let addresses = match looked_up {
        Ok(addresses) => addresses,
        Err(error) => {
            if !failed {
                not_found(name, &error);
            }
            return true;
        }
    };
    if process.servers.found(name, addresses) {
        let snapshot = live.current.load();
        follow(process, &snapshot, name);
    }
    false
}

/// Updates the upstreams that use a name with new addresses.
fn follow(process: &ProcessState, snapshot: &Snapshot, name: &HostPort) {
    for upstream in &snapshot.upstreams {
        if !upstream.names().any(|own| own == name) {
            continue;
        }
        let change = upstream.follow(&process.servers);
        for (word, servers) in [
            ("server address added", change.joined),
            ("server address removed", change.left),
        ] {
            for server in servers {
                let (upstream, address) = (&upstream.name, &server.endpoint);
                info!(%upstream, server = %server.label(), %address, "{word}");
            }
        }
    }
}

/// Looks up the names of a new configuration that have no known addresses. A name that is not found in time
/// has no servers until a later lookup succeeds.
pub(in crate::gateway) fn resolve_new(process: &ProcessState, snapshot: &Snapshot) {
    let mut new: Vec<HostPort> = Vec::new();
    for name in snapshot
        .upstreams
        .iter()
        .flat_map(|upstream| upstream.names())
    {
        if process.servers.addresses(name).is_empty() && !new.contains(name) {
            new.push(name.clone());
        }
    }
    let (sender, found) = mpsc::channel();
    for name in new.clone() {
        let sender = sender.clone();
        // A lookup that hangs is abandoned; a later lookup repeats it.
        let look_up = move || drop(sender.send((name.resolve(), name)));
        if let Err(error) = thread::Builder::new().spawn(look_up) {
            error!(%error, "cannot start a DNS lookup");
        }
    }
    drop(sender);
    let until = process.clock.instant() + LOOKUP_TIMEOUT;
    while !new.is_empty() {
        let left = until.saturating_duration_since(process.clock.instant());
        let Ok((looked_up, name)) = found.recv_timeout(left) else {
            break;
        };
        new.retain(|other| *other != name);
        match looked_up {
            Ok(addresses) => {
                process.servers.found(&name, addresses);
                follow(process, snapshot, &name);
            }
            Err(error) => not_found(&name, &error),
        }
    }
    for name in new {
        not_found(&name, &"the lookup has not finished yet");
    }
}

fn not_found(name: &HostPort, error: &dyn Display) {
    warn!(%name, %error, "cannot resolve a server name");
}
