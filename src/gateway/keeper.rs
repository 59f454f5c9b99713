//! Keeps the store on disk while a gateway runs, on a thread of its own.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::snapshot::{Lasting, Live};
use crate::store::persist::SnapshotFile;

/// How long counters may be lost for when the machine fails.
const EVERY: Duration = Duration::from_secs(60);

/// A thread that saves the store now and then.
pub(super) struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// What the thread works with.
struct Saving {
    live: Arc<Live>,
    file: SnapshotFile,
    /// The last time it did not work, and that was said.
    failed: bool,
}

// === impl Keeper ===

impl Keeper {
    /// Saves the store at `path` from now on.
    pub(super) fn start(live: Arc<Live>, path: &Path) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let file = SnapshotFile::new(path);
        let saving = Saving {
            live,
            file,
            failed: false,
        };
        let thread = thread::Builder::new().name("snapshot".to_owned());
        let thread = thread.spawn(move || saving.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Saves the store a last time.
    pub(super) fn stop(self) {
        drop(self.stop);
        // A panic is on stderr already, and there is nothing left to save.
        let _ = self.thread.join();
    }
}

// === impl Saving ===

impl Saving {
    fn run(mut self, stopped: &Receiver<()>) {
        self.tell(self.file.probe());
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            self.save();
        }
        self.save();
    }

    fn save(&mut self) {
        let Lasting { clock, store, .. } = &self.live.lasting;
        self.tell(self.file.save(store, clock.now()));
    }

    /// Says that it does not work once, and then that it works again.
    fn tell(&mut self, saved: io::Result<()>) {
        let (log, file) = (&self.live.lasting.log, self.file.path().display());
        match (&saved, self.failed) {
            (Err(error), false) => {
                let fields: [(&str, &dyn Display); 2] = [("file", &file), ("error", error)];
                log.error("cannot save the counters", &fields);
            }
            (Ok(()), true) => log.info("the counters can be saved again", &[("file", &file)]),
            _ => {}
        }
        self.failed = saved.is_err();
    }
}

/// Takes over what was saved at `path` by the gateway before.
pub(super) fn load(lasting: &mut Lasting, path: &Path) {
    let now = lasting.clock.now();
    let loaded = SnapshotFile::new(path).load(&mut lasting.store, now);
    let (log, file) = (&lasting.log, path.display());
    match loaded {
        Ok(None) => log.info("no saved counters", &[("file", &file)]),
        Ok(Some(restored)) => {
            let (counters, bans) = (restored.counters, restored.bans);
            log.info(
                "restored",
                &[("file", &file), ("counters", &counters), ("bans", &bans)],
            );
            for (rule, bans) in &restored.unknown {
                let fields: [(&str, &dyn Display); 2] = [("rule", rule), ("bans_ended", bans)];
                log.info("rule starts afresh or is gone", &fields);
            }
        }
        Err(damage) => log.error(
            "the saved counters are ignored",
            &[("file", &file), ("error", &damage)],
        ),
    }
}
