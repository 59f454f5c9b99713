//! A network between the clients and the gateway: what is written on one side arrives on the other
//! after 0.5 to 2 ms, drawn anew for each write, and in order.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::dice::Dice;
use super::h1::dial;

/// The shortest and the longest delay of one direction, in microseconds.
const DELAY: (usize, usize) = (500, 2000);

/// An address whose connections lead to `gateway`, from the address of the client.
pub fn start(gateway: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let server = dial(gateway, client.peer_addr().unwrap().ip());
            client.set_nodelay(true).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let seed = 1_000_000 + 2 * number as u64;
            thread::spawn(move || carry(client, server, Dice::new(seed)));
            thread::spawn(move || carry(back.0, back.1, Dice::new(seed + 1)));
        }
    });
    address
}

/// Carries one direction of a connection until it ends.
fn carry(mut from: TcpStream, mut to: TcpStream, mut dice: Dice) {
    let (sender, arrived) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, bytes) in arrived {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut buffer = [0; 16 * 1024];
    let mut last = Instant::now();
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let micros = DELAY.0 + dice.below(DELAY.1 - DELAY.0 + 1);
        last = last.max(Instant::now() + Duration::from_micros(micros as u64));
        if sender.send((last, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}
