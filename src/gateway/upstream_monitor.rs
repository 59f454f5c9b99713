//! Monitors upstreams on one thread of the process: looks up host names, checks the health of servers, and
//! logs when a server becomes ineligible or eligible. Never serves a request.

mod names;

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{info, warn};

use self::names::NameResolver;
use super::cores::spawn;
use crate::process::RunningGateway;
use crate::upstream::{CheckResult, Pool, Upstream, UpstreamServer};

pub(super) use names::resolve_new;

/// The maximum delay until a reload or an ineligible server is noticed.
const TICK: Duration = Duration::from_millis(500);

/// The monitoring thread.
pub(super) struct UpstreamMonitor {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The state of the thread.
struct MonitorLoop {
    live: Arc<RunningGateway>,
    checks: HealthChecks,
    names: NameResolver,
    /// The ineligible servers by id, each with the logged reason.
    troubled: HashMap<u64, &'static str>,
}

// === impl UpstreamMonitor ===

impl UpstreamMonitor {
    pub(super) fn start(live: Arc<RunningGateway>) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = spawn("upstreams".to_owned(), |ready| async move {
            // The receiver is waiting for this.
            let _ = ready.send(Ok(()));
            tokio::select! {
                _ = stopped => {}
                () = MonitorLoop::new(live).forever() => {}
            }
        })?;
        Ok(Self { stop, thread })
    }

    pub(super) fn stop(self) {
        drop(self.stop);
        // The panic was already written to stderr.
        let _ = self.thread.join();
    }
}

// === impl MonitorLoop ===

impl MonitorLoop {
    fn new(live: Arc<RunningGateway>) -> Self {
        let pool = Rc::new(Pool::new(live.process.clock.clone()));
        Self {
            checks: HealthChecks {
                pool,
                servers: HashMap::new(),
            },
            names: NameResolver::new(live.clone()),
            troubled: HashMap::new(),
            live,
        }
    }

    async fn forever(mut self) {
        loop {
            let upstreams = self.live.current.load().upstreams.clone();
            let now = self.live.process.clock.instant();
            let due = self.checks.start_due(&upstreams, now);
            let due = due.min(self.names.start_due(&upstreams, now));
            self.log_eligibility(&upstreams);
            let wait = due.saturating_duration_since(now);
            tokio::time::sleep(wait.min(TICK)).await;
        }
    }

    /// Logs servers that became ineligible or eligible. Health checks log their own results.
    fn log_eligibility(&mut self, upstreams: &[Arc<Upstream>]) {
        let mut troubled = HashMap::new();
        for upstream in upstreams {
            for server in upstream.servers() {
                server.note_health(self.live.process.clock.now());
                let trouble = server.trouble().filter(|word| *word != "unhealthy");
                let before = self.troubled.get(&server.id()).copied();
                let (upstream, address) = (&upstream.name, &server.endpoint);
                let (label, reason) = (server.label(), trouble.or(before));
                match (before, trouble) {
                    (old, Some(new)) if old != Some(new) => {
                        warn!(
                            %upstream, server = %label, %address, reason,
                            "server taken out of rotation"
                        );
                    }
                    (Some(_), None) => {
                        info!(
                            %upstream, server = %label, %address, reason,
                            "server back in rotation"
                        );
                    }
                    _ => {}
                }
                troubled.extend(trouble.map(|word| (server.id(), word)));
            }
        }
        self.troubled = troubled;
    }
}

/// The maximum delay of a server's first health check.
const FIRST: Duration = Duration::from_secs(1);

/// The health checks of all servers.
struct HealthChecks {
    pool: Rc<Pool>,
    servers: HashMap<u64, HealthCheck>,
}

/// The health checks of one server.
struct HealthCheck {
    due: Instant,
    running: Rc<Cell<bool>>,
}

// === impl HealthChecks ===

impl HealthChecks {
    /// Starts the health checks that are due, and drops removed servers. Returns when the next check is due.
    fn start_due(&mut self, upstreams: &[Arc<Upstream>], now: Instant) -> Instant {
        let mut before = std::mem::take(&mut self.servers);
        for upstream in upstreams {
            let Some(health) = &upstream.health else {
                continue;
            };
            for server in upstream.servers() {
                let first = || HealthCheck {
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

    fn start(&self, upstream: Arc<Upstream>, server: Arc<UpstreamServer>, running: Rc<Cell<bool>>) {
        let pool = self.pool.clone();
        tokio::task::spawn_local(async move {
            let checked = pool.check(&upstream, &server).await;
            running.set(false);
            log_change(&upstream, &server, &checked);
        });
    }
}

fn log_change(upstream: &Upstream, server: &UpstreamServer, checked: &CheckResult) {
    let (upstream, address) = (&upstream.name, &server.endpoint);
    let (server, reason, error) = (server.label(), &checked.why, &checked.error);
    match checked.changed {
        Some(false) => warn!(%upstream, %server, %address, %reason, %error, "server unhealthy"),
        Some(true) => info!(%upstream, %server, %address, "server healthy"),
        None => {}
    }
}

/// Returns `now` plus `interval` with a jitter of 10 %, so that gateways do not act in step.
fn jittered(now: Instant, interval: Duration) -> Instant {
    now + interval.mul_f64(0.9 + 0.2 * chance())
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}
