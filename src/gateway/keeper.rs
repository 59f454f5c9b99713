//! Keeps the store on disk while a gateway runs, on a thread of its own.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::observe::Field::{Number, Text};
use crate::snapshot::{Lasting, Live};
use crate::store::Restored;
use crate::store::persist::{Damage, Hold, SnapshotFile, restore};

/// How long counters may be lost for when the machine fails.
const EVERY: Duration = Duration::from_secs(60);

/// Keeps the store at a path, or nowhere.
pub(super) struct Keeping {
    live: Arc<Live>,
    path: Option<PathBuf>,
    keeper: Mutex<Option<Keeper>>,
}

/// A thread that saves the store now and then.
struct Keeper {
    stop: Sender<Ending>,
    thread: JoinHandle<()>,
}

/// How a keeper ends.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// Another process keeps the file: it is left alone.
    Leave,
}

/// What the thread works with.
struct Saving {
    live: Arc<Live>,
    file: SnapshotFile,
    /// `None`: another process keeps the file, or it cannot be written.
    hold: Option<Hold>,
    /// The last time it did not work, and that was said.
    failed: bool,
}

// === impl Keeping ===

impl Keeping {
    /// Saves the store at `path` from now on.
    pub(super) fn start(live: Arc<Live>, path: Option<PathBuf>) -> io::Result<Self> {
        let keeper = match &path {
            Some(path) => Some(Keeper::start(live.clone(), path)?),
            None => None,
        };
        Ok(Self {
            live,
            path,
            keeper: Mutex::new(keeper),
        })
    }

    /// Leaves the file as it is from now on.
    pub(super) fn suspend(&self) {
        if let Some(keeper) = self.keeper.lock().take() {
            keeper.leave();
        }
    }

    /// Saves the store again, if it was.
    pub(super) fn resume(&self) {
        let mut keeper = self.keeper.lock();
        let Some(path) = self.path.as_deref().filter(|_| keeper.is_none()) else {
            return;
        };
        match Keeper::start(self.live.clone(), path) {
            Ok(started) => *keeper = Some(started),
            Err(error) => {
                let log = &self.live.lasting.log;
                log.error("cannot save the counters", &[Text("error", &error)]);
            }
        }
    }

    /// Saves the store a last time.
    pub(super) fn stop(&self) {
        if let Some(keeper) = self.keeper.lock().take() {
            keeper.stop();
        }
    }
}

// === impl Keeper ===

impl Keeper {
    fn start(live: Arc<Live>, path: &Path) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let file = SnapshotFile::new(path);
        let saving = Saving {
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

// === impl Saving ===

impl Saving {
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
            let Lasting { clock, store, .. } = &self.live.lasting;
            self.file.save(store, clock.now())
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
        let (log, file) = (&self.live.lasting.log, self.file.path().display());
        match (&saved, self.failed) {
            (Err(error), false) => {
                let fields = [Text("file", &file), Text("error", error)];
                log.error("cannot save the counters", &fields);
            }
            (Ok(()), true) => log.info("the counters can be saved again", &[Text("file", &file)]),
            _ => {}
        }
        self.failed = saved.is_err();
    }
}

/// Takes over what was saved at `path` by the gateway before. `secret`: where the one is that the
/// store would have.
pub(super) fn load(lasting: &mut Lasting, path: &Path, secret: Option<&Path>) {
    let now = lasting.clock.now();
    let loaded = SnapshotFile::new(path).load(&mut lasting.store, now);
    tell(lasting, &path.display(), secret, loaded);
}

/// Takes over what the gateway before has handed over.
pub(super) fn take(lasting: &mut Lasting, file: &File, secret: Option<&Path>) {
    let now = lasting.clock.now();
    let taken = restore(file, &mut lasting.store, now);
    tell(lasting, &"handed over", secret, taken.map(Some));
}

fn tell(
    lasting: &Lasting,
    file: &dyn Display,
    secret: Option<&Path>,
    loaded: Result<Option<Restored>, Damage>,
) {
    let log = &lasting.log;
    match loaded {
        Ok(None) => log.info("no saved counters", &[Text("file", file)]),
        Ok(Some(restored)) => {
            let (counters, bans) = (restored.counters as u64, restored.bans as u64);
            log.info(
                "restored",
                &[
                    Text("file", file),
                    Number("counters", counters),
                    Number("bans", bans),
                ],
            );
            if let Some(secret) = secret.filter(|_| restored.other_secret) {
                let fields = [Text("file", file), Text("secret_file", &secret.display())];
                log.warn("the store keeps the secret of its saved counters", &fields);
            }
            for (rule, bans) in &restored.unknown {
                let fields = [Text("rule", rule), Number("bans_ended", *bans as u64)];
                log.info("rule starts afresh or is gone", &fields);
            }
        }
        Err(damage) => log.error(
            "the saved counters are ignored",
            &[Text("file", file), Text("error", &damage)],
        ),
    }
}
