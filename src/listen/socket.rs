//! Listening sockets, and how many connections the process has file descriptors for. Knows addresses
//! and options, never a connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

/// Connections that the kernel may hold for us; it cuts this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// What the kernel holds for a client and cannot send yet: enough for the fastest, and little where
/// hundreds do not read.
const UNSENT: u32 = 128 * 1024;

/// A connection that was silent for so long is probed, again after each interval, and ends after
/// so many probes without a reply: a tunnel has no other end where its client is gone.
const SILENCE: Duration = Duration::from_secs(60);
const PROBES_APART: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

/// Always open: standard streams, logs, signals, the admin port with what it keeps.
const PROCESS_DESCRIPTORS: u64 = 32;
/// Of a worker: its poll, its waker, its view of signals.
const WORKER_DESCRIPTORS: u64 = 4;
/// Of a worker and a listener: the socket, and the worker's own handle of it.
const LISTENER_DESCRIPTORS: u64 = 2;
/// Kept for what comes and goes: files of a reload, name lookups, checks of servers, the admin
/// port's connections.
const RESERVED_DESCRIPTORS: u64 = 256;

/// A listening socket for one core: every core binds the same address and the kernel spreads
/// connections over them. `[::]` takes IPv4 too. For port 0, bind once and give the others the
/// port of `local_addr`.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // What is accepted from it has the same.
    let keepalive = TcpKeepalive::new().with_time(SILENCE);
    let keepalive = keepalive.with_interval(PROBES_APART).with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A socket that another process has opened, if it listens for TCP.
pub fn adopt(socket: OwnedFd) -> io::Result<TcpListener> {
    let listens = socket_type(&socket)? == SocketType::STREAM && socket_acceptconn(&socket)?;
    if !listens {
        let message = "it is no socket that listens";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let socket = TcpListener::from(socket);
    // It fails for a socket of another family.
    socket.local_addr()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Fails if another process listens on `address`. To share a port by mistake would silently split
/// the traffic between two gateways.
pub fn must_be_free(address: SocketAddr) -> io::Result<()> {
    open(address)?.bind(&address.into())
}

/// A socket for which connections of a gateway that has just ended are no obstacle.
fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Raises the process's own bound as far as it may, and gives how many descriptors it can have.
pub fn raise_descriptors() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    // Where that is refused, what it has is what counts.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many connections so many descriptors are enough for, beside what so many workers with so
/// many listeners have open: each may need one for its origin too.
pub fn connections_for(descriptors: u64, workers: usize, listeners: usize) -> usize {
    let each = LISTENER_DESCRIPTORS.saturating_mul(listeners as u64);
    let own = (workers as u64).saturating_mul(WORKER_DESCRIPTORS.saturating_add(each));
    let left = descriptors.saturating_sub(PROCESS_DESCRIPTORS.saturating_add(own));
    let reserved = RESERVED_DESCRIPTORS.min(left / 4);
    usize::try_from((left - reserved) / 2)
        .unwrap_or(usize::MAX)
        .max(1)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn every_connection_has_room_for_its_origin() {
        for descriptors in [100, 256, 1024, 65_536, 1 << 20] {
            let connections = connections_for(descriptors, 1, 1) as u64;
            assert!(2 * connections + 38 < descriptors, "{descriptors}");
            assert!(3 * connections + 38 >= descriptors / 2, "{descriptors}");
        }
        assert_eq!(connections_for(1024, 2, 1), 367);
        assert_eq!(
            connections_for(u64::MAX, 2, 1),
            (u64::MAX / 2 - 150) as usize
        );
    }

    #[test]
    fn what_workers_have_open_is_not_for_connections() {
        for (workers, listeners) in [(1, 1), (16, 1), (64, 2), (64, 8)] {
            let connections = connections_for(2048, workers, listeners);
            let own = workers * (4 + 2 * listeners) + 32;
            assert!(2 * connections + own <= 2048, "{workers} {listeners}");
        }
        let none = [(0, 1, 1), (37, 1, 1), (1024, 1000, 1)];
        let none = none.map(|(descriptors, workers, listeners)| {
            connections_for(descriptors, workers, listeners)
        });
        assert_eq!(none, [1, 1, 1]);
        assert_eq!(connections_for(1024, usize::MAX, usize::MAX), 1);
    }

    #[test]
    fn the_bound_is_raised_to_what_is_allowed() {
        let allowed = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_descriptors(), allowed.unwrap_or(u64::MAX));
    }
}
