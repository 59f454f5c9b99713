//! The old process's side of a handover: starts the new process, passes all sockets and state to it, and
//! returns whether the old process may stop.

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

/// The buffer size for writing the counters.
const PIECE: usize = 256 << 10;
/// The interval and the maximum number of checks whether the new process has ended.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 300;
const CANCELLED: &str = "this process received a stop signal before the new process was serving";

/// Hands a gateway over to a new process.
pub struct HandoverSender {
    live: Arc<RunningGateway>,
    listeners: Arc<ListenerSet>,
    saver: Arc<SnapshotSaver>,
    progress: Mutex<HandoverProgress>,
}

/// The progress of a handover, so that it can be cancelled.
#[derive(Default)]
struct HandoverProgress {
    child: Option<Child>,
    /// The old process's end of the socket.
    wire: Option<UnixStream>,
    /// Whether the message that starts the new process's serving was sent.
    go_ahead_sent: bool,
    cancelled: bool,
}

/// The variables of systemd's sockets, which are handed over with all others.
const OF_SYSTEMD: [&str; 3] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// The command that started this process.
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

    /// Starts `program` and hands over to it. Returns its process id once it listens. Calls `announce` before
    /// the new process continues. After an error, the old process is unchanged. Blocks on files and processes,
    /// so it must not run on a thread that serves requests.
    pub fn run(&self, program: &StartCommand, announce: impl FnOnce(u32)) -> anyhow::Result<u32> {
        if std::process::id() == 1 {
            bail!("this is the first process of a container, and the container would end with it");
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

    /// Cancels a running handover, so that [`HandoverSender::run`] returns an error. Has no effect once the new
    /// process may serve, because it may already have received requests.
    pub fn cancel(&self) {
        let mut progress = self.progress.lock();
        if !progress.go_ahead_sent {
            progress.end();
        }
    }

    /// Cancels a handover even if the new process may already serve but has not confirmed it.
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
            .start(theirs, self.live.process.log.is_json())
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
        wire.send(&self.live.process.secret)?;
        wire.send_message(TICKETS)?;
        wire.send(self.live.process.tickets.save().bytes())?;
        wire.send_message(END)?;
        wire.expect(PREPARED)?;
        // From here on, the new process owns the counter snapshot.
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
        // The new process already listens, so an error does not matter.
        let _ = wire.send_message(FAREWELL);
        Ok(())
    }

    /// Sends the message that starts the new process's serving, unless the handover was cancelled.
    fn send_go(&self, word: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut progress = self.progress.lock();
        if progress.cancelled {
            return Err(io::Error::other(CANCELLED));
        }
        progress.go_ahead_sent = true;
        word()
    }

    /// Ends the new process and returns the error of the handover.
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

    /// Writes the counters to an anonymous file in memory.
    fn counters(&self) -> io::Result<File> {
        let file = File::from(memfd_create("lockgate-counters", MemfdFlags::CLOEXEC)?);
        let process = &self.live.process;
        let out = BufWriter::with_capacity(PIECE, file);
        let (rules, now) = (process.rules.lock().rules(), process.clock.now());
        Ok(process.store.save(out, &rules, now)?.into_inner()?)
    }
}

// === impl HandoverProgress ===

impl HandoverProgress {
    fn end(&mut self) {
        self.cancelled = true;
        // Both calls fail if the process has ended. The thread in `run` reaps it, and does not wait for child
        // processes of the new process.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
        if let Some(wire) = &self.wire {
            let _ = wire.shutdown(Shutdown::Both);
        }
    }
}

/// Returns the reason for a failed handover, and ends the new process.
fn reason(mut child: Child, error: &io::Error) -> anyhow::Error {
    // The error kind depends on how much of the sent data the new process had read.
    let gone = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    let status = gone.then(|| ending(&mut child)).flatten();
    end(&mut child);
    match (error.kind(), status) {
        (_, Some(status)) => {
            anyhow!("the new process ended with {status}: its own message gives the reason")
        }
        (io::ErrorKind::WouldBlock, None) => anyhow!("the new process was not ready in time"),
        (_, None) => anyhow!("the connection to the new process failed: {error}"),
    }
}

/// Ends and reaps a process. One that has already ended keeps its exit code.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the exit status of a process that has closed its socket. `None` if it does not end soon.
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
    /// Returns the command of this process. Must be called at the start, because the file may change later.
    pub fn own() -> io::Result<Self> {
        let mut arguments = env::args_os();
        let called = arguments.next().map(PathBuf::from);
        Ok(Self {
            path: path(called.as_deref())?,
            arguments: arguments.collect(),
        })
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the program with `wire` as its standard input. `json` is set if its log must be JSON.
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

/// Returns the path as written in the command, so that a changed link is followed. A name without a path
/// was found in `PATH`, which may have changed.
fn path(called: Option<&Path>) -> io::Result<PathBuf> {
    match called {
        Some(path) if path.components().count() > 1 => {
            let absolute = env::current_dir()?.join(path);
            if absolute.is_file() {
                Ok(absolute)
            } else {
                env::current_exe()
            }
        }
        _ => env::current_exe(),
    }
}
