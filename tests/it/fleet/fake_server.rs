//! A proxy that replies to script calls with garbage instead of the server's reply.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The garbage that script calls get. `None` lets them pass.
type Garbage = Arc<Mutex<Option<Vec<u8>>>>;

/// A server that is a real one except for its replies to scripts.
pub struct FakeServer {
    address: SocketAddr,
    garbage: Garbage,
}

impl FakeServer {
    /// A fake in front of the server on this port.
    pub fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let garbage = Garbage::default();
        let shared = garbage.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                    thread::spawn(move || copy(from, to));
                    let shared = shared.clone();
                    thread::spawn(move || serve(client, server, &shared));
                }
            }
        });
        Self { address, garbage }
    }

    /// The URL of the fake.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Replies to scripts with these bytes from now on, and closes the connection if there are none. `None` replies
    /// as the server does.
    pub fn spoil(&self, garbage: Option<Vec<u8>>) {
        *self.garbage.lock().unwrap() = garbage;
    }
}

/// Forwards commands until one is a script call that gets garbage.
fn serve(mut client: TcpStream, mut server: TcpStream, garbage: &Garbage) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let commands = &buffer[..read];
        let is_script = commands.windows(4).any(|word| word == b"EVAL");
        let spoiled = garbage.lock().unwrap().clone().filter(|_| is_script);
        match spoiled {
            Some(garbage) if garbage.is_empty() => break,
            Some(garbage) => _ = client.write_all(&garbage),
            None if server.write_all(commands).is_err() => break,
            None => {}
        }
    }
    _ = client.shutdown(Shutdown::Both);
    _ = server.shutdown(Shutdown::Both);
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    _ = std::io::copy(&mut from, &mut to);
    _ = to.shutdown(Shutdown::Both);
}
