//! Listeners that come, go and change at a reload, and other settings of the whole process.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::harness::{Answer, Client, Frames, Heard, Origin, Process, Running, wait_until};

const PLAIN: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n";
const SECOND: &str = "[[listeners]]\naddress = \"[::1]:0\"\n";

/// A configuration with these listeners.
fn config(listeners: &str) -> String {
    format!(
        "[server]\nworkers = 2\n[log]\naccess = \"off\"\n{listeners}\
         [[upstreams]]\nname = \"origin\"\nservers = [\"{{origin}}\"]\n\
         [[routes]]\nupstream = \"origin\"\n"
    )
}

fn is_closed(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

#[test]
fn a_listener_is_added_and_removed_while_the_others_keep_serving() {
    let gateway = Running::on(&config(PLAIN));
    let first = gateway.address(0);
    let mut kept = gateway.client().connect();
    assert_eq!(kept.get("/").status, 200);

    gateway
        .reload_whole(&config(&format!("{PLAIN}{SECOND}")))
        .unwrap();
    assert_eq!(gateway.address(0), first);
    let second = gateway.address(1);
    assert!(second.is_ipv6());
    Client::plain(second).get("/").times(8).all_are(200);
    assert_eq!(kept.get("/").status, 200);

    // In the other order it is the same listener, with the same port.
    gateway
        .reload_whole(&config(&format!("{SECOND}{PLAIN}")))
        .unwrap();
    assert_eq!((gateway.address(0), gateway.address(1)), (second, first));
    let mut leaving = Client::plain(second).connect();
    assert_eq!(leaving.get("/").header("connection"), None);

    gateway.reload_whole(&config(PLAIN)).unwrap();
    assert!(is_closed(second));
    // A request that was on its way is answered, and told that it was the last.
    let last = leaving.get("/");
    assert_eq!(
        (last.status, last.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(leaving.rest(), b"");
    let answer = kept.get("/");
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    let metrics = gateway.metrics();
    assert!(!metrics.contains("listener=\"[::1]:0\""), "{metrics}");
}

#[test]
fn requests_in_flight_on_a_removed_listener_finish() {
    let (came, arrivals) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(gone);
    let came = Mutex::new(came);
    let origin = Origin::answering(move |_| {
        came.lock().unwrap().send(()).unwrap();
        let _ = gone.lock().unwrap().recv();
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nheld".to_vec()
    });
    let gateway = Running::before(origin, &config(&format!("{PLAIN}{SECOND}")));
    let second = gateway.address(1);
    let mut busy = Client::plain(second).connect();
    busy.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    arrivals.recv().unwrap();
    let mut silent = Client::plain(second).connect();
    let streams = Client::plain(second).connect();
    let streams = thread::spawn(move || Frames::default().heard(streams));
    wait_until("all are there", || {
        let metrics = gateway.metrics();
        let open = metrics
            .lines()
            .filter(|line| line.starts_with("lockgate_connections{listener=\"[::1]:0\""));
        let counts = open.map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
        counts.sum::<u32>() == 3
    });
    gateway.reload_whole(&config(PLAIN)).unwrap();
    assert!(is_closed(second));
    assert_eq!(silent.rest(), b"");
    assert_eq!(streams.join().unwrap(), Heard::Goaway(0));
    go.send(()).unwrap();
    let answer = busy.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "held"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(busy.rest(), b"");
}

#[test]
fn an_address_that_cannot_be_bound_changes_nothing() {
    let gateway = Running::on(&config(PLAIN));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let others = TcpListener::bind(taken);
    assert!(others.is_err());
    let wanted = format!("{PLAIN}{SECOND}[[listeners]]\naddress = \"{taken}\"\n");
    let route = "[[routes]]\npath = \"/new\"\nrespond = { body = \"new\" }\n";
    let refused = gateway
        .reload_whole(&(config(&wanted) + route))
        .unwrap_err();
    let expected = format!("error: cannot listen on {taken}: ");
    assert!(refused.text.contains(&expected), "{refused}");
    assert!(refused.text.contains("gateway.toml:10:11: "), "{refused}");
    assert_eq!(gateway.gateway().addresses().len(), 1);
    let answer = gateway.client().get("/new").send();
    assert!(answer.is_from_origin());
}

#[test]
fn a_listener_keeps_its_connections_when_it_gets_tls() {
    let gateway = Running::on(&config(PLAIN));
    let address = gateway.address(0);
    let mut plain = gateway.client().connect();
    assert_eq!(plain.get("/").status, 200);
    gateway
        .reload_whole(&config(&format!("{PLAIN}[listeners.tls]\n")))
        .unwrap();
    assert_eq!(gateway.address(0), address);
    assert_eq!(plain.get("/").status, 200);
    Client::tls(address).get("/").times(4).all_are(200);
    gateway.reload_whole(&config(PLAIN)).unwrap();
    Client::plain(address).get("/").times(4).all_are(200);
    assert_eq!(plain.get("/").status, 200);
}

#[test]
fn a_changed_connection_limit_applies_immediately() {
    let one = |max: usize| {
        config(PLAIN).replace("[server]", &format!("[server]\nmax_connections = {max}"))
    };
    let gateway = Running::on(&one(1));
    let mut first = gateway.client().connect();
    assert_eq!(first.get("/").status, 200);
    let mut second = gateway.client().connect();
    second.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    gateway.reload_whole(&one(2)).unwrap();
    assert_eq!(second.answer().status, 200);
    assert_eq!(first.get("/").status, 200);
}

#[test]
fn the_admin_port_moves() {
    let hello = "[log]\naccess = \"off\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
                 [[routes]]\nrespond = { body = \"hello\" }\n";
    let process = Process::run(hello);
    let with = |address: &str| format!("[admin]\naddress = \"{address}\"\n{hello}");
    process.reload(&with("127.0.0.1:0"));
    let first = process.admin();
    Client::plain(first).get("/readyz").times(1).all_are(200);
    let taken = process.address(0).to_string();
    process.reload(&with(&taken));
    wait_until("it says why", || {
        process.logged("cannot open the admin port on").len() == 1
    });
    Client::plain(first).get("/readyz").times(1).all_are(200);
    process.reload(&with("[::1]:0"));
    let ports = || process.logged("INFO  admin port ");
    wait_until("it has moved", || ports().len() == 2);
    let lines = ports();
    let (_, second) = lines[1].rsplit_once("address=").unwrap();
    let second: SocketAddr = second.trim_matches('"').parse().unwrap();
    Client::plain(second).get("/readyz").times(1).all_are(200);
    wait_until("the old one is closed", || is_closed(first));
    process.reload(hello);
    wait_until("there is none", || is_closed(second));
}

/// A client that always has a connection, and takes another when it is told that one has ended.
fn ask_until(done: &AtomicBool, address: SocketAddr, answered: &AtomicU64) {
    while !done.load(Ordering::SeqCst) {
        let mut wire = Client::plain(address).connect();
        while !done.load(Ordering::SeqCst) {
            let answer: Answer = wire.get("/");
            assert_eq!(answer.status, 200);
            answered.fetch_add(1, Ordering::SeqCst);
            if answer.header("connection") == Some("close") {
                assert_eq!(wire.rest(), b"");
                break;
            }
        }
    }
}

#[test]
fn listeners_are_added_and_removed_under_load() {
    let gateway = Running::on(&config(PLAIN));
    let stays = gateway.address(0);
    let both = config(&format!("{PLAIN}{SECOND}"));
    let (done, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| ask_until(&done, stays, &answered));
        }
        let steps = scope.spawn(|| {
            for _ in 0..10 {
                gateway.reload_whole(&both).unwrap();
                let (served, second) = (AtomicU64::new(0), gateway.address(1));
                thread::scope(|scope| {
                    for _ in 0..8 {
                        scope.spawn(|| ask_to_the_end(second, &served));
                    }
                    wait_until("all are served", || served.load(Ordering::SeqCst) == 8);
                    gateway.reload_whole(&config(PLAIN)).unwrap();
                });
            }
        });
        let ended = steps.join();
        done.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    assert!(answered.load(Ordering::SeqCst) > 16);
}

/// Asks on one connection until its listener is gone; the last answer says so.
fn ask_to_the_end(address: SocketAddr, served: &AtomicU64) {
    let mut wire = Client::plain(address).connect();
    assert_eq!(wire.get("/").status, 200);
    served.fetch_add(1, Ordering::SeqCst);
    loop {
        let answer = wire.get("/");
        assert_eq!(answer.status, 200);
        if answer.header("connection") == Some("close") {
            assert_eq!(wire.rest(), b"");
            return;
        }
    }
}
