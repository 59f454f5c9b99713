//! Health checks: when each server is asked, and what is said when that changes something.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{TICK, chance, jittered};
use crate::observe::Field::Text;
use crate::snapshot::Live;
use crate::upstream::{Checked, Pool, Server, Upstream};

/// A server is first checked within this time.
const FIRST: Duration = Duration::from_secs(1);

/// The checks of all servers.
pub(super) struct Checks {
    live: Arc<Live>,
    pool: Rc<Pool>,
    servers: HashMap<u64, Check>,
}

/// The checks of one server.
struct Check {
    due: Instant,
    running: Rc<Cell<bool>>,
}

// === impl Checks ===

impl Checks {
    pub(super) fn new(live: Arc<Live>, pool: Rc<Pool>) -> Self {
        let servers = HashMap::new();
        Self {
            live,
            pool,
            servers,
        }
    }

    /// Starts the checks whose time has come, and forgets servers that are gone. When to come
    /// again.
    pub(super) fn start_due(&mut self, upstreams: &[Arc<Upstream>], now: Instant) -> Instant {
        let mut before = std::mem::take(&mut self.servers);
        for upstream in upstreams {
            let Some(health) = &upstream.health else {
                continue;
            };
            for server in upstream.servers() {
                let first = || Check {
                    due: now + health.interval.min(FIRST).mul_f64(chance()),
                    running: Rc::default(),
                };
                let mut check = before.remove(&server.id()).unwrap_or_else(first);
                if check.due <= now && !check.running.replace(true) {
                    check.due = jittered(now, health.interval);
                    self.start(upstream.clone(), server.clone(), check.running.clone());
                }
                self.servers.insert(server.id(), check);
            }
        }
        let idle = self.servers.values().filter(|check| !check.running.get());
        let due = idle.map(|check| check.due).min();
        due.unwrap_or_else(|| now + TICK)
    }

    fn start(&self, upstream: Arc<Upstream>, server: Arc<Server>, running: Rc<Cell<bool>>) {
        let (live, pool) = (self.live.clone(), self.pool.clone());
        tokio::task::spawn_local(async move {
            let checked = pool.check(&upstream, &server).await;
            running.set(false);
            tell(&live, &upstream, &server, &checked);
        });
    }
}

fn tell(live: &Live, upstream: &Upstream, server: &Server, checked: &Checked) {
    let log = &live.lasting.log;
    let fields = [
        Text("upstream", &upstream.name),
        Text("server", server.label()),
        Text("address", &server.endpoint),
        Text("reason", &checked.why),
        Text("error", &checked.error),
    ];
    match checked.changed {
        Some(false) => log.warn("server unhealthy", &fields),
        Some(true) => log.info("server healthy", fields.get(..3).unwrap_or_default()),
        None => {}
    }
}
