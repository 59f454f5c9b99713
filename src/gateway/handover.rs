//! One process takes over from another (SIGUSR2): the very listening sockets, so that no connection
//! in their queues is lost, the admin port, the secret, the keys of
//! TLS tickets, and the counters.
//!
//! The old process starts the new one with a socket as its standard input, and both speak on it, a
//! byte a word:
//!
//! | who | says | with |
//! | --- | --- | --- |
//! | old | [`LISTENER`], for each socket | the socket |
//! | old | [`ADMIN`], if there is one | the socket |
//! | old | [`SECRET`] | 32 bytes |
//! | old | [`TICKETS`] | the keys of TLS tickets |
//! | old | [`END`] | |
//! | new | [`PREPARED`]: the configuration is good, all is open | |
//! | old | [`COUNTERS`] or [`NO_COUNTERS`] | the store as a file in memory |
//! | new | [`LISTENING`]: it serves; the old one stops accepting | |
//! | old | [`FAREWELL`]: whoever watches the service knows of the new process | |
//!
//! Until [`LISTENING`] nothing has changed for the old process: whatever goes wrong, it goes on. A
//! new process that is not told about counters never serves.

mod heir;
mod program;
mod successor;

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

pub use heir::Heir;
pub use program::Program;
pub use successor::Handover;

/// Names the process that hands over, in the environment of the one that takes over.
const VARIABLE: &str = "LOCKGATE_HANDOVER";
/// Says there that the log is JSON: the new process may fail before it has read so.
const LOG: &str = "LOCKGATE_HANDOVER_LOG";
/// How long one waits for the other: large databases and lists take their time.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// What the two speak over.
#[derive(Debug)]
struct Wire(UnixStream);

// === impl Wire ===

impl Wire {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    fn say(&self, word: u8) -> io::Result<()> {
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
        sendmsg(
            &self.0,
            &[IoSlice::new(&[word])],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// The next word, and what came with it.
    fn hear(&self) -> io::Result<(u8, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0];
        let got = recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut word)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
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
        "the other process does not speak this version",
    )
}
