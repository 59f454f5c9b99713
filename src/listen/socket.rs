//! Listening sockets, and the number of connections for which the process has file descriptors. It handles
//! addresses and options, not connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

/// The length of the kernel's accept queue; the kernel reduces it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// The maximum unsent bytes in the kernel per client: enough for the fastest, and little if hundreds do not
/// read.
const UNSENT: u32 = 128 * 1024;

/// TCP keepalive: probes a connection after this silence and after each interval, and closes it after this
/// number of probes without a reply. A tunnel of a vanished client has no other end.
const SILENCE: Duration = Duration::from_secs(60);
const PROBES_APART: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

/// Descriptors that are always open: standard streams, logs, signals, the admin port with its reserve.
const PROCESS_DESCRIPTORS: u64 = 32;
/// Descriptors per worker: its poll, its waker, its signal handle.
const WORKER_DESCRIPTORS: u64 = 4;
/// Descriptors per worker and listener: the socket, and the worker's own handle of it.
const LISTENER_DESCRIPTORS: u64 = 2;
/// Descriptors reserved for temporary use: files of a reload, name lookups, health checks, the admin port's
/// connections.
const RESERVED_DESCRIPTORS: u64 = 256;

/// Creates a listening socket for one core: every core binds this address and the kernel distributes connections
/// over them. `[::]` accepts IPv4 too. For port 0, bind once and use the port of `local_addr` for the others.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Accepted sockets inherit it.
    let keepalive = TcpKeepalive::new().with_time(SILENCE);
    let keepalive = keepalive.with_interval(PROBES_APART).with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Adopts a socket that another process has opened. Fails if it does not listen for TCP.
pub fn adopt(socket: OwnedFd) -> io::Result<TcpListener> {
    let listens = socket_type(&socket)? == SocketType::STREAM && socket_acceptconn(&socket)?;
    if !listens {
        let message = "it is not a listening TCP socket";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let socket = TcpListener::from(socket);
    // It fails for a socket of another address family.
    socket.local_addr()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Fails if another process listens on `address`. Sharing a port by mistake would silently split the traffic
/// between two gateways.
pub fn must_be_free(address: SocketAddr) -> io::Result<()> {
    open(address)?.bind(&address.into())
}

/// Creates a socket that can be bound despite old connections of a gateway that has just ended.
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

/// Raises the process's descriptor limit to its maximum and returns the resulting limit.
pub fn raise_descriptors() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    // If that is refused, the current limit applies.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the number of connections that `descriptors` suffice for, after those of the workers and listeners:
/// each connection may need one for its origin server too.
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
    fn descriptors_suffice_for_every_connection_and_its_origin() {
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
    fn descriptors_of_workers_are_not_available_for_connections() {
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
    fn the_descriptor_limit_is_raised_to_the_maximum() {
        let allowed = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_descriptors(), allowed.unwrap_or(u64::MAX));
    }
}
