//! A running gateway: its threads, its reload and its end.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::runtime::{Builder, LocalRuntime};

use self::keeper::Keeper;
use crate::clock::Clock;
use crate::config::{self, Diagnostics, Source};
use crate::listen::{self, Deadlines, Drain, DrainTrigger, Gate};
use crate::observe::Log;
use crate::pipeline::{self, Core};
use crate::snapshot::{Lasting, Live, Snapshot};
use crate::tls;
use crate::upstream::Pool;

mod keeper;
mod lasting;

/// How often a core looks after its idle origin connections.
const PRUNE: Duration = Duration::from_secs(5);

/// A running gateway.
pub struct Gateway {
    live: Arc<Live>,
    config: PathBuf,
    addresses: Vec<SocketAddr>,
    drain: DrainTrigger,
    cores: Vec<JoinHandle<()>>,
    keeper: Option<Keeper>,
}

/// Why a configuration cannot be used: the text for people.
#[derive(Debug)]
pub struct Refused(pub String);

/// A configuration file, loaded.
struct Loaded {
    snapshot: Snapshot,
    warnings: String,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway on the configuration at `config`: listening when this returns.
    pub fn start(config: &Path, clock: Clock, log: Log) -> anyhow::Result<Self> {
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(config, &mut diagnostics);
        let refused = |diagnostics: &Diagnostics| Refused(diagnostics.render(&source, false));
        let Some(file) = file else {
            return Err(refused(&diagnostics).into());
        };
        let (level, format) = config::log(&file);
        log.configure(level, format);
        let fixed = config::fixed(&file, &source);
        let mut lasting = Lasting::new(clock, log, fixed.bounds)?;
        if let Some(secret) = fixed.secret_file.as_deref().and_then(config::secret) {
            lasting = lasting.with_secret(secret);
        }
        let loaded = Loaded::compile(&source, &file, &lasting, None, &mut diagnostics);
        let loaded = loaded.ok_or_else(|| refused(&diagnostics))?;
        if let Some(path) = &fixed.snapshot {
            keeper::load(&mut lasting, path);
        }
        tls::warm_up()?;
        let live = Arc::new(Live {
            current: Arc::new(ArcSwap::from_pointee(loaded.snapshot)),
            lasting,
        });
        live.tell_warnings(&loaded.warnings);
        let mut gateway = Self {
            live,
            config: config.to_owned(),
            addresses: Vec::new(),
            drain: DrainTrigger::new(),
            cores: Vec::new(),
            keeper: None,
        };
        gateway.open(match fixed.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        })?;
        if let Some(path) = &fixed.snapshot {
            let keeper = Keeper::start(gateway.live.clone(), path);
            gateway.keeper = Some(keeper.context("cannot start a thread")?);
        }
        Ok(gateway)
    }

    /// Where it listens, in the order of the configuration.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What all its cores share.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Reads the configuration again: see [`Live::reload`].
    pub fn reload(&self) -> Result<(), Refused> {
        self.live.reload(&self.config)
    }

    /// Takes no more connections and waits until the open ones have ended, for as long as the
    /// configuration allows.
    pub fn stop(self) {
        self.drain.start();
        for core in self.cores {
            if core.join().is_err() {
                self.live.lasting.log.error("a core had panicked", &[]);
            }
        }
        if let Some(keeper) = self.keeper {
            keeper.stop();
        }
        self.live.flush();
    }

    /// Binds every listener once a core and starts the cores.
    fn open(&mut self, workers: usize) -> anyhow::Result<()> {
        let snapshot = self.live.current.load_full();
        let gate = Gate::new(snapshot.fixed.max_connections);
        let mut sockets: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        for listener in &snapshot.listeners {
            let mut address = listener.address;
            listen::must_be_free(address).with_context(|| format!("cannot listen on {address}"))?;
            for core in &mut sockets {
                let socket =
                    listen::bind(address).with_context(|| format!("cannot listen on {address}"))?;
                address = socket.local_addr()?;
                core.push(socket);
            }
            self.addresses.push(address);
        }
        for (number, sockets) in sockets.into_iter().enumerate() {
            let core = CoreThread {
                live: self.live.clone(),
                gate: gate.clone(),
                drain: self.drain.core(),
                sockets,
            };
            let thread = thread::Builder::new().name(format!("core-{number}"));
            self.cores.push(thread.spawn(move || core.run())?);
        }
        Ok(())
    }
}

/// What a core's thread starts with.
struct CoreThread {
    live: Arc<Live>,
    gate: Gate,
    drain: Drain,
    sockets: Vec<TcpListener>,
}

// === impl CoreThread ===

impl CoreThread {
    fn run(self) {
        let log = self.live.lasting.log.clone();
        let ran = local_runtime().and_then(|runtime| runtime.block_on(self.serve()));
        if let Err(error) = ran {
            log.error("core failed", &[("error", &error)]);
        }
    }

    async fn serve(self) -> io::Result<()> {
        let pool = Pool::new(self.live.lasting.clock.clone());
        let deadlines = Deadlines::spawn(self.drain.clone());
        let core = Core::new(self.live.clone(), self.drain.clone(), pool, deadlines);
        let core = Rc::new(core);
        for (listener, socket) in self.sockets.into_iter().enumerate() {
            let socket = tokio::net::TcpListener::from_std(socket)?;
            let core = core.clone();
            let accept = listen::accept_loop(
                socket,
                self.gate.clone(),
                self.drain.clone(),
                move |tcp, peer, permit| {
                    let core = core.clone();
                    tokio::task::spawn_local(pipeline::connection(
                        core, listener, tcp, peer, permit,
                    ));
                },
            );
            tokio::task::spawn_local(accept);
        }
        tokio::task::spawn_local(prune_forever(core.clone()));
        self.drain.started().await;
        let timeout = core.snapshot().drain_timeout;
        if tokio::time::timeout(timeout, self.drain.ended())
            .await
            .is_err()
        {
            let open = self.drain.open();
            let log = &self.live.lasting.log;
            log.warn("drain timed out", &[("connections", &open)]);
        }
        Ok(())
    }
}

async fn prune_forever(core: Rc<Core>) {
    let mut tick = tokio::time::interval(PRUNE);
    loop {
        tick.tick().await;
        let snapshot = core.snapshot();
        let servers: Vec<_> = snapshot.servers.iter().map(|(_, s)| s.clone()).collect();
        core.pool.retain(&servers);
        core.pool.prune();
    }
}

fn local_runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
}

// === impl Loaded ===

impl Loaded {
    fn compile(
        source: &Source,
        file: &config::file::File,
        lasting: &Lasting,
        previous: Option<&Snapshot>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let mut cx = config::Context {
            source,
            lasting,
            check_only: false,
            previous,
            diagnostics,
        };
        let snapshot = config::compile(file, &mut cx)?;
        let warnings = diagnostics.render(source, false);
        Some(Self { snapshot, warnings })
    }
}

// === impl Live ===

impl Live {
    /// Reads the configuration again and, if it is good, serves every later request under it. A
    /// bad one changes nothing. Reads files, however long that takes: not for a thread that serves.
    pub fn reload(&self, config: &Path) -> Result<(), Refused> {
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(config, &mut diagnostics);
        let current = self.current.load_full();
        let lasting = &self.lasting;
        let loaded = file.and_then(|file| {
            let previous = Some(&*current);
            let loaded = Loaded::compile(&source, &file, lasting, previous, &mut diagnostics)?;
            Some((loaded, config::log(&file)))
        });
        match loaded {
            Some((loaded, (level, format))) => {
                lasting.log.configure(level, format);
                self.replace(loaded.snapshot);
                self.tell_warnings(&loaded.warnings);
                Ok(())
            }
            None => {
                let refused = Refused(diagnostics.render(&source, false));
                self.refuse(config, &refused);
                Err(refused)
            }
        }
    }

    fn replace(&self, snapshot: Snapshot) {
        let identities = snapshot.rules.identities();
        self.keep_series(&snapshot);
        let rules = snapshot.rules.len();
        self.lasting.imitations.retain(|kind| snapshot.wants(kind));
        self.current.store(Arc::new(snapshot));
        for (rule, bans) in self
            .lasting
            .store
            .retire(&identities, self.lasting.clock.now())
        {
            let fields: [(&str, &dyn std::fmt::Display); 2] =
                [("rule", &rule), ("bans_ended", &bans)];
            self.lasting
                .log
                .info("rule starts afresh or is gone", &fields);
        }
        self.lasting.metrics.reloads.succeeded();
        self.lasting.log.info("reloaded", &[("rules", &rules)]);
    }

    /// Notes that `config` was refused: the configuration before stays.
    fn refuse(&self, config: &Path, refused: &Refused) {
        // What the refused file has registered goes again.
        let current = self.current.load();
        self.keep_series(&current);
        let lasting = &self.lasting;
        lasting
            .store
            .retire(&current.rules.identities(), lasting.clock.now());
        self.lasting.metrics.reloads.failed();
        let log = &self.lasting.log;
        log.error("reload refused", &[("file", &config.display())]);
        for line in refused.0.lines().filter(|line| line.contains(": error: ")) {
            log.error("configuration", &[("error", &line)]);
        }
    }

    fn keep_series(&self, snapshot: &Snapshot) {
        let metrics = &self.lasting.metrics;
        let rules: Vec<&str> = snapshot.rules.iter().map(|(_, rule)| &*rule.name).collect();
        metrics.keep_rules(&rules);
        let listeners: Vec<&str> = snapshot.listeners.iter().map(|l| &*l.label).collect();
        metrics.keep_listeners(&listeners);
        let servers: Vec<(&str, &str)> = snapshot
            .servers
            .iter()
            .map(|(upstream, server)| (&**upstream, &**server.label()))
            .collect();
        metrics.keep_upstreams(&servers);
    }

    fn tell_warnings(&self, warnings: &str) {
        for line in warnings.lines().filter(|line| line.contains(": warning: ")) {
            self.lasting
                .log
                .warn("configuration", &[("warning", &line)]);
        }
    }

    /// The metrics as text, those that are read off other parts included.
    pub fn scrape(&self) -> String {
        let snapshot = self.current.load();
        let (store, metrics) = (&self.lasting.store, &self.lasting.metrics);
        let keys = store.keys(self.lasting.clock.now());
        for ((_, rule), kit) in snapshot.rules.iter().zip(&snapshot.rule_kits) {
            let own = keys.iter().find(|(slot, _)| *slot == rule.id.slot);
            kit.metrics
                .keys
                .set(own.map_or(0, |(_, count)| *count as i64));
        }
        for (upstream, server) in &snapshot.servers {
            let gauge = metrics.upstream(upstream, server.label()).in_flight;
            gauge.set(server.in_flight() as i64);
        }
        metrics.set_held(self.lasting.held.load(Ordering::Relaxed));
        let evictions = store.evictions();
        metrics.set_evictions(evictions.counters, evictions.bans);
        let access = snapshot
            .access
            .as_ref()
            .map_or(0, |access| access.sink().dropped());
        metrics.set_log_lines_dropped(access + self.lasting.log.dropped());
        metrics.encode()
    }

    fn flush(&self) {
        if let Some(access) = &self.current.load().access {
            access.sink().flush(Duration::from_secs(1));
        }
        self.lasting.log.flush(Duration::from_secs(1));
    }
}

// === impl Refused ===

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}
