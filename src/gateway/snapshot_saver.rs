//! Saves the counters to a file while a gateway runs, on a thread of its own, and restores them at
//! the start.

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

use crate::process::{Live, ProcessState};
use crate::store::Restored;
use crate::store::persist::{Damage, Hold, SnapshotFile, restore};

/// How long counters may be lost for when the machine fails.
const EVERY: Duration = Duration::from_secs(60);

/// Saves the counters at a path, or not at all.
pub(super) struct SnapshotSaver {
    live: Arc<Live>,
    path: Option<PathBuf>,
    running: Mutex<Option<SaverThread>>,
}

/// A thread that saves the store now and then.
struct SaverThread {
    stop: Sender<Ending>,
    thread: JoinHandle<()>,
}

/// How the thread ends.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// Another process keeps the file: it is left alone.
    Leave,
}

/// What the thread works with.
struct SaveLoop {
    live: Arc<Live>,
    file: SnapshotFile,
    /// `None`: another process keeps the file, or it cannot be written.
    hold: Option<Hold>,
    /// The last time it did not work, and that was said.
    failed: bool,
}

// === impl SnapshotSaver ===

impl SnapshotSaver {
    /// Saves the store at `path` from now on.
    pub(super) fn start(live: Arc<Live>, path: Option<PathBuf>) -> io::Result<Self> {
        let running = match &path {
            Some(path) => Some(SaverThread::start(live.clone(), path)?),
            None => None,
        };
        Ok(Self {
            live,
            path,
            running: Mutex::new(running),
        })
    }

    /// Leaves the file as it is from now on.
    pub(super) fn suspend(&self) {
        if let Some(thread) = self.running.lock().take() {
            thread.leave();
        }
    }

    /// Saves the store again, if it was.
    pub(super) fn resume(&self) {
        let mut running = self.running.lock();
        let Some(path) = self.path.as_deref().filter(|_| running.is_none()) else {
            return;
        };
        match SaverThread::start(self.live.clone(), path) {
            Ok(started) => *running = Some(started),
            Err(error) => {
                error!(%error, "cannot save the counters");
            }
        }
    }

    /// Saves the store a last time.
    pub(super) fn stop(&self) {
        if let Some(thread) = self.running.lock().take() {
            thread.stop();
        }
    }
}

// === impl SaverThread ===

impl SaverThread {
    fn start(live: Arc<Live>, path: &Path) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let file = SnapshotFile::new(path);
        let saving = SaveLoop {
            live,
            file,
            hold: None,
            failed: false,
        };
        let thread = thread::Builder::new().name("snapshot".to_owned());
        let thread = thread.spawn(move || saving.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    fn leave(self) {
        // It fails when the thread is gone, which is as good.
        let _ = self.stop.send(Ending::Leave);
        let _ = self.thread.join();
    }

    fn stop(self) {
        drop(self.stop);
        // A panic is on stderr already, and there is nothing left to save.
        let _ = self.thread.join();
    }
}

// === impl SaveLoop ===

impl SaveLoop {
    fn run(mut self, stopped: &Receiver<Ending>) {
        let found = self.hold().and_then(|()| self.file.probe());
        self.tell(found);
        loop {
            let stopped = stopped.recv_timeout(EVERY);
            if stopped == Ok(Ending::Leave) {
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
            let lasting = &self.live.lasting;
            let rules = lasting.rules.lock().rules();
            self.file.save(&lasting.store, &rules, lasting.clock.now())
        });
        self.tell(saved);
    }

    /// Keeps others from the file, from the first time that it can.
    fn hold(&mut self) -> io::Result<()> {
        if self.hold.is_none() {
            self.hold = Some(self.file.hold()?);
        }
        Ok(())
    }

    /// Says that it does not work once, and then that it works again.
    fn tell(&mut self, saved: io::Result<()>) {
        let file = self.file.path().display();
        match (&saved, self.failed) {
            (Err(error), false) => error!(%file, %error, "cannot save the counters"),
            (Ok(()), true) => info!(%file, "the counters can be saved again"),
            _ => {}
        }
        self.failed = saved.is_err();
    }
}

/// Takes over what was saved at `path` by the gateway before. `secret`: where the one is that the
/// store would have.
pub(super) fn load(lasting: &mut ProcessState, path: &Path, secret: Option<&Path>) {
    let now = lasting.clock.now();
    let rules = lasting.rules.get_mut().rules();
    let loaded = SnapshotFile::new(path).load(lasting.store_mut(), &rules, now);
    tell(&path.display(), secret, loaded);
}

/// Takes over what the gateway before has handed over.
pub(super) fn take(lasting: &mut ProcessState, file: &File, secret: Option<&Path>) {
    let now = lasting.clock.now();
    let rules = lasting.rules.get_mut().rules();
    let taken = restore(file, lasting.store_mut(), &rules, now);
    tell(&"handed over", secret, taken.map(Some));
}

fn tell(file: &dyn Display, secret: Option<&Path>, loaded: Result<Option<Restored>, Damage>) {
    match loaded {
        Ok(None) => info!(%file, "no saved counters"),
        Ok(Some(restored)) => {
            let (counters, bans) = (restored.counters, restored.bans);
            info!(%file, counters, bans, "restored");
            if let Some(secret) = secret.filter(|_| restored.other_secret) {
                let secret_file = secret.display();
                warn!(%file, %secret_file, "the store keeps the secret of its saved counters");
            }
            for (rule, bans_ended) in &restored.unknown {
                info!(%rule, bans_ended, "rule starts afresh or is gone");
            }
        }
        Err(error) => error!(%file, %error, "the saved counters are ignored"),
    }
}
