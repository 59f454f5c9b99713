//! This program, to be started once more: the same path, so that a new binary in its place is what
//! starts, and the same arguments.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{LOG, VARIABLE};

/// Sockets of systemd, which are handed over with all others.
const OF_SYSTEMD: [&str; 3] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// How this process was started.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

// === impl Program ===

impl Program {
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
    pub(super) fn start(&self, wire: UnixStream, json: bool) -> io::Result<Child> {
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
