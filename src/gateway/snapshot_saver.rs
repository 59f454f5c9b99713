//! Saves the counters to the counter snapshot file on its own thread, and restores them at the start.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::process::{ProcessState, RunningGateway};
use crate::store::persist::{FileLock, SnapshotError, SnapshotFile, restore};
use crate::store::{RestoreSummary, Store};

/// The interval between two saves, and the maximum loss of counters after a crash.
const EVERY: Duration = Duration::from_secs(60);

/// Saves the counters to a file, or does nothing without a path.
pub(super) struct SnapshotSaver {
    live: Arc<RunningGateway>,
    path: Option<PathBuf>,
    /// The saving thread. A message ends it without a save; dropping the sender saves a last time.
    running: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// The state of the saving thread.
struct SaveLoop {
    live: Arc<RunningGateway>,
    file: SnapshotFile,
    /// The lock on the file. `None` if another process holds it or the file cannot be written.
    hold: Option<FileLock>,
    /// Whether the last save failed, which was already logged.
    failed: bool,
}

// === impl SnapshotSaver ===

impl SnapshotSaver {
    /// Starts to save the counters at `path`. `None` for no counter snapshot.
    pub(super) fn start(live: Arc<RunningGateway>, path: Option<PathBuf>) -> io::Result<Self> {
        let running = Mutex::default();
        let saver = Self {
            live,
            path,
            running,
        };
        saver.spawn()?;
        Ok(saver)
    }

    /// Stops saving and leaves the file unchanged.
    pub(super) fn suspend(&self) {
        if let Some((stop, thread)) = self.running.lock().take() {
            // Both calls fail if the thread has panicked; it then saves nothing.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }

    /// Resumes saving after [`SnapshotSaver::suspend`].
    pub(super) fn resume(&self) {
        if let Err(error) = self.spawn() {
            error!(%error, "cannot save the counters");
        }
    }

    /// Saves the counters a last time.
    pub(super) fn stop(&self) {
        if let Some((stop, thread)) = self.running.lock().take() {
            drop(stop);
            // The panic was already written to stderr, and nothing is left to save.
            let _ = thread.join();
        }
    }

    fn spawn(&self) -> io::Result<()> {
        let mut running = self.running.lock();
        let Some(path) = self.path.as_deref().filter(|_| running.is_none()) else {
            return Ok(());
        };
        let saving = SaveLoop {
            live: self.live.clone(),
            file: SnapshotFile::new(path),
            hold: None,
            failed: false,
        };
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("snapshot".to_owned());
        *running = Some((stop, thread.spawn(move || saving.run(&stopped))?));
        Ok(())
    }
}

// === impl SaveLoop ===

impl SaveLoop {
    fn run(mut self, stopped: &Receiver<()>) {
        let found = self.hold().and_then(|()| self.file.probe());
        self.log_outcome(found);
        loop {
            let stopped = stopped.recv_timeout(EVERY);
            if stopped.is_ok() {
                return;
            }
            self.save();
            if stopped == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    fn save(&mut self) {
        let saved = self.hold().and_then(|()| {
            let process = &self.live.process;
            let rules = process.rules.lock().rules();
            self.file.save(&process.store, &rules, process.clock.now())
        });
        self.log_outcome(saved);
    }

    /// Locks the file if it is not locked yet.
    fn hold(&mut self) -> io::Result<()> {
        if self.hold.is_none() {
            self.hold = Some(self.file.hold()?);
        }
        Ok(())
    }

    /// Logs the first failure, and the first success after it.
    fn log_outcome(&mut self, saved: io::Result<()>) {
        let file = self.file.path().display();
        match (&saved, self.failed) {
            (Err(error), false) => error!(%file, %error, "cannot save the counters"),
            (Ok(()), true) => info!(%file, "counters are saved again"),
            _ => {}
        }
        self.failed = saved.is_err();
    }
}

/// Restores the counters saved at `path`. `secret` is the configured secret file, for a warning if it is unused.
pub(super) fn load(process: &mut ProcessState, path: &Path, secret: Option<&Path>) {
    let now = process.clock.now();
    let rules = process.rules.get_mut().rules();
    let loaded = SnapshotFile::new(path).load(process.store_mut(), &rules, now);
    log_outcome(&path.display(), &process.store, secret, loaded);
}

/// Restores the counters from the file of a handover.
pub(super) fn take(process: &mut ProcessState, file: &File, secret: Option<&Path>) {
    let now = process.clock.now();
    let rules = process.rules.get_mut().rules();
    let taken = restore(file, process.store_mut(), &rules, now);
    log_outcome(&"handover", &process.store, secret, taken.map(Some));
}

/// Logs that a rule has lost its counters and bans. Those in a shared store stay.
pub(super) fn log_retired(rule: &str, bans_ended: usize, store: &Store) {
    if store.is_local() {
        info!(%rule, bans_ended, "rule reset or removed");
    } else {
        info!(%rule, "rule reset or removed, its counters and bans stay in the shared store until they expire");
    }
}

fn log_outcome(
    file: &dyn Display,
    store: &Store,
    secret: Option<&Path>,
    loaded: Result<Option<RestoreSummary>, SnapshotError>,
) {
    match loaded {
        Ok(None) => info!(%file, "no saved counters"),
        Ok(Some(restored)) => {
            let (counters, bans) = (restored.counters, restored.bans);
            info!(%file, counters, bans, "counters restored");
            if let Some(secret) = secret.filter(|_| restored.other_secret) {
                let secret_file = secret.display();
                warn!(
                    %file, %secret_file,
                    "the store uses the secret of the saved counters, not secret_file"
                );
            }
            for (rule, bans_ended) in &restored.unknown {
                log_retired(rule, *bans_ended, store);
            }
        }
        Err(error) => error!(%file, %error, "saved counters ignored"),
    }
}
