//! Replaces the running configuration: reads and compiles the new file, opens its sockets and its access
//! log, and only then installs it. A rejected configuration has changed nothing, so nothing must be
//! undone.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{error, info, warn};

use super::inherited::InheritedSockets;
use super::listener_set::{BindError, ListenerSet, PreparedSockets, SocketChanges};
use super::snapshot_saver::log_retired;
use super::{upstream_monitor, warn_of_few_descriptors};
use crate::clock::Timestamp;
use crate::config::blueprint::Blueprint;
use crate::config::file::ConfigFile;
use crate::config::{self, ConfigSource, Diagnostics, LocatedError};
use crate::observe::AccessLog;
use crate::observe::activity::{Marker, MarkerKind};
use crate::process::{PidFile, ProcessState, RunningGateway};
use crate::snapshot::{Snapshot, StartupSettings};

/// Reloads the configuration of a gateway.
pub struct Reloader {
    live: Arc<RunningGateway>,
    listeners: Arc<ListenerSet>,
    config: PathBuf,
    /// Serializes reloads, because each one builds on the previous configuration.
    turn: Mutex<()>,
    history: Mutex<ReloadHistory>,
}

/// What requested a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadTrigger {
    /// The signal SIGHUP.
    Signal,
    /// The admin API.
    Api,
}

/// When the current configuration was loaded, and the last reload.
#[derive(Clone, Debug)]
pub struct ReloadHistory {
    /// When the gateway started to use the current configuration.
    pub loaded_at: Timestamp,
    /// The last reload. `None` before the first one.
    pub last: Option<ReloadOutcome>,
}

/// The outcome of a reload.
#[derive(Clone, Debug)]
pub struct ReloadOutcome {
    /// When it ended.
    pub at: Timestamp,
    /// What requested it.
    pub trigger: ReloadTrigger,
    /// Why the configuration was rejected. `None` after a success.
    pub rejected: Option<RejectedConfig>,
}

/// Why a configuration was rejected.
#[derive(Clone, Debug)]
pub struct RejectedConfig {
    /// The errors and warnings as text for people.
    pub text: String,
    /// The errors with their positions, in file order.
    pub errors: Vec<LocatedError>,
}

/// A configuration file that could be read but may have errors.
pub(super) struct LoadedConfig {
    source: ConfigSource,
    /// The settings as written.
    pub file: ConfigFile,
    /// The errors and warnings found so far.
    pub diagnostics: Diagnostics,
}

/// The open resources of a configuration.
pub(super) struct OpenedResources {
    pub sockets: PreparedSockets,
    pub access: Option<AccessLog>,
}

// === impl Reloader ===

impl Reloader {
    pub(super) fn new(
        live: Arc<RunningGateway>,
        listeners: Arc<ListenerSet>,
        config: &Path,
    ) -> Self {
        let history = ReloadHistory {
            loaded_at: live.process.clock.now(),
            last: None,
        };
        Self {
            live,
            listeners,
            config: config.to_owned(),
            turn: Mutex::default(),
            history: Mutex::new(history),
        }
    }

    /// Returns the path of the configuration file, as given at the start.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Returns when the current configuration was loaded, and the last reload.
    pub fn history(&self) -> ReloadHistory {
        self.history.lock().clone()
    }

    /// Reads the configuration and, if it is valid, uses it for every later request. Returns the number of rules. An
    /// invalid one changes nothing. Reopens the access log in both cases. Blocks on files, so it must not run on a thread that serves requests.
    pub fn reload(&self, trigger: ReloadTrigger) -> Result<usize, RejectedConfig> {
        let _turn = self.turn.lock();
        let installed = self.install();
        if let Err(refused) = &installed {
            // A rotated file is closed even if the configuration is broken.
            self.live.reopen_access_log();
            self.live.refuse(&self.config, refused);
        }
        self.remember(trigger, installed.as_ref().err());
        installed
    }

    fn remember(&self, trigger: ReloadTrigger, rejected: Option<&RejectedConfig>) {
        let at = self.live.process.clock.now();
        let mut history = self.history.lock();
        if rejected.is_none() {
            history.loaded_at = at;
        }
        history.last = Some(ReloadOutcome {
            at,
            trigger,
            rejected: rejected.cloned(),
        });
    }

    fn install(&self) -> Result<usize, RejectedConfig> {
        let process = &self.live.process;
        let current = self.live.current.load_full();
        let previous = Some(&*current);
        let mut file = LoadedConfig::read(&self.config)?;
        let blueprint = file.compile(process.clock.now(), previous)?;
        let inherited = &mut InheritedSockets::default();
        let opened = file.open(&blueprint, process, &self.listeners, inherited, previous)?;
        let log = &file.file.log;
        process.log.configure(log.level.value, log.format.value);
        self.listeners.gate.set_limit(blueprint.connections.max);
        warn_of_few_descriptors(blueprint.connections, &self.listeners.gate);
        let snapshot = Arc::new(process.install(blueprint, opened.access, previous));
        upstream_monitor::resolve_new(process, &snapshot);
        self.live.replace(snapshot.clone());
        let changes = self.listeners.publish(opened.sockets, &snapshot.listeners);
        self.live.log_listener_changes(&changes);
        self.live.log_warnings(&file.warnings());
        Ok(snapshot.rules.len())
    }
}

// === impl ReloadTrigger ===

impl ReloadTrigger {
    /// The name in the admin API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signal => "SIGHUP",
            Self::Api => "api",
        }
    }
}

// === impl LoadedConfig ===

impl LoadedConfig {
    /// Reads the file at `path` and its includes.
    pub fn read(path: &Path) -> Result<Self, RejectedConfig> {
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(path, &mut diagnostics);
        match file {
            Some(file) => Ok(Self {
                source,
                file,
                diagnostics,
            }),
            None => Err(RejectedConfig::new(&diagnostics, &source)),
        }
    }

    /// Compiles the configuration. `previous` is the snapshot that it will replace.
    pub fn compile(
        &mut self,
        now: Timestamp,
        previous: Option<&Snapshot>,
    ) -> Result<Blueprint, RejectedConfig> {
        let (file, source) = (&self.file, &self.source);
        let blueprint = config::compile(file, source, now, previous, &mut self.diagnostics);
        blueprint.ok_or_else(|| self.refused())
    }

    /// Opens the sockets and the access log of `blueprint`. Leaves open resources unchanged.
    pub fn open(
        &mut self,
        blueprint: &Blueprint,
        process: &ProcessState,
        listeners: &ListenerSet,
        inherited: &mut InheritedSockets,
        previous: Option<&Snapshot>,
    ) -> Result<OpenedResources, RejectedConfig> {
        let sockets = listeners.prepare(blueprint, inherited).map_err(|errors| {
            errors.iter().for_each(|error| self.report(error));
            self.refused()
        })?;
        let access = process.open_access_log(blueprint, previous);
        let access = access.map_err(|error| {
            let (log, diagnostics) = (&self.file.log, &mut self.diagnostics);
            config::report_unopened(&blueprint.access, &error, log, diagnostics);
            self.refused()
        })?;
        Ok(OpenedResources { sockets, access })
    }

    /// Locks the file of `server.pid_file`. `None` without one.
    pub fn claim_pid_file(
        &mut self,
        settings: &StartupSettings,
        predecessor: Option<u32>,
    ) -> Result<Option<PidFile>, RejectedConfig> {
        let path = settings.pid_file.as_deref();
        let claimed = path.map(|path| PidFile::claim(path, predecessor));
        claimed.transpose().map_err(|error| {
            let span = self.file.server.pid_file.span.clone();
            self.diagnostics
                .error(span, error.to_string())
                .help(error.cure());
            self.refused()
        })
    }

    /// Returns the warnings, as text for people.
    pub fn warnings(&self) -> String {
        self.diagnostics.render(&self.source, false)
    }

    /// Returns the settings that only a restart can change.
    pub fn startup_settings(&self) -> StartupSettings {
        config::startup_settings(&self.file, &self.source)
    }

    fn refused(&self) -> RejectedConfig {
        RejectedConfig::new(&self.diagnostics, &self.source)
    }

    /// Reports a socket that cannot be opened, at its setting in the file.
    fn report(&mut self, error: &BindError) {
        let span = self.span(error).unwrap_or_default();
        let reported = self.diagnostics.error(span, error.to_string());
        if let Some(cure) = error.cure() {
            reported.help(cure);
        }
    }

    fn span(&self, error: &BindError) -> Option<Range<usize>> {
        let address = match error.listener {
            Some(number) => &self.file.listeners.get(number)?.address,
            None => &self.file.admin.as_ref()?.address,
        };
        Some(address.span.clone())
    }
}

// === impl RunningGateway ===

impl RunningGateway {
    fn replace(&self, snapshot: Arc<Snapshot>) {
        let rules = snapshot.rules.len();
        let process = &self.process;
        self.current.store(snapshot.clone());
        for (rule, bans_ended) in process.retire_unused(&snapshot) {
            log_retired(&rule, bans_ended, &process.store);
        }
        process.metrics.reloads.succeeded();
        self.mark_reload(false, "reloaded", format!("{rules} rules"));
        info!(rules, "reloaded");
    }

    /// Records that `config` was rejected. The previous configuration stays.
    fn refuse(&self, config: &Path, refused: &RejectedConfig) {
        self.process.metrics.reloads.failed();
        error!(file = %config.display(), "reload refused");
        refused.log_errors();
        let first = refused.errors().next().unwrap_or_default();
        self.mark_reload(true, "reload refused", first.to_owned());
    }

    fn mark_reload(&self, bad: bool, label: &str, text: String) {
        self.process.activity.mark(Marker {
            ts: self.process.clock.now(),
            kind: MarkerKind::Reload,
            bad,
            label: label.to_owned(),
            text,
        });
    }

    /// Logs the addresses of new and removed listeners.
    fn log_listener_changes(&self, changed: &SocketChanges) {
        for address in &changed.opened {
            info!(%address, "listening");
        }
        for address in &changed.closed {
            info!(%address, "listener removed");
        }
        if let Some(address) = &changed.admin {
            info!(%address, "admin port");
        }
    }

    pub(super) fn log_warnings(&self, warnings: &str) {
        for line in warnings.lines().filter(|line| line.contains(": warning[")) {
            warn!(warning = line, "configuration");
        }
    }
}

// === impl RejectedConfig ===

impl RejectedConfig {
    fn new(diagnostics: &Diagnostics, source: &ConfigSource) -> Self {
        Self {
            text: diagnostics.render(source, false),
            errors: diagnostics.located_errors(source),
        }
    }

    /// Logs each error on its own line.
    pub fn log_errors(&self) {
        for line in self.errors() {
            error!(error = line, "configuration");
        }
    }

    /// Returns the first line of each error.
    fn errors(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| line.contains(": error: "))
    }
}

impl fmt::Display for RejectedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RejectedConfig {}
