//! The protocol of the service manager: sd_notify(3) and sd_listen_fds(3). Does nothing if the environment
//! variables of systemd are not set.
//!
//! The crate `sd-notify` is not used: it treats an abstract socket (`@name`) as a path, and its send blocks
//! while the service manager does not read.

use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use listenfd::ListenFd;
use tracing::warn;

use crate::listen;

/// The maximum number of sockets, more than any unit has.
const MAX_SOCKETS: usize = 1024;

/// Reports the service state to systemd. Does nothing without `NOTIFY_SOCKET`.
#[derive(Clone)]
pub struct SystemdNotifier {
    address: Option<SocketAddr>,
}

/// The sockets that systemd opened for this process.
#[derive(Debug, Default)]
pub struct ActivatedSockets {
    /// The listening TCP sockets.
    pub sockets: Vec<TcpListener>,
    /// The errors of the other sockets.
    pub wrong: Vec<String>,
}

// === impl SystemdNotifier ===

impl SystemdNotifier {
    /// Creates a notifier for the socket in the environment.
    pub fn from_env() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty());
        let address = socket.and_then(|socket| match address(&socket) {
            Ok(address) => Some(address),
            Err(error) => {
                warn!(%error, "NOTIFY_SOCKET cannot be used");
                None
            }
        });
        Self { address }
    }

    /// Reports that the service accepts requests.
    pub fn ready(&self, status: &str) {
        self.notify(&format_args!("READY=1\nSTATUS={status}"));
    }

    /// Reports a reload, which ends with [`SystemdNotifier::ready`].
    pub fn reloading(&self) {
        let now = monotonic_micros();
        self.notify(&format_args!("RELOADING=1\nMONOTONIC_USEC={now}"));
    }

    /// Reports that the service stops.
    pub fn stopping(&self) {
        self.notify(&"STOPPING=1\nSTATUS=draining");
    }

    /// Reports the id of the new main process.
    pub fn main_pid(&self, pid: u32) {
        self.notify(&format_args!("MAINPID={pid}"));
    }

    fn notify(&self, state: &dyn Display) {
        let Some(address) = &self.address else {
            return;
        };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            // A service manager that does not read must not block the gateway.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.to_string().as_bytes(), address)
        });
        if let Err(error) = sent {
            warn!(%error, "cannot notify systemd");
        }
    }
}

// === impl ActivatedSockets ===

impl ActivatedSockets {
    /// Takes the sockets that the environment lists. Must be called before the process opens a file or starts a
    /// thread.
    pub fn from_env() -> Self {
        let number = |name| env::var(name).ok()?.parse::<usize>().ok();
        let own = number("LISTEN_PID").is_some_and(|pid| pid == std::process::id() as usize);
        let few = number("LISTEN_FDS").is_some_and(|count| count <= MAX_SOCKETS);
        let mut activated = Self::default();
        if own && few {
            let mut given = ListenFd::from_env();
            for place in 0..given.len() {
                activated.add(place, given.take_tcp_listener(place));
            }
        }
        activated
    }

    fn add(&mut self, place: usize, socket: io::Result<Option<TcpListener>>) {
        let socket =
            socket.and_then(|socket| socket.map(OwnedFd::from).map(listen::adopt).transpose());
        match socket {
            Ok(socket) => self.sockets.extend(socket),
            Err(error) => self.wrong.push(format!("socket {place}: {error}")),
        }
    }
}

/// Reads the monotonic clock, with which systemd recognises that a notification follows its reload request.
/// The gateway does not use it otherwise.
fn monotonic_micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanos / 1000)
}

/// Returns the address of a path, or of a name in the abstract namespace after `@`.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(socket),
    }
}
