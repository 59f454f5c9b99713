//! The handover from one process to the next (SIGUSR2): the open listening sockets, so that no queued
//! connection is lost, the admin port, the secret, the keys of TLS tickets, and the counters.
//!
//! The old process starts the new one with a socket as its standard input. Both send messages of one byte
//! on it:
//!
//! | sender | message | data |
//! | --- | --- | --- |
//! | old | [`LISTENER`], for each socket | the socket |
//! | old | [`ADMIN`], if there is one | the socket |
//! | old | [`SECRET`] | 32 bytes |
//! | old | [`TICKETS`] | the keys of TLS tickets |
//! | old | [`END`] | |
//! | new | [`PREPARED`]: the configuration is valid, all resources are open | |
//! | old | [`COUNTERS`] or [`NO_COUNTERS`] | the counters as a file in memory |
//! | new | [`LISTENING`]: it serves; the old process stops accepting | |
//! | old | [`FAREWELL`]: the service manager knows the new process | |
//!
//! Until [`LISTENING`] nothing changes for the old process: after any error, it continues to serve. A new
//! process that receives neither [`COUNTERS`] nor [`NO_COUNTERS`] never serves.

mod sender;

use std::env;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::time::Duration;

use anyhow::Context as _;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use tracing::{Level, warn};

use super::InheritedSockets;
use crate::listen;
use crate::observe::{LogHandle, LogOutput};
use crate::tls::SavedKeys;

pub use sender::{HandoverSender, StartCommand};

/// The environment variable with the id of the old process, set for the new process.
const VARIABLE: &str = "LOCKGATE_HANDOVER";
/// Set for the new process if the log is JSON, because it may fail before it has read its configuration.
const LOG: &str = "LOCKGATE_HANDOVER_LOG";
/// The timeout for a message. It is long because large databases and lists take time to load.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

const LISTENER: u8 = b'L';
const ADMIN: u8 = b'A';
const SECRET: u8 = b'S';
const TICKETS: u8 = b'T';
const END: u8 = b'E';
const PREPARED: u8 = b'P';
const COUNTERS: u8 = b'C';
const NO_COUNTERS: u8 = b'N';
const LISTENING: u8 = b'G';
const FAREWELL: u8 = b'F';

/// The socket between the two processes.
#[derive(Debug)]
struct Wire(UnixStream);

/// The new process's side of a handover.
#[derive(Debug)]
pub struct HandoverReceiver(Wire);

// === impl Wire ===

impl Wire {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
        stream.set_write_timeout(Some(MESSAGE_TIMEOUT))?;
        Ok(Self(stream))
    }

    fn send_message(&self, word: u8) -> io::Result<()> {
        self.send(&[word])
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    fn give(&self, word: u8, descriptor: impl AsFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        retry_on_intr(|| {
            sendmsg(
                &self.0,
                &[IoSlice::new(&[word])],
                &mut control,
                SendFlags::NOSIGNAL,
            )
        })?;
        Ok(())
    }

    /// Receives the next message and its file descriptor, if any.
    fn hear(&self) -> io::Result<(u8, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0];
        // A signal interrupts a call with a timeout.
        let got = retry_on_intr(|| {
            let word = &mut [IoSliceMut::new(&mut word)];
            recvmsg(&self.0, word, &mut control, RecvFlags::CMSG_CLOEXEC)
        })?;
        let [word] = word;
        if got.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok((word, descriptor))
    }

    fn expect(&self, word: u8) -> io::Result<()> {
        match self.hear()? {
            (heard, _) if heard == word => Ok(()),
            _ => Err(nonsense()),
        }
    }

    fn bytes<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        (&self.0).read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn nonsense() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other process uses another version of the handover",
    )
}

// === impl HandoverReceiver ===

impl HandoverReceiver {
    /// Receives the sockets from the process that started this one. `None` if there is no handover. Ignores the
    /// environment variable if it names another process, because it is then outdated.
    pub fn inherit(log: &LogHandle) -> anyhow::Result<Option<InheritedSockets>> {
        let Some(from) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        if from.to_str() != Some(&parent_id().to_string()) {
            let from = from.display();
            let why = "the variable does not name the parent of this process; a wrapper must \
                       `exec` the gateway";
            warn!(variable = VARIABLE, value = %from, reason = why, "handover variable ignored");
            return Ok(None);
        }
        if env::var_os(LOG).is_some_and(|format| format == "json") {
            log.configure(Level::INFO, LogOutput::Json);
        }
        let wrong = || format!("{VARIABLE} is set, but standard input is not a handover socket");
        let wire = take_input().with_context(wrong)?;
        let mut inherited = InheritedSockets::default();
        while receive(&wire, &mut inherited).with_context(wrong)? {}
        inherited.receiver = Some(Self(wire));
        Ok(Some(inherited))
    }

    /// Reports that the process is prepared and returns the file with the counters, `None` without counters.
    /// After an error the new process must not serve: the old process continues or was stopped.
    pub(in crate::gateway) fn counters(&self) -> io::Result<Option<File>> {
        self.0.send_message(PREPARED)?;
        match self.0.hear()? {
            (COUNTERS, Some(file)) => Ok(Some(File::from(file))),
            (NO_COUNTERS, None) => Ok(None),
            _ => Err(nonsense()),
        }
    }

    /// Reports that the process serves, and waits until the old process has notified the service manager.
    pub(in crate::gateway) fn listens(self) {
        // If the old process has already ended, no message is needed.
        let _ = self
            .0
            .send_message(LISTENING)
            .and_then(|()| self.0.expect(FAREWELL));
    }
}

/// Takes the socket from standard input, and replaces standard input with `/dev/null`.
fn take_input() -> io::Result<Wire> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Wire::new(UnixStream::from(input))
}

/// Receives the next item. Returns `false` after the last one.
fn receive(wire: &Wire, inherited: &mut InheritedSockets) -> io::Result<bool> {
    match wire.hear()? {
        (LISTENER, Some(socket)) => inherited.add(listen::adopt(socket)?),
        (ADMIN, Some(socket)) => inherited.add_admin(listen::adopt(socket)?),
        (SECRET, None) => inherited.secret = Some(wire.bytes()?),
        (TICKETS, None) => inherited.tickets = Some(wire.bytes::<{ SavedKeys::LENGTH }>()?.into()),
        (END, None) => return Ok(false),
        _ => return Err(nonsense()),
    }
    Ok(true)
}
