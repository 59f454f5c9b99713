//! Another configuration in place of the one that runs: read, compiled, its sockets opened, and
//! only then put in force. What cannot be had refuses all of it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::doors::{Changed, Doors, Prepared, Unbound};
use super::inherited::Inherited;
use super::{lookout, servers};
use crate::config::{self, Diagnostics, Source};
use crate::observe::Field::{Number, Text};
use crate::observe::{Format, Level, Log};
use crate::snapshot::{Lasting, Live, Snapshot};

/// Reads the configuration of a gateway again. Clones do so in turn.
#[derive(Clone)]
pub struct Reloader(Arc<Inner>);

struct Inner {
    live: Arc<Live>,
    doors: Arc<Doors>,
    config: PathBuf,
    /// One at a time: each builds on the one before.
    turn: Mutex<()>,
}

/// Why a configuration cannot be used: the text for people.
#[derive(Debug)]
pub struct Refused(pub String);

/// A configuration file, loaded.
pub(super) struct Loaded {
    pub snapshot: Snapshot,
    pub warnings: String,
}

/// A configuration with all that it needs.
struct Ready {
    loaded: Loaded,
    prepared: Prepared,
    log: (Level, Format),
}

// === impl Reloader ===

impl Reloader {
    pub(super) fn new(live: Arc<Live>, doors: Arc<Doors>, config: &Path) -> Self {
        Self(Arc::new(Inner {
            live,
            doors,
            config: config.to_owned(),
            turn: Mutex::default(),
        }))
    }

    /// Reads the configuration again and, if it is good, serves every later request under it. A
    /// bad one changes nothing. Reads files, however long that takes: not for a thread that serves.
    pub fn reload(&self) -> Result<(), Refused> {
        let Inner {
            live, doors, turn, ..
        } = &*self.0;
        let _turn = turn.lock();
        match self.0.prepare() {
            Ok(ready) => {
                let (level, format) = ready.log;
                live.lasting.log.configure(level, format);
                doors.gate.set_limit(ready.loaded.snapshot.max_connections);
                lookout::look_up_new(&live.lasting, &ready.loaded.snapshot);
                live.replace(ready.loaded.snapshot);
                live.tell_doors(&doors.publish(ready.prepared));
                live.tell_warnings(&ready.loaded.warnings);
                Ok(())
            }
            Err(refused) => {
                live.refuse(&self.0.config, &refused);
                Err(refused)
            }
        }
    }
}

// === impl Inner ===

impl Inner {
    fn prepare(&self) -> Result<Ready, Refused> {
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(&self.config, &mut diagnostics);
        let ready = file.and_then(|file| self.ready(&source, &file, &mut diagnostics));
        ready.ok_or_else(|| Refused(diagnostics.render(&source, false)))
    }

    fn ready(
        &self,
        source: &Source,
        file: &config::file::File,
        diagnostics: &mut Diagnostics,
    ) -> Option<Ready> {
        let current = self.live.current.load_full();
        let lasting = &self.live.lasting;
        let loaded = Loaded::compile(source, file, lasting, Some(&current), diagnostics)?;
        let prepared = self
            .doors
            .prepare(&loaded.snapshot, &mut Inherited::default());
        match prepared {
            Ok(prepared) => Some(Ready {
                loaded,
                prepared,
                log: config::log(file),
            }),
            Err(unbound) => {
                tell_unbound(file, &unbound, diagnostics);
                None
            }
        }
    }
}

// === impl Loaded ===

impl Loaded {
    pub(super) fn compile(
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
    fn replace(&self, snapshot: Snapshot) {
        let identities = snapshot.rules.identities();
        self.keep_series(&snapshot);
        let rules = snapshot.rules.len();
        let lasting = &self.lasting;
        lasting.imitations.retain(|kind| snapshot.wants(kind));
        self.current.store(Arc::new(snapshot));
        let gone = lasting.store.retire(&identities, lasting.clock.now());
        for (rule, bans) in gone {
            let fields = [Text("rule", &rule), Number("bans_ended", bans as u64)];
            lasting.log.info("rule starts afresh or is gone", &fields);
        }
        lasting.metrics.reloads.succeeded();
        lasting
            .log
            .info("reloaded", &[Number("rules", rules as u64)]);
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
        log.error("reload refused", &[Text("file", &config.display())]);
        refused.tell(log);
    }

    fn keep_series(&self, snapshot: &Snapshot) {
        let metrics = &self.lasting.metrics;
        let rules: Vec<&str> = snapshot.rules.iter().map(|(_, rule)| &*rule.name).collect();
        metrics.keep_rules(&rules);
        let listeners: Vec<&str> = snapshot.listeners.iter().map(|l| &*l.label).collect();
        metrics.keep_listeners(&listeners);
        servers::keep_series(metrics, snapshot);
    }

    /// Says where the gateway listens now and did not before, and the reverse.
    pub(super) fn tell_doors(&self, changed: &Changed) {
        let log = &self.lasting.log;
        for address in &changed.opened {
            log.info("listening", &[Text("address", address)]);
        }
        for address in &changed.closed {
            log.info("listens no more", &[Text("address", address)]);
        }
        if let Some(address) = &changed.admin {
            log.info("admin port", &[Text("address", address)]);
        }
    }

    pub(super) fn tell_warnings(&self, warnings: &str) {
        for line in warnings.lines().filter(|line| line.contains(": warning: ")) {
            self.lasting
                .log
                .warn("configuration", &[Text("warning", &line)]);
        }
    }
}

// === impl Refused ===

impl Refused {
    /// Writes each mistake down, in a line.
    pub fn tell(&self, log: &Log) {
        for line in self.0.lines().filter(|line| line.contains(": error: ")) {
            log.error("configuration", &[Text("error", &line)]);
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Reports the sockets that cannot be had, where the file asks for them.
pub(super) fn tell_unbound(
    file: &config::file::File,
    unbound: &[Unbound],
    diagnostics: &mut Diagnostics,
) {
    for one in unbound {
        let span = place(file, one).unwrap_or_default();
        let error = diagnostics.error(span, one.to_string());
        if let Some(cure) = one.cure() {
            error.help(cure);
        }
    }
}

/// Where the file asks for the socket that cannot be had.
fn place(file: &config::file::File, unbound: &Unbound) -> Option<std::ops::Range<usize>> {
    let address = match unbound.listener {
        Some(number) => &file.listeners.get(number)?.address,
        None => &file.admin.as_ref()?.address,
    };
    Some(address.span.clone())
}
