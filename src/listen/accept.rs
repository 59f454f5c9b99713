//! Accepting connections, up to a bound for the whole process.
//!
//! It hands each connection on at once and never reads from one.

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

/// How long to wait when the machine has no file descriptor or memory for a connection.
const STARVED: Duration = Duration::from_millis(100);

/// How often a core looks again at a full gate. Another core may free the place, so that no
/// waker of this one would be called.
const FULL: Duration = Duration::from_millis(20);

/// How many are accepted at most after the drain has started: clients may come for ever.
const MAX_LAST: usize = 4096;

/// The bound on open connections, one for the process. Clones share it.
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

/// The place of one connection, in the gate and in its core's count; dropping it frees both.
#[derive(Debug)]
pub struct ConnectionPermit {
    gate: ConnectionLimit,
    /// Whose connections it is counted among.
    network: OnceLock<IpAddr>,
    open: DrainingConnection,
}

/// The connections of each network, for the whole process. A network is in the map for as long as
/// it has a connection, so the gate bounds the map too.
#[derive(Debug, Default)]
struct PerIpConnections(Mutex<HashMap<IpAddr, usize>>);

/// Accepts until the drain starts, then what the kernel has accepted already: a socket that is
/// closed resets them, unless another process has it too. While the gate is full the listener is
/// left alone, so that clients wait in the kernel's queue. `own`: no other program has the socket.
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

/// Runs a connection in a task of its own, on this core: a panic in it ends it, and no other.
pub fn spawn(connection: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(connection);
}

// === impl ConnectionLimit ===

impl ConnectionLimit {
    /// A gate for at most `limit` connections.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Bound {
            open: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            cap: AtomicUsize::new(usize::MAX),
            failures: AtomicU64::new(0),
            per_ip: PerIpConnections::default(),
        }))
    }

    /// The same gate, for `most` connections whatever its limit is or becomes.
    pub fn capped(self, most: usize) -> Self {
        self.0.cap.store(most, Ordering::Release);
        self
    }

    /// Changes the bound. Connections over a lowered bound stay.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Release);
    }

    fn limit(&self) -> usize {
        let limit = self.0.limit.load(Ordering::Acquire);
        limit.min(self.0.cap.load(Ordering::Acquire))
    }

    /// How many connections are open in the process.
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Acquire)
    }

    /// How often the machine had no resources for a connection.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// A place for one connection of the core of `drain`, if one is free.
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

    /// Waits for room without taking it: a core that holds a place while no client comes would
    /// take it from the others.
    async fn free_descriptors(&self) {
        while self.open() >= self.limit() {
            sleep(FULL).await;
        }
    }
}

// === impl ConnectionPermit ===

impl ConnectionPermit {
    /// Whether the listener that it came through is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.open.is_leaving()
    }

    /// Counts the connection as one of `network`; false: there are `limit` of them already. Only
    /// the first call counts.
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
    /// Counts one more, unless there are `limit` already. Returns whether it did.
    fn enter(&self, network: IpAddr, limit: usize) -> bool {
        let mut networks = self.0.lock();
        let open = networks.get(&network).copied().unwrap_or(0);
        if open >= limit {
            return false;
        }
        networks.insert(network, open + 1);
        true
    }

    /// Counts one less.
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
                // It fails only on a socket that is gone, which the first read will show.
                let _ = stream.set_nodelay(true);
                // Where the drain finds it.
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

/// Has the kernel drop new connections, as if the packet were lost: a connection that it accepted
/// between the last look at its queue and the end of the socket would be reset.
fn drop_new_connections(listener: &TcpListener) {
    // BPF_RET with BPF_K: keep so many bytes of each packet.
    let none = socket2::SockFilter::new(0x06, 0, 0, 0);
    // Where it fails the time for a reset is a few microseconds longer, and no more.
    let _ = socket2::SockRef::from(listener).attach_filter(&[none]);
}

/// The next connection of the kernel's queue, if there is one.
fn accept_last(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    // Asked for beside tokio, which may not have heard of it yet.
    let socket = socket2::SockRef::from(listener);
    let (stream, peer) = socket.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    let stream = TcpStream::from_std(stream.into()).ok()?;
    let _ = stream.set_nodelay(true);
    Some((stream, peer.as_socket()?))
}

/// Whether the error is of one connection and the next may be accepted at once. All others are
/// waited out: out of descriptors or memory, the same error comes again and again.
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
    fn only_errors_of_one_client_are_passed_over_at_once() {
        let errno = |n| is_clients(&io::Error::from_raw_os_error(n));
        // ECONNABORTED, EINTR; then EMFILE, ENFILE, ENOMEM, ENOBUFS.
        assert!(errno(103) && errno(4));
        assert!(!errno(24) && !errno(23) && !errno(12) && !errno(105));
    }

    #[test]
    fn a_gate_counts_what_is_open() {
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
    fn each_network_has_its_own_count_and_leaves_nothing_behind() {
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
