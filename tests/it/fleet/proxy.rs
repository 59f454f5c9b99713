//! A TCP proxy in front of a test server that delays or swallows what the server sends.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A proxy that forwards everything until a test changes that.
pub struct FaultProxy {
    /// Where the proxy listens.
    pub address: SocketAddr,
    faults: Arc<ProxyFaults>,
}

/// What the proxy does with the bytes that it forwards.
#[derive(Default)]
struct ProxyFaults {
    /// How long each reply waits, in milliseconds.
    delay: AtomicU64,
    /// Whether bytes of both sides disappear while connections stay open.
    swallows: AtomicBool,
    /// Whether replies disappear.
    swallows_replies: AtomicBool,
    connections: AtomicUsize,
}

impl FaultProxy {
    /// A proxy in front of a server on this port.
    pub fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(ProxyFaults::default());
        let shared = faults.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    shared.clone().forward(client, server);
                }
            }
        });
        Self { address, faults }
    }

    /// The URL of the server through the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Delays every reply from now on.
    pub fn delay(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.faults.delay.store(millis, Ordering::SeqCst);
    }

    /// Forwards nothing while `on`. Connections open and stay open: the other side looks alive. Those that were used
    /// meanwhile never work again.
    pub fn swallow(&self, on: bool) {
        self.faults.swallows.store(on, Ordering::SeqCst);
    }

    /// Forwards commands, but no replies, while `on`. The connections of lost replies get no further ones.
    pub fn swallow_replies(&self, on: bool) {
        self.faults.swallows_replies.store(on, Ordering::SeqCst);
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.faults.connections.load(Ordering::SeqCst)
    }
}

// === impl ProxyFaults ===

impl ProxyFaults {
    fn forward(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let faults = self.clone();
        thread::spawn(move || faults.copy(from, to, false));
        thread::spawn(move || self.copy(server, client, true));
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, are_replies: bool) {
        let mut buffer = [0; 64 * 1024];
        let mut is_dead = false;
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if are_replies {
                let delay = self.delay.load(Ordering::SeqCst);
                thread::sleep(Duration::from_millis(delay));
            }
            // TCP loses nothing in between: whoever has lost a byte gets no further one.
            is_dead |= self.swallows.load(Ordering::SeqCst)
                || are_replies && self.swallows_replies.load(Ordering::SeqCst);
            if !is_dead && to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        _ = from.shutdown(Shutdown::Both);
        _ = to.shutdown(Shutdown::Both);
    }
}
