//! The new process's side: what it was given, and the word that it serves.

use std::env;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;

use anyhow::Context as _;

use super::{
    ADMIN, COUNTERS, END, FAREWELL, LISTENER, LISTENING, LOG, NO_COUNTERS, PREPARED, SECRET,
    TICKETS, VARIABLE, Wire, nonsense,
};
use crate::gateway::Inherited;
use crate::listen;
use crate::observe::Field::Text;
use crate::observe::{Format, Level, Log};
use crate::tls::SavedKeys;

/// A process that takes over from another.
#[derive(Debug)]
pub struct Heir(Wire);

// === impl Heir ===

impl Heir {
    /// What the process that started this one gives it; `None`: it does not hand over. An
    /// environment that speaks of another process is an old one, and says nothing.
    pub fn inherit(log: &Log) -> anyhow::Result<Option<Inherited>> {
        let Some(from) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        if from.to_str() != Some(&parent_id().to_string()) {
            let from = from.display();
            let why = "that process did not start this one; a wrapper has to `exec` the gateway";
            log.warn(
                "ignored",
                &[
                    Text("variable", &VARIABLE),
                    Text("value", &from),
                    Text("reason", &why),
                ],
            );
            return Ok(None);
        }
        if env::var_os(LOG).is_some_and(|format| format == "json") {
            log.configure(Level::Info, Format::Json);
        }
        let wrong = || format!("{VARIABLE} is set, but nothing is handed over on standard input");
        let wire = take_input().with_context(wrong)?;
        let mut inherited = Inherited::default();
        while receive(&wire, &mut inherited).with_context(wrong)? {}
        inherited.heir = Some(Self(wire));
        Ok(Some(inherited))
    }

    /// Says that all is prepared; gives the counters, in a file, if there are any. After an error
    /// it must not serve: the other process goes on, or was told to stop.
    pub(in crate::gateway) fn counters(&self) -> io::Result<Option<File>> {
        self.0.say(PREPARED)?;
        match self.0.hear()? {
            (COUNTERS, Some(file)) => Ok(Some(File::from(file))),
            (NO_COUNTERS, None) => Ok(None),
            _ => Err(nonsense()),
        }
    }

    /// Says that it serves, and waits until the other has told whoever watches the service.
    pub(in crate::gateway) fn listens(self) {
        // An old process that is gone needs no word.
        let _ = self.0.say(LISTENING).and_then(|()| self.0.expect(FAREWELL));
    }
}

/// The socket that is standard input, which is nothing afterwards.
fn take_input() -> io::Result<Wire> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Wire::new(UnixStream::from(input))
}

/// Takes the next thing; false: that was all.
fn receive(wire: &Wire, inherited: &mut Inherited) -> io::Result<bool> {
    match wire.hear()? {
        (LISTENER, Some(socket)) => inherited.add(adopt(socket)?),
        (ADMIN, Some(socket)) => inherited.add_admin(adopt(socket)?),
        (SECRET, None) => inherited.secret = Some(wire.bytes()?),
        (TICKETS, None) => inherited.tickets = Some(wire.bytes::<{ SavedKeys::LENGTH }>()?.into()),
        (END, None) => return Ok(false),
        _ => return Err(nonsense()),
    }
    Ok(true)
}

fn adopt(socket: OwnedFd) -> io::Result<TcpListener> {
    listen::adopt(socket)
}
