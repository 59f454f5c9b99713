//! What this process was given at its start, by the gateway before it or by systemd: listening
//! sockets above all. It knows addresses and never opens a socket.

use std::net::{SocketAddr, TcpListener};

use super::handover::HandoverReceiver;
use crate::tls::SavedKeys;

/// What was given and not claimed yet.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    listeners: Vec<TcpListener>,
    admin: Option<TcpListener>,
    /// The secret of the gateway before.
    pub(super) secret: Option<[u8; 32]>,
    /// The keys of the tickets that it gave to TLS clients.
    pub(super) tickets: Option<SavedKeys>,
    /// Where more comes from.
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
        // Port 0 takes those of one port.
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
