//! Listening sockets. Knows addresses and options, never a connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

/// Connections that the kernel may hold for us; it cuts this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// What the kernel holds for a client and cannot send yet: enough for the fastest, and little where
/// hundreds do not read.
const UNSENT: u32 = 128 * 1024;

/// A connection that was silent for so long is probed, again after each interval, and ends after
/// so many probes without an answer: a tunnel has no other end where its client is gone.
const SILENCE: Duration = Duration::from_secs(60);
const PROBES_APART: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

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

/// A socket that somebody else has opened, if it is one that listens for TCP.
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

/// Fails if anybody listens on `address`. To share a port by mistake would split the traffic
/// between two gateways without a word.
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
