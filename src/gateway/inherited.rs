//! The sockets and secrets that this process received at its start from the old process of a handover or
//! from systemd. Matches addresses and never opens a socket.

use std::net::{SocketAddr, TcpListener};

use super::handover::HandoverReceiver;
use crate::tls::SavedKeys;

/// The inherited items that were not claimed yet.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    listeners: Vec<TcpListener>,
    admin: Option<TcpListener>,
    /// The secret of the old process.
    pub(super) secret: Option<[u8; 32]>,
    /// The TLS ticket keys of the old process.
    pub(super) tickets: Option<SavedKeys>,
    /// The receiver for the rest of the handover.
    pub(super) receiver: Option<HandoverReceiver>,
}

// === impl InheritedSockets ===

impl InheritedSockets {
    /// Adds a socket of a listener.
    pub fn add(&mut self, socket: TcpListener) {
        self.listeners.push(socket);
    }

    /// Adds the admin port's socket.
    pub fn add_admin(&mut self, socket: TcpListener) {
        self.admin = Some(socket);
    }

    /// Takes the sockets of a listener, all with one address. Empty if none matches. Port 0 matches any port.
    pub(super) fn listener(&mut self, requested: SocketAddr) -> Vec<TcpListener> {
        let mut address = None;
        let is_it = |socket: &mut TcpListener| {
            let own = socket.local_addr().ok();
            let fits = own.is_some_and(|own| fits(requested, own))
                && (address.is_none() || own == address);
            if fits {
                address = own;
            }
            fits
        };
        self.listeners.extract_if(.., is_it).collect()
    }

    /// Takes the admin port's socket if it has this address. Sockets from systemd are matched by port.
    pub(super) fn admin(&mut self, requested: SocketAddr) -> Option<TcpListener> {
        let own = |socket: &TcpListener| socket.local_addr().is_ok_and(|own| fits(requested, own));
        if self.admin.as_ref().is_some_and(own) {
            return self.admin.take();
        }
        match requested.port() {
            0 => None,
            _ => self.listener(requested).into_iter().next(),
        }
    }

    /// Returns the addresses of unclaimed sockets, which will be closed.
    pub fn unclaimed(&self) -> Vec<SocketAddr> {
        let all = self.listeners.iter().chain(&self.admin);
        let mut addresses: Vec<_> = all.filter_map(|s| s.local_addr().ok()).collect();
        addresses.dedup();
        addresses
    }
}

/// Returns whether a socket on `own` matches the requested address `requested`.
fn fits(requested: SocketAddr, own: SocketAddr) -> bool {
    requested.ip() == own.ip() && (requested.port() == 0 || requested.port() == own.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(addresses: &[SocketAddr]) -> (InheritedSockets, Vec<SocketAddr>) {
        let mut inherited = InheritedSockets::default();
        let mut own = Vec::new();
        for address in addresses {
            let socket = TcpListener::bind(address).unwrap();
            own.push(socket.local_addr().unwrap());
            inherited.add(socket.try_clone().unwrap());
            inherited.add(socket);
        }
        (inherited, own)
    }

    fn any() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn a_listener_gets_all_sockets_of_its_address_and_no_other() {
        let (mut inherited, own) = given(&[any(), any()]);
        let sockets = inherited.listener(own[1]);
        let addresses: Vec<_> = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
        assert_eq!(addresses, [own[1], own[1]]);
        assert!(inherited.listener(own[1]).is_empty());
        assert!(inherited.listener("[::1]:0".parse().unwrap()).is_empty());
        assert_eq!(inherited.unclaimed(), [own[0]]);
        // Port 0 takes the sockets of one port.
        assert_eq!(inherited.listener(any()).len(), 2);
        assert!(inherited.unclaimed().is_empty());
    }

    #[test]
    fn the_admin_port_takes_a_listener_s_socket_only_by_its_number() {
        let (mut inherited, own) = given(&[any()]);
        assert!(inherited.admin(any()).is_none());
        let admin = inherited.admin(own[0]).unwrap();
        assert_eq!(admin.local_addr().unwrap(), own[0]);
        inherited.add_admin(admin);
        assert!(inherited.admin(any()).is_some());
    }
}
