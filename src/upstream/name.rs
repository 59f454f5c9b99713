//! Servers by name. A look-up blocks: never on a thread that serves.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The most addresses of one name that are used.
const MOST: usize = 64;

/// A host name and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

// === impl Name ===

impl Name {
    /// All its addresses, in an order that does not depend on the answer's. Waits for the system's
    /// resolver, however long that takes.
    pub fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs()?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MOST);
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        }
        Ok(addresses)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
