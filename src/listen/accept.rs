//! Accepts connections, up to a limit for the whole process.
//!
//! It passes each connection on immediately and never reads from one.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::drain::{CoreDrain, DrainingConnection};

/// The wait after the system had no file descriptor or memory for a connection.
const STARVED: Duration = Duration::from_millis(100);

/// The interval at which a core checks a reached connection limit again. Another core may free a slot, which
/// does not wake this one.
const FULL: Duration = Duration::from_millis(20);

/// The maximum number of connections accepted after the drain has started, because clients may keep connecting.
const MAX_LAST: usize = 4096;

/// The limit on open connections of the process. Clones share it.
#[derive(Clone, Debug)]
pub struct ConnectionLimit(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    open: AtomicUsize,
    limit: AtomicUsize,
    cap: AtomicUsize,
    failures: AtomicU64,
    per_ip: PerIpConnections,
}

/// The slot of one connection, in the process's and in its core's count; dropping it frees both.
#[derive(Debug)]
pub struct ConnectionPermit {
    gate: ConnectionLimit,
    /// The client network that the connection is counted for.
    network: OnceLock<IpAddr>,
    open: DrainingConnection,
}

/// The number of connections of each network, for the whole process. A network is in the map only while it has a
/// connection, so the connection limit bounds the map too.
#[derive(Debug, Default)]
struct PerIpConnections(Mutex<HashMap<IpAddr, usize>>);

/// Accepts until the drain starts, then accepts the kernel's queue, because closing the socket resets queued
/// connections unless another process has it too. At the connection limit it does not accept, so that clients
/// wait in the kernel's queue. `own` is whether no other program has the socket.
pub async fn accept_loop(
    listener: TcpListener,
    own: bool,
    gate: ConnectionLimit,
    drain: CoreDrain,
    on_connection: impl Fn(TcpStream, SocketAddr, ConnectionPermit),
) {
    let waiting = Cell::new(None);
    tokio::select! {
        biased;
        () = drain.started() => {}
        () = accept_all(&listener, &gate, &drain, &waiting, &on_connection) => {}
    }
    if own && drain.is_of_all() {
        drop_new_connections(&listener);
    }
    let last = if drain.is_handed_over() { 0 } else { MAX_LAST };
    let queued = (0..last).map_while(|_| accept_last(&listener));
    for (stream, peer) in waiting.take().into_iter().chain(queued) {
        if let Some(permit) = gate.try_enter(&drain) {
            on_connection(stream, peer, permit);
        }
    }
}

/// Runs a connection in a separate task on this core: a panic ends only this connection.
pub fn spawn(connection: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(connection);
}

// === impl ConnectionLimit ===

impl ConnectionLimit {
    /// Creates a limit of at most `limit` connections.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Bound {
            open: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            cap: AtomicUsize::new(usize::MAX),
            failures: AtomicU64::new(0),
            per_ip: PerIpConnections::default(),
        }))
    }

    /// Also caps the limit at `most` connections, even if it is raised later.
    pub fn capped(self, most: usize) -> Self {
        self.0.cap.store(most, Ordering::Release);
        self
    }

    /// Changes the limit. Connections above a lowered limit stay open.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Release);
    }

    /// Returns the maximum number of open connections.
    pub fn limit(&self) -> usize {
        let limit = self.0.limit.load(Ordering::Acquire);
        limit.min(self.0.cap.load(Ordering::Acquire))
    }

    /// Returns the number of open connections of the process.
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Acquire)
    }

    /// Returns how often the system had no resources for a connection.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Takes a slot for a connection on the core of `drain`. `None` if none is free.
    pub fn try_enter(&self, drain: &CoreDrain) -> Option<ConnectionPermit> {
        let limit = self.limit();
        self.0
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                (open < limit).then_some(open.saturating_add(1))
            })
            .ok()?;
        Some(ConnectionPermit {
            gate: self.clone(),
            network: OnceLock::new(),
            open: drain.enter(),
        })
    }

    async fn enter(&self, drain: &CoreDrain) -> ConnectionPermit {
        loop {
            if let Some(permit) = self.try_enter(drain) {
                return permit;
            }
            sleep(FULL).await;
        }
    }

    /// Waits for a free slot without taking it: a core that holds a slot while no client connects would take it
    /// from the others.
    async fn free_descriptors(&self) {
        while self.open() >= self.limit() {
            sleep(FULL).await;
        }
    }
}

// === impl ConnectionPermit ===

impl ConnectionPermit {
    /// Returns whether the connection's listener drains.
    pub(super) fn is_leaving(&self) -> bool {
        self.open.is_leaving()
    }

    /// Counts the connection for `network`. Returns `false` if it has `limit` connections already. Only the
    /// first call counts.
    pub(super) fn admit(&self, network: IpAddr, limit: usize) -> bool {
        if self.network.get().is_some() {
            return true;
        }
        self.gate.0.per_ip.enter(network, limit) && self.network.set(network).is_ok()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        if let Some(network) = self.network.get() {
            self.gate.0.per_ip.leave(*network);
        }
        self.gate.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl PerIpConnections ===

impl PerIpConnections {
    /// Counts one more connection unless there are `limit` already. Returns whether it did.
    fn enter(&self, network: IpAddr, limit: usize) -> bool {
        let mut networks = self.0.lock();
        let open = networks.get(&network).copied().unwrap_or(0);
        if open >= limit {
            return false;
        }
        networks.insert(network, open + 1);
        true
    }

    /// Counts one connection less.
    fn leave(&self, network: IpAddr) {
        let mut networks = self.0.lock();
        match networks.get_mut(&network) {
            Some(open @ 2..) => *open -= 1,
            _ => drop(networks.remove(&network)),
        }
    }
}

async fn accept_all(
    listener: &TcpListener,
    gate: &ConnectionLimit,
    drain: &CoreDrain,
    waiting: &Cell<Option<(TcpStream, SocketAddr)>>,
    on_connection: &impl Fn(TcpStream, SocketAddr, ConnectionPermit),
) {
    loop {
        gate.free_descriptors().await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                // It fails only on a closed socket, which the first read will report.
                let _ = stream.set_nodelay(true);
                // The drain takes the connection from here.
                waiting.set(Some((stream, peer)));
                let permit = gate.enter(drain).await;
                if let Some((stream, peer)) = waiting.take() {
                    on_connection(stream, peer, permit);
                }
            }
            Err(e) if is_clients(&e) => {}
            Err(_) => {
                gate.0.failures.fetch_add(1, Ordering::Relaxed);
                sleep(STARVED).await;
            }
        }
    }
}

/// Makes the kernel drop new connections like lost packets: a connection that arrives between the last accept
/// and the closing of the socket would be reset.
fn drop_new_connections(listener: &TcpListener) {
    // BPF_RET with BPF_K: the number of bytes to keep of each packet.
    let none = socket2::SockFilter::new(0x06, 0, 0, 0);
    // If it fails, the window for a reset is only a few microseconds longer.
    let _ = socket2::SockRef::from(listener).attach_filter(&[none]);
}

/// Accepts the next connection of the kernel's queue. `None` if it is empty.
fn accept_last(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    // Bypasses tokio, which may not have been notified yet.
    let socket = socket2::SockRef::from(listener);
    let (stream, peer) = socket.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    let stream = TcpStream::from_std(stream.into()).ok()?;
    let _ = stream.set_nodelay(true);
    Some((stream, peer.as_socket()?))
}

/// Returns whether the error concerns one connection, so that the next can be accepted immediately. After other
/// errors the loop waits: without descriptors or memory, the error would repeat.
fn is_clients(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_errors_of_one_connection_are_retried_immediately() {
        let errno = |n| is_clients(&io::Error::from_raw_os_error(n));
        // ECONNABORTED, EINTR; then EMFILE, ENFILE, ENOMEM, ENOBUFS.
        assert!(errno(103) && errno(4));
        assert!(!errno(24) && !errno(23) && !errno(12) && !errno(105));
    }

    #[test]
    fn a_connection_limit_counts_open_connections() {
        let gate = ConnectionLimit::new(1);
        let drain = super::super::DrainTrigger::default().core();
        let permit = gate.try_enter(&drain).unwrap();
        assert!(gate.try_enter(&drain).is_none());
        assert_eq!((gate.open(), drain.open()), (1, 1));
        gate.set_limit(2);
        assert!(gate.try_enter(&drain).is_some());
        drop(permit);
        assert_eq!((gate.open(), drain.open()), (0, 0));
        let gate = gate.capped(0);
        assert!(gate.try_enter(&drain).is_none());
    }

    #[test]
    fn each_network_is_counted_separately_and_removed_at_zero() {
        let per_ip = PerIpConnections::default();
        let [a, b] = ["192.0.2.1", "2001:db8::"].map(|ip| ip.parse().unwrap());
        assert!(per_ip.enter(a, 2) && per_ip.enter(a, 2) && per_ip.enter(b, 1));
        assert!(!per_ip.enter(a, 2) && !per_ip.enter(b, 1));
        per_ip.leave(a);
        assert!(per_ip.enter(a, 2));
        for network in [a, a, b] {
            per_ip.leave(network);
        }
        assert!(per_ip.0.lock().is_empty());
    }
}
