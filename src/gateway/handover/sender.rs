//! The old process's side: it starts the new one, gives it everything, and knows in the end
//! whether it may go.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use tracing::error;

use super::{
    ADMIN, COUNTERS, END, FAREWELL, LISTENER, LISTENING, LOG, NO_COUNTERS, PREPARED, SECRET,
    TICKETS, VARIABLE, Wire,
};
use crate::gateway::listener_set::ListenerSet;
use crate::gateway::snapshot_saver::SnapshotSaver;
use crate::process::RunningGateway;

/// How much of the counters is written in one go.
const PIECE: usize = 256 << 10;
/// How often, and how many times, a process that is ending is looked at.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 300;
const CANCELLED: &str = "this process was told to stop before the new one served";

/// Hands a gateway over.
pub struct HandoverSender {
    live: Arc<RunningGateway>,
    listeners: Arc<ListenerSet>,
    saver: Arc<SnapshotSaver>,
    progress: Mutex<HandoverProgress>,
}

/// How far it is, so that it can be ended.
#[derive(Default)]
struct HandoverProgress {
    child: Option<Child>,
    /// Our end of what the two speak over.
    wire: Option<UnixStream>,
    /// The new process has been told to serve.
    told: bool,
    cancelled: bool,
}

/// Sockets of systemd, which are handed over with all others.
const OF_SYSTEMD: [&str; 3] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// How this process was started.
#[derive(Clone, Debug)]
pub struct StartCommand {
    path: PathBuf,
    arguments: Vec<OsString>,
}

// === impl HandoverSender ===

impl HandoverSender {
    pub(in crate::gateway) fn new(
        live: Arc<RunningGateway>,
        listeners: Arc<ListenerSet>,
        saver: Arc<SnapshotSaver>,
    ) -> Self {
        Self {
            live,
            listeners,
            saver,
            progress: Mutex::default(),
        }
    }

    /// Starts `program` and gives it everything; its process id once it listens. `announce` is told
    /// of it before it is told to go on. After an error all is as it was. Waits for files and
    /// processes: not for a thread that serves.
    pub fn run(&self, program: &StartCommand, announce: impl FnOnce(u32)) -> anyhow::Result<u32> {
        if std::process::id() == 1 {
            bail!("this is the first process of its container, which ends with it");
        }
        let (ours, theirs) = UnixStream::pair()?;
        let pid = self.start(program, ours.try_clone()?, theirs)?;
        let handed = Wire::new(ours).and_then(|wire| self.hand(&wire, || announce(pid)));
        let Err(error) = handed else {
            return Ok(pid);
        };
        let error = self.give_up(&error);
        self.saver.resume();
        Err(error)
    }

    /// Ends a handover that is under way: [`HandoverSender::run`] gives an error. It is too late once the
    /// new process has been told to serve, which does so at once: it may have requests by then.
    pub fn cancel(&self) {
        let mut progress = self.progress.lock();
        if !progress.told {
            progress.end();
        }
    }

    /// The same even if the new process has been told to serve: it has not said that it does.
    pub fn abandon(&self) {
        self.progress.lock().end();
    }

    fn start(
        &self,
        program: &StartCommand,
        ours: UnixStream,
        theirs: UnixStream,
    ) -> anyhow::Result<u32> {
        let mut progress = self.progress.lock();
        if progress.cancelled {
            bail!(CANCELLED);
        }
        let child = program
            .start(theirs, self.live.lasting.log.is_json())
            .with_context(|| format!("cannot start {}", program.path().display()))?;
        progress.wire = Some(ours);
        Ok(progress.child.insert(child).id())
    }

    fn hand(&self, wire: &Wire, announce: impl FnOnce()) -> io::Result<()> {
        self.listeners
            .each_socket(|socket| wire.give(LISTENER, socket))?;
        if let Some(admin) = self.listeners.admin() {
            wire.give(ADMIN, &admin.socket)?;
        }
        wire.send_message(SECRET)?;
        wire.send(&self.live.lasting.secret)?;
        wire.send_message(TICKETS)?;
        wire.send(self.live.lasting.tickets.save().bytes())?;
        wire.send_message(END)?;
        wire.expect(PREPARED)?;
        // From here on the file is the other's.
        self.saver.suspend();
        let counters = self.counters();
        if let Err(error) = &counters {
            error!(%error, "cannot hand over the counters");
        }
        self.send_go(|| match &counters {
            Ok(file) => wire.give(COUNTERS, file),
            Err(_) => wire.send_message(NO_COUNTERS),
        })?;
        wire.expect(LISTENING)?;
        announce();
        // It listens: what it does not hear it does not need.
        let _ = wire.send_message(FAREWELL);
        Ok(())
    }

    /// Says the word after which the new process serves, unless that is not wanted any more.
    fn send_go(&self, word: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut progress = self.progress.lock();
        if progress.cancelled {
            return Err(io::Error::other(CANCELLED));
        }
        progress.told = true;
        word()
    }

    /// Ends the new process; why it did not work.
    fn give_up(&self, error: &io::Error) -> anyhow::Error {
        let (child, cancelled) = {
            let mut progress = self.progress.lock();
            (progress.child.take(), progress.cancelled)
        };
        match child {
            Some(mut child) if cancelled => {
                end(&mut child);
                anyhow!(CANCELLED)
            }
            Some(child) => reason(child, error),
            None => anyhow!("{error}"),
        }
    }

    /// The store, in a file that has no name.
    fn counters(&self) -> io::Result<File> {
        let file = File::from(memfd_create("lockgate-counters", MemfdFlags::CLOEXEC)?);
        let lasting = &self.live.lasting;
        let out = BufWriter::with_capacity(PIECE, file);
        let (rules, now) = (lasting.rules.lock().rules(), lasting.clock.now());
        Ok(lasting.store.save(out, &rules, now)?.into_inner()?)
    }
}

// === impl HandoverProgress ===

impl HandoverProgress {
    fn end(&mut self) {
        self.cancelled = true;
        // They fail where the process is gone. Whoever waits for its word reaps it, and does not
        // wait for those that the process may have started itself.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
        if let Some(wire) = &self.wire {
            let _ = wire.shutdown(Shutdown::Both);
        }
    }
}

/// Why it did not work, with the new process gone.
fn reason(mut child: Child, error: &io::Error) -> anyhow::Error {
    // Which one it is depends on what it had read of what it was given.
    let gone = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    let status = gone.then(|| ending(&mut child)).flatten();
    end(&mut child);
    match (error.kind(), status) {
        (_, Some(status)) => {
            anyhow!("the new process ended with {status}: its own message says why")
        }
        (io::ErrorKind::WouldBlock, None) => anyhow!("the new process was not ready in time"),
        (_, None) => anyhow!("the new process was lost: {error}"),
    }
}

/// One that has ended keeps the code it has ended with, and nobody else waits for it.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// How a process ends that has closed its side, if it does so soon.
fn ending(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..LOOKS {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(LOOK);
    }
    None
}

// === impl StartCommand ===

impl StartCommand {
    /// To be asked at the start: later the file may be another or gone.
    pub fn own() -> io::Result<Self> {
        let mut arguments = env::args_os();
        let called = arguments.next().map(PathBuf::from);
        Ok(Self {
            path: path(called.as_deref())?,
            arguments: arguments.collect(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts it with `wire` as its standard input. `json`: what it says is read as JSON.
    fn start(&self, wire: UnixStream, json: bool) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env(VARIABLE, std::process::id().to_string())
            .env(LOG, if json { "json" } else { "text" })
            .stdin(Stdio::from(OwnedFd::from(wire)));
        for name in OF_SYSTEMD {
            command.env_remove(name);
        }
        command.spawn()
    }
}

/// The path as it was called: a link is followed anew. A name alone was found in `PATH`, which may
/// have changed.
fn path(called: Option<&Path>) -> io::Result<PathBuf> {
    match called {
        Some(path) if path.components().count() > 1 => {
            let absolute = env::current_dir()?.join(path);
            match absolute.is_file() {
                true => Ok(absolute),
                false => env::current_exe(),
            }
        }
        _ => env::current_exe(),
    }
}
