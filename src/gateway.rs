//! A running gateway: its start, its parts and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::watch;

use self::doors::{Doors, Unbound};
use self::keeper::Keeping;
use self::lookout::Lookout;
use self::reload::Loaded;
use crate::clock::Clock;
use crate::config::file::File;
use crate::config::{self, Diagnostics, Source};
use crate::listen::DrainTrigger;
use crate::observe::Field::Text;
use crate::observe::Log;
use crate::snapshot::{Fixed, Lasting, Live};
use crate::tls;

mod cores;
mod doors;
mod handover;
mod inherited;
mod keeper;
mod lasting;
mod lookout;
mod reload;
mod room;
mod scrape;
mod servers;

pub use self::doors::AdminDoor;
pub use self::handover::{Handover, Heir, Program};
pub use self::inherited::Inherited;
pub use self::reload::{Refused, Reloader};

/// A running gateway.
pub struct Gateway {
    live: Arc<Live>,
    doors: Arc<Doors>,
    reloader: Reloader,
    drain: DrainTrigger,
    cores: Vec<JoinHandle<()>>,
    keeping: Arc<Keeping>,
    lookout: Lookout,
    heir: Option<Heir>,
}

/// A gateway that nobody can reach yet.
struct Unborn {
    lasting: Lasting,
    loaded: Loaded,
    fixed: Fixed,
    /// As written, to say where a socket that cannot be had is asked for.
    source: Source,
    file: File,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway on the configuration at `config`: listening when this returns.
    pub fn start(config: &Path, clock: Clock, log: Log) -> anyhow::Result<Self> {
        Self::start_with(config, clock, log, Inherited::default())
    }

    /// The same with what this process was given. See [`Gateway::take_over`].
    pub fn start_with(
        config: &Path,
        clock: Clock,
        log: Log,
        mut inherited: Inherited,
    ) -> anyhow::Result<Self> {
        let mut unborn = Unborn::load(config, clock, log, inherited.secret)?;
        if let Some(keys) = &inherited.tickets {
            unborn.lasting.tickets.load(keys);
        }
        let (snapshot, workers) = (&unborn.loaded.snapshot, unborn.workers());
        lookout::look_up_new(&unborn.lasting, snapshot);
        let gate = room::gate(snapshot, workers, &unborn.lasting.log);
        let doors = Arc::new(Doors::new(workers, gate));
        let prepared = doors.prepare(snapshot, &mut inherited);
        let prepared = prepared.map_err(|unbound| unborn.refuse(&unbound))?;
        for address in inherited.unclaimed() {
            let log = &unborn.lasting.log;
            log.warn("no listener for a socket", &[Text("address", &address)]);
        }
        // Late, so that little is counted between this and the first request.
        unborn.count_on(inherited.heir.as_ref())?;
        let path = unborn.fixed.snapshot.clone();
        let live = unborn.live();
        doors.publish(prepared);
        let drain = DrainTrigger::new();
        let cores = cores::start(workers, &live, &doors, &drain);
        let cores = cores.with_context(|| {
            format!(
                "cannot start {workers} workers: lower `server.workers`, or raise the limits of the \
                 service (LimitNOFILE, TasksMax)"
            )
        })?;
        let keeping = Keeping::start(live.clone(), path);
        let lookout = Lookout::start(live.clone());
        Ok(Self {
            reloader: Reloader::new(live.clone(), doors.clone(), config),
            live,
            doors,
            drain,
            cores,
            keeping: Arc::new(keeping.context("cannot start a thread")?),
            lookout: lookout.context("cannot start a thread")?,
            heir: inherited.heir,
        })
    }

    /// Tells the gateway before this one, if there is one, that it can go. To be called once all
    /// that answers does.
    pub fn take_over(&mut self) {
        if let Some(heir) = self.heir.take() {
            heir.listens();
        }
    }

    /// What hands it over to another process; see [`Gateway::stop_handed_over`].
    pub fn handover(&self) -> Handover {
        let (live, doors) = (self.live.clone(), self.doors.clone());
        Handover::new(live, doors, self.keeping.clone())
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

    /// What ends a stop before its time, with [`DrainTrigger::cut`].
    pub fn drain(&self) -> DrainTrigger {
        self.drain.clone()
    }

    /// Takes no more connections and waits until the open ones have ended, for as long as the
    /// configuration allows.
    pub fn stop(self) {
        self.doors.close();
        self.drain.start();
        self.end();
    }

    /// The same for a gateway whose sockets another process has: what waits in their queues is left
    /// to that one, and so are the admin port and the saved counters.
    pub fn stop_handed_over(self) {
        self.keeping.suspend();
        self.drain.hand_over();
        self.doors.close();
        self.doors.close_admin();
        self.end();
    }

    fn end(self) {
        for core in self.cores {
            if core.join().is_err() {
                self.live.lasting.log.error("a core had panicked", &[]);
            }
        }
        self.lookout.stop();
        self.keeping.stop();
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

// === impl Unborn ===

impl Unborn {
    /// Reads the configuration and what it names, and opens nothing. `secret`: the one to use where
    /// the configuration has none.
    fn load(
        config: &Path,
        clock: Clock,
        log: Log,
        secret: Option<[u8; 32]>,
    ) -> anyhow::Result<Self> {
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(config, &mut diagnostics);
        let refused = |diagnostics: &Diagnostics| Refused(diagnostics.render(&source, false));
        let Some(file) = file else {
            return Err(refused(&diagnostics).into());
        };
        let (level, format) = config::log(&file);
        // Where there are mistakes, what the file does not say may be one of them.
        if !(diagnostics.has_errors() && log.is_json()) {
            log.configure(level, format);
        }
        let fixed = config::fixed(&file, &source);
        let mut lasting = Lasting::new(clock, log, fixed.bounds)?;
        let configured = fixed.secret_file.as_deref().and_then(config::secret);
        if let Some(secret) = configured.or(secret) {
            lasting = lasting.with_secret(secret);
        }
        let loaded = Loaded::compile(&source, &file, &lasting, None, &mut diagnostics);
        let loaded = loaded.ok_or_else(|| refused(&diagnostics))?;
        tls::warm_up()?;
        Ok(Self {
            lasting,
            loaded,
            fixed,
            source,
            file,
        })
    }

    /// Why nobody can reach it.
    fn refuse(&self, unbound: &[Unbound]) -> Refused {
        let mut diagnostics = Diagnostics::new();
        reload::tell_unbound(&self.file, unbound, &mut diagnostics);
        Refused(diagnostics.render(&self.source, false))
    }

    fn workers(&self) -> usize {
        match self.fixed.workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        }
    }

    /// Takes the counters over, from the gateway before or from the file that it has left.
    fn count_on(&mut self, heir: Option<&Heir>) -> anyhow::Result<()> {
        let counters = match heir {
            Some(heir) => heir
                .counters()
                .context("the process before does not hand over any more")?,
            None => None,
        };
        let secret = self.fixed.secret_file.as_deref();
        match (counters, &self.fixed.snapshot) {
            (Some(file), _) => keeper::take(&mut self.lasting, &file, secret),
            (None, Some(path)) => keeper::load(&mut self.lasting, path, secret),
            (None, None) => {}
        }
        Ok(())
    }

    fn live(self) -> Arc<Live> {
        let live = Arc::new(Live {
            current: Arc::new(ArcSwap::from_pointee(self.loaded.snapshot)),
            lasting: self.lasting,
        });
        live.tell_warnings(&self.loaded.warnings);
        live
    }
}
