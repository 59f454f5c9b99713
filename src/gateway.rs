//! A running gateway: start, components and shutdown.

use std::io;
use std::net::SocketAddr;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::watch;
use tracing::{error, warn};

use self::activity_ticker::ActivityTicker;
use self::listener_set::ListenerSet;
use self::reload::LoadedConfig;
use self::snapshot_saver::SnapshotSaver;
use self::upstream_monitor::UpstreamMonitor;
use crate::clock::Clock;
use crate::config::blueprint::{Blueprint, RequestedConnections};
use crate::listen::{self, ConnectionLimit, DrainTrigger};
use crate::observe::LogHandle;
use crate::process::{PidFile, ProcessState, RunningGateway};
use crate::snapshot::StartupSettings;
use crate::tls;

mod activity_ticker;
mod cores;
mod handover;
mod inherited;
mod listener_set;
mod reload;
mod scrape;
mod snapshot_saver;
mod startup_summary;
mod upstream_monitor;

pub use self::handover::{HandoverReceiver, HandoverSender, StartCommand};
pub use self::inherited::InheritedSockets;
pub use self::listener_set::AdminListener;
pub use self::reload::{RejectedConfig, ReloadHistory, ReloadOutcome, ReloadTrigger, Reloader};
pub use self::startup_summary::StartupSummary;

/// The maximum time that the shutdown waits for each log to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A running gateway.
pub struct Gateway {
    live: Arc<RunningGateway>,
    listeners: Arc<ListenerSet>,
    reloader: Arc<Reloader>,
    drain: DrainTrigger,
    cores: Vec<JoinHandle<()>>,
    saver: Arc<SnapshotSaver>,
    monitor: UpstreamMonitor,
    ticker: ActivityTicker,
    receiver: Option<HandoverReceiver>,
    pid_file: Option<PidFile>,
    summary: StartupSummary,
}

/// A gateway before it serves requests.
struct Startup {
    process: ProcessState,
    settings: StartupSettings,
    blueprint: Blueprint,
    config: LoadedConfig,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway with the configuration at `config` and the inherited sockets. The gateway listens when
    /// this returns. See [`Gateway::take_over`].
    pub fn start(
        config: &Path,
        clock: Clock,
        log: LogHandle,
        mut inherited: InheritedSockets,
    ) -> anyhow::Result<Self> {
        let mut startup = Startup::load(config, clock, log, inherited.secret)?;
        if let Some(keys) = &inherited.tickets {
            startup.process.tickets.load(keys);
        }
        let workers = startup.workers();
        let gate = connection_limit(&startup.blueprint, workers);
        let listeners = Arc::new(ListenerSet::new(workers, gate));
        let path = startup.settings.snapshot.clone();
        let pid_file = startup.claim_pid_file(&inherited)?;
        let warnings = startup.config.diagnostics.warning_count();
        let host = startup_summary::host_of(&startup.config.file);
        let live = startup.install(&listeners, &mut inherited)?;
        let admin = listeners
            .admin()
            .and_then(|admin| admin.socket.local_addr().ok());
        let (snapshot, addresses) = (live.current.load(), listeners.addresses());
        let summary = StartupSummary::new(&snapshot, host.as_deref(), addresses, admin, warnings);
        drop(snapshot);
        let drain = DrainTrigger::default();
        let cores = cores::start(workers, &live, &listeners, &drain);
        let cores = cores.with_context(|| {
            format!(
                "cannot start {workers} workers: lower `server.workers`, or raise the limits of the \
                 service (LimitNOFILE, TasksMax)"
            )
        })?;
        let saver = SnapshotSaver::start(live.clone(), path);
        let monitor = UpstreamMonitor::start(live.clone());
        let ticker = ActivityTicker::start(live.clone(), listeners.gate.clone());
        Ok(Self {
            reloader: Arc::new(Reloader::new(live.clone(), listeners.clone(), config)),
            live,
            listeners,
            drain,
            cores,
            saver: Arc::new(saver.context("cannot start a thread")?),
            monitor: monitor.context("cannot start a thread")?,
            ticker: ticker.context("cannot start a thread")?,
            receiver: inherited.receiver,
            pid_file,
            summary,
        })
    }

    /// Writes the PID file and notifies the previous process of a handover, if there is one, that it can stop. Must
    /// be called once all listeners and the admin port respond. Returns the PID file, which must be kept until the
    /// process ends.
    pub fn take_over(&mut self) -> io::Result<Option<PidFile>> {
        let mut pid_file = self.pid_file.take();
        if let Some(pid_file) = &mut pid_file {
            // Before the previous process can end, so that there always is a file.
            pid_file.publish()?;
        }
        if let Some(receiver) = self.receiver.take() {
            receiver.listens();
        }
        Ok(pid_file)
    }

    /// Returns the sender for a handover to a new process; see [`Gateway::stop_handed_over`].
    pub fn handover(&self) -> Arc<HandoverSender> {
        let (live, listeners) = (self.live.clone(), self.listeners.clone());
        Arc::new(HandoverSender::new(live, listeners, self.saver.clone()))
    }

    /// Returns what the gateway serves after its start.
    pub fn summary(&self) -> &StartupSummary {
        &self.summary
    }

    /// Returns the addresses of the listeners, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses()
    }

    /// Returns a watch on the admin port's socket. `None` while there is no admin port.
    pub fn admin(&self) -> watch::Receiver<Option<Arc<AdminListener>>> {
        self.listeners.follow_admin()
    }

    /// Returns the limit on open connections, which counts them.
    pub fn connections(&self) -> ConnectionLimit {
        self.listeners.gate.clone()
    }

    /// Returns the state that all cores share.
    pub fn live(&self) -> &Arc<RunningGateway> {
        &self.live
    }

    /// Returns the reloader of the configuration.
    pub fn reloader(&self) -> &Arc<Reloader> {
        &self.reloader
    }

    /// Returns the trigger that ends a drain early, with [`DrainTrigger::cut`].
    pub fn drain(&self) -> DrainTrigger {
        self.drain.clone()
    }

    /// Stops accepting connections and waits at most `drain_timeout` until the open ones have ended.
    pub fn stop(self) {
        self.listeners.close();
        self.drain.start();
        self.end();
    }

    /// Stops a gateway after a handover. The new process accepts the queued connections and has the admin port
    /// and the counter snapshot.
    pub fn stop_handed_over(self) {
        self.saver.suspend();
        self.drain.hand_over();
        self.listeners.close();
        self.listeners.close_admin();
        self.end();
    }

    fn end(self) {
        for core in self.cores {
            if core.join().is_err() {
                error!("a worker panicked");
            }
        }
        self.monitor.stop();
        self.ticker.stop();
        self.saver.stop();
        if let Some(access) = &self.live.current.load().access {
            access.sink().flush(FLUSH_TIMEOUT);
        }
        self.live.process.log.flush(FLUSH_TIMEOUT);
    }
}

// === impl Startup ===

impl Startup {
    /// Reads and compiles the configuration without opening anything. `secret` is used if the configuration
    /// has none.
    fn load(
        config: &Path,
        clock: Clock,
        log: LogHandle,
        secret: Option<[u8; 32]>,
    ) -> anyhow::Result<Self> {
        let mut config = LoadedConfig::read(config)?;
        // If the file has errors, a missing log setting may be one of them.
        if !(config.diagnostics.has_errors() && log.is_json()) {
            let written = &config.file.log;
            log.configure(written.level.value, written.format.value);
        }
        let mut blueprint = config.compile(clock.now(), None)?;
        let settings = config.startup_settings();
        let mut process = ProcessState::new(clock, log, settings.bounds)?;
        let configured = blueprint
            .credentials
            .secrets
            .as_ref()
            .map(|ring| *ring.first());
        if let Some(secret) = configured.or(secret) {
            process = process.with_secret(secret);
        }
        if let Some(shared) = blueprint.shared_store.take() {
            process = process.with_shared_store(shared);
        }
        tls::warm_up()?;
        Ok(Self {
            process,
            settings,
            blueprint,
            config,
        })
    }

    fn claim_pid_file(
        &mut self,
        inherited: &InheritedSockets,
    ) -> Result<Option<PidFile>, RejectedConfig> {
        let predecessor = inherited.receiver.as_ref().map(|_| parent_id());
        self.config.claim_pid_file(&self.settings, predecessor)
    }

    fn workers(&self) -> usize {
        match self.settings.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        }
    }

    /// Opens and installs the resources of the configuration and restores the counters.
    fn install(
        mut self,
        listeners: &ListenerSet,
        inherited: &mut InheritedSockets,
    ) -> anyhow::Result<Arc<RunningGateway>> {
        let process = &self.process;
        let opened = self
            .config
            .open(&self.blueprint, process, listeners, inherited, None)?;
        for address in inherited.unclaimed() {
            warn!(%address, "closed an inherited socket that no listener uses");
        }
        let snapshot = process.install(self.blueprint, opened.access, None);
        upstream_monitor::resolve_new(process, &snapshot);
        // Done late, so that few requests are counted by the old process after this.
        take_counters(
            &mut self.process,
            &self.settings,
            inherited.receiver.as_ref(),
        )?;
        let live = Arc::new(RunningGateway {
            current: Arc::new(ArcSwap::from_pointee(snapshot)),
            process: self.process,
        });
        live.log_warnings(&self.config.warnings());
        listeners.publish(opened.sockets, &live.current.load().listeners);
        Ok(live)
    }
}

/// Restores the counters from the old process of a handover or from the counter snapshot.
fn take_counters(
    process: &mut ProcessState,
    settings: &StartupSettings,
    receiver: Option<&HandoverReceiver>,
) -> anyhow::Result<()> {
    let counters = match receiver {
        Some(receiver) => receiver
            .counters()
            .context("the old process ended the handover")?,
        None => None,
    };
    let secret = settings.secret_file.as_deref();
    match (counters, &settings.snapshot) {
        (Some(file), _) => snapshot_saver::take(process, &file, secret),
        (None, Some(path)) => snapshot_saver::load(process, path, secret),
        (None, None) => {}
    }
    Ok(())
}

/// Returns the limit `max_connections`, capped at the number of connections for which the process has file
/// descriptors besides those of `workers` workers.
fn connection_limit(blueprint: &Blueprint, workers: usize) -> ConnectionLimit {
    let descriptors = listen::raise_descriptors();
    let most = listen::connections_for(descriptors, workers, blueprint.listeners.len());
    let limit = ConnectionLimit::new(blueprint.connections.max).capped(most);
    warn_of_few_descriptors(blueprint.connections, &limit);
    limit
}

/// Warns if the process has too few file descriptors for the `max_connections` that the file asks for.
fn warn_of_few_descriptors(requested: RequestedConnections, limit: &ConnectionLimit) {
    if !requested.is_default && requested.max > limit.limit() {
        warn!(
            max_connections = requested.max,
            connections = limit.limit(),
            descriptors = listen::raise_descriptors(),
            "too few file descriptors for server.max_connections"
        );
    }
}
