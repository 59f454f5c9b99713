//! The end of a process under load: everybody is answered, and it ends well.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::{Client, Origin, Process, Wire, wait_until};

const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n";

/// An origin that answers nobody until it is let go.
struct Held {
    origin: Origin,
    waiting: Arc<AtomicUsize>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Held {
    fn start() -> Self {
        let waiting = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (seen, shut) = (waiting.clone(), gate.clone());
        let origin = Origin::answering(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            let (open, word) = &*shut;
            drop(
                word.wait_while(open.lock().unwrap(), |open| !*open)
                    .unwrap(),
            );
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nheld".to_vec()
        });
        Self {
            origin,
            waiting,
            gate,
        }
    }

    fn let_go(&self) {
        let (open, word) = &*self.gate;
        *open.lock().unwrap() = true;
        word.notify_all();
    }
}

fn config(origin: &Origin, server: &str) -> String {
    format!(
        "[server]\nworkers = 2\n{server}\n[log]\naccess = \"off\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n\
         [[upstreams]]\nname = \"origin\"\nservers = [\"{}\"]\n\
         [[routes]]\npath = \"/own\"\nrespond = {{ body = \"own\" }}\n\
         [[routes]]\nupstream = \"origin\"\n",
        origin.address
    )
}

#[test]
fn two_hundred_requests_in_flight_all_get_a_response() {
    let held = Held::start();
    let mut process = Process::run(&config(&held.origin, ""));
    let (plain, tls) = (
        Client::plain(process.address(0)),
        Client::tls(process.address(1)),
    );
    let mut wires: Vec<Wire> = (0..200)
        .map(|number| match number % 4 {
            0 => tls.connect(),
            _ => plain.connect(),
        })
        .collect();
    wires.iter_mut().for_each(|wire| wire.send(ASK));
    wait_until("all are at the origin", || {
        held.waiting.load(Ordering::SeqCst) == 200
    });
    process.signal("TERM");
    wait_until("every core has heard of it", || {
        TcpStream::connect(process.address(0)).is_err()
    });
    assert!(process.runs());
    held.let_go();
    for wire in &mut wires {
        let answer = wire.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "held"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(wire.rest(), b"");
    }
    assert_eq!(process.exit_code(), Some(0));
    assert!(process.logged("drain timed out").is_empty());
}

/// Requests that are on their way when the signal comes are answered too: each connection hears
/// which answer is its last.
#[test]
fn a_busy_connection_gets_connection_close_on_its_last_response() {
    let held = Held::start();
    let mut process = Process::run(&config(&held.origin, ""));
    let address = process.address(0);
    let (asked, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut wire = Client::plain(address).connect();
                loop {
                    let answer = wire.get("/own");
                    assert_eq!((answer.status, answer.text().as_str()), (200, "own"));
                    asked.fetch_add(1, Ordering::SeqCst);
                    if answer.header("connection") == Some("close") {
                        assert!(stopped.load(Ordering::SeqCst));
                        assert_eq!(wire.rest(), b"");
                        return;
                    }
                }
            });
        }
        wait_until("they ask", || asked.load(Ordering::SeqCst) > 200);
        stopped.store(true, Ordering::SeqCst);
        process.signal("TERM");
    });
    assert_eq!(process.exit_code(), Some(0));
}

/// Half a head was there before the signal. It may be finished for half of the time that the
/// gateway has; after that there is no time left for an answer of an origin.
#[test]
fn a_request_completed_too_late_is_refused_with_a_message() {
    let held = Held::start();
    let mut process = Process::run(&config(&held.origin, "drain_timeout = \"6s\""));
    let mut halves: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut half = TcpStream::connect(process.address(0)).unwrap();
            half.write_all(b"GET /own HTTP/1.1\r\nhost: example.com\r\n")
                .unwrap();
            half
        })
        .collect();
    // It has read all of them when it has answered one that came later.
    Client::plain(process.address(0))
        .get("/own")
        .times(4)
        .all_are(200);
    process.signal("TERM");
    wait_until("it stops", || !process.logged(" stopping").is_empty());
    let mut refused = false;
    for half in &mut halves {
        half.write_all(b"\r\n").unwrap();
        let mut answer = String::new();
        half.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        refused = answer.starts_with("HTTP/1.1 503 ");
        if refused {
            break;
        }
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        thread::sleep(Duration::from_millis(200));
    }
    assert!(refused);
    drop(halves);
    assert_eq!(process.exit_code(), Some(0));
}

/// The kernel has accepted them, and nobody has taken them yet; some of them wait for a core that
/// has no connection of its own.
#[test]
fn connections_in_the_accept_queue_are_served() {
    let held = Held::start();
    let config = config(&held.origin, "max_connections = 1");
    let mut process = Process::run(&config);
    let client = Client::plain(process.address(0));
    let mut inside = client.connect();
    inside.send(ASK);
    wait_until("one is at the origin", || {
        held.waiting.load(Ordering::SeqCst) == 1
    });
    let mut outside: Vec<Wire> = (0..16).map(|_| client.connect()).collect();
    for wire in &mut outside {
        wire.send(b"GET /own HTTP/1.1\r\nhost: example.com\r\n\r\n");
    }
    // Room for them comes with the word to end.
    process.reload(&config.replace("max_connections = 1", "max_connections = 99"));
    process.signal("TERM");
    for wire in &mut outside {
        assert_eq!(wire.answer().text(), "own");
    }
    held.let_go();
    assert_eq!(inside.answer().text(), "held");
    assert_eq!(process.exit_code(), Some(0));
}
