//! A running gateway: its start, its parts and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::watch;

use self::doors::Doors;
use self::keeper::Keeper;
use self::reload::Loaded;
use crate::clock::Clock;
use crate::config::{self, Diagnostics};
use crate::listen::DrainTrigger;
use crate::observe::Log;
use crate::snapshot::{Fixed, Lasting, Live};
use crate::tls;

mod cores;
mod doors;
mod inherited;
mod keeper;
mod lasting;
mod reload;
mod room;
mod scrape;

pub use self::doors::AdminDoor;
pub use self::inherited::Inherited;
pub use self::reload::{Refused, Reloader};

/// A running gateway.
pub struct Gateway {
    live: Arc<Live>,
    doors: Arc<Doors>,
    reloader: Reloader,
    drain: DrainTrigger,
    cores: Vec<JoinHandle<()>>,
    keeper: Option<Keeper>,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway on the configuration at `config`: listening when this returns.
    pub fn start(config: &Path, clock: Clock, log: Log) -> anyhow::Result<Self> {
        Self::start_with(config, clock, log, Inherited::default())
    }

    /// The same with sockets that are open already.
    pub fn start_with(
        config: &Path,
        clock: Clock,
        log: Log,
        mut inherited: Inherited,
    ) -> anyhow::Result<Self> {
        let (live, fixed) = load(config, clock, log)?;
        let snapshot = live.current.load_full();
        let workers = match fixed.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        };
        let gate = room::gate(snapshot.max_connections, &live.lasting.log);
        let doors = Arc::new(Doors::new(workers, gate));
        let prepared = doors.prepare(&snapshot, &mut inherited)?;
        for address in inherited.unclaimed() {
            let log = &live.lasting.log;
            log.warn("no listener for a socket", &[("address", &address)]);
        }
        doors.publish(prepared);
        let drain = DrainTrigger::new();
        let cores =
            cores::start(workers, &live, &doors, &drain).context("cannot start a thread")?;
        let keeper = fixed.snapshot.as_deref();
        let keeper = keeper.map(|path| Keeper::start(live.clone(), path));
        Ok(Self {
            reloader: Reloader::new(live.clone(), doors.clone(), config),
            live,
            doors,
            drain,
            cores,
            keeper: keeper.transpose().context("cannot start a thread")?,
        })
    }

    /// Where it listens, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.doors.addresses()
    }

    /// The admin port's socket, if there is one, and each one after it.
    pub fn admin(&self) -> watch::Receiver<Option<Arc<AdminDoor>>> {
        self.doors.follow_admin()
    }

    /// What all its cores share.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// What reads its configuration again.
    pub fn reloader(&self) -> &Reloader {
        &self.reloader
    }

    /// Reads the configuration again: see [`Reloader::reload`].
    pub fn reload(&self) -> Result<(), Refused> {
        self.reloader.reload()
    }

    /// Takes no more connections and waits until the open ones have ended, for as long as the
    /// configuration allows.
    pub fn stop(self) {
        self.doors.close();
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
}

// === impl Live ===

impl Live {
    fn flush(&self) {
        if let Some(access) = &self.current.load().access {
            access.sink().flush(Duration::from_secs(1));
        }
        self.lasting.log.flush(Duration::from_secs(1));
    }
}

/// The configuration with all that outlives it, and nothing open yet.
fn load(config: &Path, clock: Clock, log: Log) -> anyhow::Result<(Arc<Live>, Fixed)> {
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
    Ok((live, fixed))
}
