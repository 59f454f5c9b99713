//! What this process was given at its start, by the gateway before it or by systemd: listening
//! sockets above all. It knows addresses and never opens a socket.

use std::net::{SocketAddr, TcpListener};

use super::handover::Heir;

/// What was given and not claimed yet.
#[derive(Debug, Default)]
pub struct Inherited {
    listeners: Vec<TcpListener>,
    admin: Option<TcpListener>,
    /// The secret of the gateway before.
    pub(super) secret: Option<[u8; 32]>,
    /// Where more comes from.
    pub(super) heir: Option<Heir>,
}

// === impl Inherited ===

impl Inherited {
    /// Adds a socket of a listener.
    pub fn add(&mut self, socket: TcpListener) {
        self.listeners.push(socket);
    }

    /// Adds the admin port's socket.
    pub fn add_admin(&mut self, socket: TcpListener) {
        self.admin = Some(socket);
    }

    /// The sockets of a listener, all of one address; empty: there are none. Port 0 is any port.
    pub(super) fn listener(&mut self, asked: SocketAddr) -> Vec<TcpListener> {
        let mut address = None;
        let is_it = |socket: &mut TcpListener| {
            let own = socket.local_addr().ok();
            let fits =
                own.is_some_and(|own| fits(asked, own)) && (address.is_none() || own == address);
            if fits {
                address = own;
            }
            fits
        };
        self.listeners.extract_if(.., is_it).collect()
    }

    /// The admin port's socket, if it has this address. One that systemd opened may be any of them.
    pub(super) fn admin(&mut self, asked: SocketAddr) -> Option<TcpListener> {
        let own = |socket: &TcpListener| socket.local_addr().is_ok_and(|own| fits(asked, own));
        if self.admin.as_ref().is_some_and(own) {
            return self.admin.take();
        }
        match asked.port() {
            0 => None,
            _ => self.listener(asked).into_iter().next(),
        }
    }

    /// The addresses that nobody asked for; their sockets close.
    pub fn unclaimed(&self) -> Vec<SocketAddr> {
        let all = self.listeners.iter().chain(&self.admin);
        let mut addresses: Vec<_> = all.filter_map(|s| s.local_addr().ok()).collect();
        addresses.dedup();
        addresses
    }
}

/// Whether a socket on `own` is what `asked` asks for.
fn fits(asked: SocketAddr, own: SocketAddr) -> bool {
    asked.ip() == own.ip() && (asked.port() == 0 || asked.port() == own.port())
}
