//! The listening sockets of a gateway: which are open, which are to be. It opens and closes them
//! and never accepts; the cores follow what is published here.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::inherited::Inherited;
use crate::listen::{self, Gate};
use crate::snapshot::{Listener, ListenerId, Snapshot};

/// How often, and how many times, a closed door is looked at until the cores have let go of it.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: usize = 2000;

/// All doors of a gateway.
pub(super) struct Doors {
    /// The bound on connections.
    pub gate: Gate,
    workers: usize,
    open: watch::Sender<Vec<Arc<Door>>>,
    admin: watch::Sender<Option<Arc<AdminDoor>>>,
}

/// A listener's sockets.
pub struct Door {
    /// The listener as it was when it opened.
    pub listener: Arc<Listener>,
    /// Where it listens: the port that it got for port 0.
    pub address: SocketAddr,
    sockets: Vec<TcpListener>,
    /// They were opened here: no other program has them.
    pub(super) own: bool,
    /// Held by whoever accepts from it.
    pub(super) in_use: Arc<()>,
}

/// The admin port's socket.
pub struct AdminDoor {
    /// The address as configured.
    asked: SocketAddr,
    /// It listens here.
    pub socket: TcpListener,
}

/// Sockets that a snapshot asks for, open and not yet in use.
pub(super) struct Prepared {
    doors: Vec<Arc<Door>>,
    admin: Option<Arc<AdminDoor>>,
}

/// A socket that cannot be had.
#[derive(Debug)]
pub(super) struct Unbound {
    /// The listener's place in the configuration; `None`: the admin port.
    pub listener: Option<usize>,
    address: SocketAddr,
    error: io::Error,
}

/// What a change of doors has done.
#[derive(Default)]
pub(super) struct Changed {
    /// Where it listens now and did not before.
    pub opened: Vec<SocketAddr>,
    /// Where it listened before and does not now.
    pub closed: Vec<SocketAddr>,
    /// The admin port, if it has another address.
    pub admin: Option<SocketAddr>,
}

// === impl Doors ===

impl Doors {
    /// No doors yet, for so many cores.
    pub fn new(workers: usize, gate: Gate) -> Self {
        Self {
            gate,
            workers,
            open: watch::Sender::default(),
            admin: watch::Sender::default(),
        }
    }

    /// What a core follows.
    pub fn follow(&self) -> watch::Receiver<Vec<Arc<Door>>> {
        self.open.subscribe()
    }

    /// What the admin port follows.
    pub fn follow_admin(&self) -> watch::Receiver<Option<Arc<AdminDoor>>> {
        self.admin.subscribe()
    }

    /// Where it listens, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.open.borrow().iter().map(|door| door.address).collect()
    }

    /// The sockets that `snapshot` asks for: those that are open, those of `inherited`, else new
    /// ones. Nothing that is open changes.
    pub fn prepare(
        &self,
        snapshot: &Snapshot,
        inherited: &mut Inherited,
    ) -> Result<Prepared, Vec<Unbound>> {
        let open = self.open.borrow().clone();
        let mut unbound = Vec::new();
        let admin = snapshot
            .admin
            .map(|address| self.admin_door(address, inherited));
        let admin = admin.and_then(|door| door.map_err(|error| unbound.push(error)).ok());
        let mut listeners: Vec<_> = snapshot.listeners.iter().enumerate().collect();
        // Port 0 may take any inherited socket of its address, but those with a port theirs.
        listeners.sort_by_key(|(_, listener)| listener.address.port() == 0);
        let mut doors = Vec::new();
        for (number, listener) in listeners {
            let known = open.iter().find(|door| door.id() == listener.id);
            let door = match known {
                Some(door) => Ok(door.clone()),
                None => Door::open(listener, self.workers, &open, inherited).map(Arc::new),
            };
            match door {
                Ok(door) => doors.push((number, door)),
                Err(error) => unbound.push(Unbound::listener(number, listener.address, error)),
            }
        }
        if !unbound.is_empty() {
            return Err(unbound);
        }
        doors.sort_by_key(|(number, _)| *number);
        let doors = doors.into_iter().map(|(_, door)| door).collect();
        Ok(Prepared { doors, admin })
    }

    fn admin_door(
        &self,
        asked: SocketAddr,
        inherited: &mut Inherited,
    ) -> Result<Arc<AdminDoor>, Unbound> {
        let open = self.admin.borrow().clone();
        if let Some(door) = open.filter(|door| door.asked == asked) {
            return Ok(door);
        }
        let socket = match inherited.admin(asked) {
            Some(socket) => Ok(socket),
            None => TcpListener::bind(asked),
        };
        let socket = socket.and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket.map_err(|error| Unbound {
            listener: None,
            address: asked,
            error,
        })?;
        Ok(Arc::new(AdminDoor { asked, socket }))
    }

    /// Puts `prepared` in place and waits until the doors that are gone have closed.
    pub fn publish(&self, prepared: Prepared) -> Changed {
        let before = self.open.borrow().clone();
        let changed = Changed {
            opened: addresses_without(&prepared.doors, &before),
            closed: addresses_without(&before, &prepared.doors),
            admin: self.publish_admin(prepared.admin),
        };
        let gone = without(&before, &prepared.doors);
        let gone: Vec<Weak<()>> = gone.map(|door| Arc::downgrade(&door.in_use)).collect();
        drop(before);
        // The list before goes inside: when a core hears of it, its own handles are the last, and
        // nobody comes to a socket between its last accept and its end.
        self.open.send_modify(|open| *open = prepared.doors);
        wait_for(&gone);
        changed
    }

    fn publish_admin(&self, door: Option<Arc<AdminDoor>>) -> Option<SocketAddr> {
        let same = match (&*self.admin.borrow(), &door) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if same {
            return None;
        }
        let address = door.as_ref().and_then(|door| door.address().ok());
        self.admin.send_replace(door);
        address
    }

    /// Does something with each socket of each listener.
    pub fn each_socket(&self, act: impl FnMut(&TcpListener) -> io::Result<()>) -> io::Result<()> {
        let doors = self.open.borrow().clone();
        doors
            .iter()
            .flat_map(|door| &door.sockets)
            .try_for_each(act)
    }

    /// The admin port.
    pub fn admin(&self) -> Option<Arc<AdminDoor>> {
        self.admin.borrow().clone()
    }

    /// Closes all doors but the admin port.
    pub fn close(&self) {
        self.open.send_modify(Vec::clear);
    }

    /// Closes the admin port.
    pub fn close_admin(&self) {
        self.admin.send_replace(None);
    }
}

// === impl Door ===

impl Door {
    fn open(
        listener: &Arc<Listener>,
        workers: usize,
        open: &[Arc<Door>],
        inherited: &mut Inherited,
    ) -> io::Result<Self> {
        let mut sockets = inherited.listener(listener.address);
        let own = sockets.is_empty();
        if own {
            sockets = bind(listener.address, workers, open)?;
        }
        let address = match sockets.first() {
            Some(socket) => socket.local_addr()?,
            None => listener.address,
        };
        Ok(Self {
            listener: listener.clone(),
            address,
            sockets,
            own,
            in_use: Arc::default(),
        })
    }

    /// Which listener it is.
    pub fn id(&self) -> ListenerId {
        self.listener.id
    }

    /// The sockets that this core accepts from. Every socket has a core and every core a socket,
    /// however many there are of each.
    pub fn of_core(&self, core: usize, cores: usize) -> impl Iterator<Item = &TcpListener> {
        let count = self.sockets.len().max(1);
        let sockets = self.sockets.iter().enumerate();
        sockets
            .filter(move |(number, _)| number % cores == core || core % count == *number)
            .map(|(_, socket)| socket)
    }
}

// === impl AdminDoor ===

impl AdminDoor {
    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

// === impl Unbound ===

impl Unbound {
    fn listener(number: usize, address: SocketAddr, error: io::Error) -> Self {
        Self {
            listener: Some(number),
            address,
            error,
        }
    }

    /// What would be right.
    pub fn cure(&self) -> Option<&'static str> {
        match self.error.kind() {
            io::ErrorKind::AddrInUse => Some(
                "another program listens there (`ss -ltnp` names it): stop it, or use another port",
            ),
            io::ErrorKind::AddrNotAvailable => {
                Some("this machine has no such address; `0.0.0.0` and `[::]` are all that it has")
            }
            io::ErrorKind::PermissionDenied => Some(
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE; or use a higher one",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Unbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.listener {
            Some(_) => "cannot listen on",
            None => "cannot open the admin port on",
        };
        write!(f, "{what} {}: {}", self.address, self.error)
    }
}

impl std::error::Error for Unbound {}

/// A socket for each core, of an address that nobody else has. Where a door of our own has the
/// port, on another address, the kernel lets both listen.
fn bind(address: SocketAddr, workers: usize, open: &[Arc<Door>]) -> io::Result<Vec<TcpListener>> {
    let mut ours = open.iter().map(|door| door.address.port());
    if !ours.any(|port| port == address.port()) {
        listen::must_be_free(address)?;
    }
    let first = listen::bind(address)?;
    let address = first.local_addr()?;
    let others = (1..workers).map(|_| listen::bind(address));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// The doors of `all` that `others` does not have.
fn without<'a>(
    all: &'a [Arc<Door>],
    others: &'a [Arc<Door>],
) -> impl Iterator<Item = &'a Arc<Door>> {
    all.iter()
        .filter(|door| !others.iter().any(|other| other.id() == door.id()))
}

fn addresses_without(all: &[Arc<Door>], others: &[Arc<Door>]) -> Vec<SocketAddr> {
    without(all, others).map(|door| door.address).collect()
}

/// Waits until nobody accepts there any more, so that the addresses can be had again.
fn wait_for(gone: &[Weak<()>]) {
    for _ in 0..LOOKS {
        if gone.iter().all(|door| door.strong_count() == 0) {
            return;
        }
        thread::sleep(LOOK);
    }
}
