//! The listening sockets of a gateway. Opens and closes them and never accepts; the cores follow the
//! published set.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::inherited::InheritedSockets;
use crate::config::blueprint::Blueprint;
use crate::listen::{self, ConnectionLimit};
use crate::snapshot::ListenerConfig;

/// The interval and the maximum number of checks whether the cores have released a closed listener.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: usize = 2000;

/// All listeners of a gateway.
pub(super) struct ListenerSet {
    /// The limit on open connections.
    pub gate: ConnectionLimit,
    workers: usize,
    open: watch::Sender<Vec<Arc<BoundListener>>>,
    admin: watch::Sender<Option<Arc<AdminListener>>>,
}

/// A listener with its sockets.
pub struct BoundListener {
    /// The listener.
    pub listener: Arc<ListenerConfig>,
    /// Its sockets. A reload that keeps the address keeps them.
    pub sockets: Arc<ListenerSockets>,
}

/// The sockets of one listener.
pub struct ListenerSockets {
    /// The address as configured.
    requested: SocketAddr,
    /// The address with the assigned port, where port 0 was configured.
    pub address: SocketAddr,
    sockets: Vec<TcpListener>,
    /// Whether this process opened the sockets, so that no other program has them.
    pub own: bool,
    /// Cloned by each task that accepts from the sockets.
    pub in_use: Arc<()>,
}

/// The admin port's socket.
pub struct AdminListener {
    /// The address as configured.
    wanted: SocketAddr,
    /// The listening socket.
    pub socket: TcpListener,
}

/// The sockets of a configuration, open but not in use yet.
pub(super) struct PreparedSockets {
    /// The sockets of each listener, in the order of the configuration.
    listeners: Vec<Arc<ListenerSockets>>,
    admin: Option<Arc<AdminListener>>,
}

/// The error of a socket that cannot be opened.
#[derive(Debug)]
pub(super) struct BindError {
    /// The index of the listener in the configuration. `None` for the admin port.
    pub listener: Option<usize>,
    address: SocketAddr,
    error: io::Error,
}

/// The result of a change of the listeners.
#[derive(Default)]
pub(super) struct SocketChanges {
    /// The addresses that are new.
    pub opened: Vec<SocketAddr>,
    /// The addresses that were removed.
    pub closed: Vec<SocketAddr>,
    /// The admin port's new address. `None` if it did not change.
    pub admin: Option<SocketAddr>,
}

// === impl ListenerSet ===

impl ListenerSet {
    /// Creates a set without listeners, for `workers` cores.
    pub fn new(workers: usize, gate: ConnectionLimit) -> Self {
        Self {
            gate,
            workers,
            open: watch::Sender::default(),
            admin: watch::Sender::default(),
        }
    }

    /// Returns a watch on the listeners, for a core.
    pub fn follow(&self) -> watch::Receiver<Vec<Arc<BoundListener>>> {
        self.open.subscribe()
    }

    /// Returns a watch on the admin port's socket.
    pub fn follow_admin(&self) -> watch::Receiver<Option<Arc<AdminListener>>> {
        self.admin.subscribe()
    }

    /// Returns the addresses of the listeners, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets().iter().map(|one| one.address).collect()
    }

    /// Returns the sockets for `blueprint`: open sockets, those of `inherited`, or else new ones. Leaves the
    /// open sockets unchanged.
    pub fn prepare(
        &self,
        blueprint: &Blueprint,
        inherited: &mut InheritedSockets,
    ) -> Result<PreparedSockets, Vec<BindError>> {
        let mut open: Vec<_> = self.sockets();
        let ports: Vec<_> = open.iter().map(|one| one.address.port()).collect();
        let mut errors = Vec::new();
        let admin = blueprint
            .admin
            .map(|address| self.bind_admin(address, inherited));
        let admin = admin.and_then(|socket| socket.map_err(|error| errors.push(error)).ok());
        let listeners = blueprint.listeners.iter().map(|one| one.address);
        let mut listeners: Vec<_> = listeners.enumerate().collect();
        // Port 0 matches any inherited socket of its address, so listeners with a port take theirs first.
        listeners.sort_by_key(|(_, address)| address.port() == 0);
        let mut prepared = Vec::new();
        for (number, address) in listeners {
            let kept = open.iter().position(|one| one.requested == address);
            let sockets = match kept {
                Some(at) => Ok(open.remove(at)),
                None => {
                    ListenerSockets::open(address, self.workers, &ports, inherited).map(Arc::new)
                }
            };
            match sockets {
                Ok(sockets) => prepared.push((number, sockets)),
                Err(error) => errors.push(BindError {
                    listener: Some(number),
                    address,
                    error,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        prepared.sort_by_key(|(number, _)| *number);
        let listeners = prepared.into_iter().map(|(_, sockets)| sockets).collect();
        Ok(PreparedSockets { listeners, admin })
    }

    fn sockets(&self) -> Vec<Arc<ListenerSockets>> {
        let open = self.open.borrow();
        open.iter().map(|one| one.sockets.clone()).collect()
    }

    fn bind_admin(
        &self,
        wanted: SocketAddr,
        inherited: &mut InheritedSockets,
    ) -> Result<Arc<AdminListener>, BindError> {
        let open = self.admin.borrow().clone();
        if let Some(open) = open.filter(|open| open.wanted == wanted) {
            return Ok(open);
        }
        let given = inherited.admin(wanted);
        let socket = given.map_or_else(|| TcpListener::bind(wanted), Ok);
        let socket = socket.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        let socket = socket.map_err(|error| BindError {
            listener: None,
            address: wanted,
            error,
        })?;
        Ok(Arc::new(AdminListener { wanted, socket }))
    }

    /// Publishes `prepared` for the `listeners` of the installed snapshot, and waits until the removed sockets
    /// have closed.
    pub fn publish(
        &self,
        prepared: PreparedSockets,
        listeners: &[Arc<ListenerConfig>],
    ) -> SocketChanges {
        let bound = listeners.iter().zip(prepared.listeners);
        let bound = bound.map(|(listener, sockets)| {
            let listener = listener.clone();
            Arc::new(BoundListener { listener, sockets })
        });
        let bound: Vec<_> = bound.collect();
        let before = self.open.borrow().clone();
        let changes = SocketChanges {
            opened: addresses_without(&bound, &before),
            closed: addresses_without(&before, &bound),
            admin: self.publish_admin(prepared.admin),
        };
        let gone = without(&before, &bound);
        let gone: Vec<Weak<()>> = gone
            .map(|one| Arc::downgrade(&one.sockets.in_use))
            .collect();
        drop(before);
        // The old list is dropped inside `send_modify`: once a core sees the change, it holds the last handles,
        // and no connection arrives between its last accept and the close.
        self.open.send_modify(|open| *open = bound);
        wait_for(&gone);
        changes
    }

    fn publish_admin(&self, door: Option<Arc<AdminListener>>) -> Option<SocketAddr> {
        let same = match (&*self.admin.borrow(), &door) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if same {
            return None;
        }
        let address = door.as_ref().and_then(|door| door.socket.local_addr().ok());
        self.admin.send_replace(door);
        address
    }

    /// Calls `act` with each socket of each listener.
    pub fn each_socket(&self, act: impl FnMut(&TcpListener) -> io::Result<()>) -> io::Result<()> {
        let open = self.sockets();
        open.iter().flat_map(|one| &one.sockets).try_for_each(act)
    }

    /// Returns the admin port. `None` if there is none.
    pub fn admin(&self) -> Option<Arc<AdminListener>> {
        self.admin.borrow().clone()
    }

    /// Closes all listeners except the admin port.
    pub fn close(&self) {
        self.open.send_modify(Vec::clear);
    }

    /// Closes the admin port.
    pub fn close_admin(&self) {
        self.admin.send_replace(None);
    }
}

// === impl ListenerSockets ===

impl ListenerSockets {
    fn open(
        requested: SocketAddr,
        workers: usize,
        open_ports: &[u16],
        inherited: &mut InheritedSockets,
    ) -> io::Result<Self> {
        let mut sockets = inherited.listener(requested);
        let own = sockets.is_empty();
        if own {
            sockets = bind(requested, workers, open_ports)?;
        }
        let address = match sockets.first() {
            Some(socket) => socket.local_addr()?,
            None => requested,
        };
        Ok(Self {
            requested,
            address,
            sockets,
            own,
            in_use: Arc::default(),
        })
    }

    /// Returns the sockets that this core accepts from. Every socket has at least one core and every core at
    /// least one socket.
    pub fn of_core(&self, core: usize, cores: usize) -> impl Iterator<Item = &TcpListener> {
        let count = self.sockets.len().max(1);
        let sockets = self.sockets.iter().enumerate();
        sockets
            .filter(move |(number, _)| number % cores == core || core % count == *number)
            .map(|(_, socket)| socket)
    }
}

// === impl BindError ===

impl BindError {
    /// Returns a hint for the user. `None` if there is none for this error.
    pub fn cure(&self) -> Option<&'static str> {
        match self.error.kind() {
            io::ErrorKind::AddrInUse => Some(
                "another program uses this address (`ss -ltnp` shows it): stop it, or use another \
                 port",
            ),
            io::ErrorKind::AddrNotAvailable => Some(
                "this machine does not have this address; `0.0.0.0` and `[::]` mean all its \
                 addresses",
            ),
            io::ErrorKind::PermissionDenied => Some(
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE: grant it, or use a \
                 higher port",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.listener {
            Some(_) => "cannot listen on",
            None => "cannot open the admin port on",
        };
        write!(f, "{what} {}: {}", self.address, self.error)
    }
}

impl std::error::Error for BindError {}

/// Opens one socket per core on an address that no other program uses. If a listener of this process has
/// the port on another address, the kernel allows both to listen.
fn bind(address: SocketAddr, workers: usize, open_ports: &[u16]) -> io::Result<Vec<TcpListener>> {
    if !open_ports.contains(&address.port()) {
        listen::must_be_free(address)?;
    }
    let first = listen::bind(address)?;
    let address = first.local_addr()?;
    let others = (1..workers).map(|_| listen::bind(address));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// Returns the listeners of `all` that are not in `others`.
fn without<'a>(
    all: &'a [Arc<BoundListener>],
    others: &'a [Arc<BoundListener>],
) -> impl Iterator<Item = &'a Arc<BoundListener>> {
    all.iter().filter(|door| {
        !others
            .iter()
            .any(|other| other.listener.id == door.listener.id)
    })
}

fn addresses_without(all: &[Arc<BoundListener>], others: &[Arc<BoundListener>]) -> Vec<SocketAddr> {
    without(all, others)
        .map(|one| one.sockets.address)
        .collect()
}

/// Waits until no core accepts from these sockets, so that their addresses are free.
fn wait_for(gone: &[Weak<()>]) {
    for _ in 0..LOOKS {
        if gone.iter().all(|door| door.strong_count() == 0) {
            return;
        }
        thread::sleep(LOOK);
    }
}
