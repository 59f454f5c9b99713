//! Clients that take their time, and those who only wait for others.

mod windows;

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::{Client, Frames, Heard, Origin, Process, Running, WHOLE, Wire, wait_until};

/// Short enough for a test to wait for. A rate is averaged over 30 s, which none waits for.
const SHORT: &str = r#"
[limits]
header_timeout = "500ms"
request_body_timeout = "500ms"
response_write_timeout = "500ms"
"#;

/// Longer than any of these, with all that a sweep may add.
const LONG: Duration = Duration::from_millis(1800);

fn timeouts(gateway: &Running) -> String {
    let metrics = gateway.metrics();
    let lines = metrics.lines();
    let mut own = lines.filter_map(|l| l.strip_prefix("lockgate_protocol_errors_total{kind="));
    let line = own.find_map(|line| line.strip_prefix("\"timeout\"} "));
    line.unwrap().to_owned()
}

/// A request of which half of the body is there.
fn half_sent(client: &Client, path: &str) -> Wire {
    let mut wire = client.connect();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: example.com\r\ncontent-length: 8\r\n\r\nhalf");
    wire.send(head.as_bytes());
    wire
}

/// An origin whose answers have no end.
fn endless() -> Origin {
    Origin::scripted(|mut stream| {
        let mut head = [0; 4096];
        let _ = std::io::Read::read(&mut stream, &mut head);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    })
}

#[test]
fn a_stalled_body_gets_408() {
    let gateway = Running::with(SHORT);
    for client in [gateway.client(), gateway.tls_client()] {
        let mut wire = half_sent(&client, "/");
        let answer = wire.answer();
        assert_eq!(answer.status, 408);
        assert_eq!(answer.header("connection"), Some("close"));
        wire.rest();
    }
    assert_eq!(timeouts(&gateway), "2");
}

#[test]
fn a_stalled_body_gets_408_from_a_rule_too() {
    let rule = "[[rules]]\nname = \"r\"\nmitigate = 'http.request.method eq \"POST\"'\n\
                action = \"shadow\"\nresponse = \"ok\"\n[responses.ok]\nstatus = 200\n";
    let gateway = Running::with(&format!("{SHORT}{rule}"));
    let mut wire = half_sent(&gateway.client(), "/");
    assert_eq!(wire.answer().status, 408);
    wire.rest();
    assert_eq!(timeouts(&gateway), "1");
}

#[test]
fn a_stalled_http2_body_gets_a_response_too() {
    let gateway = Running::with(SHORT);
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "example.com"),
    ];
    let frames = Frames::default().headers(&fields, 0).data(b"half", 0);
    let heard = frames.heard(gateway.client().connect());
    assert_eq!(heard, Heard::Status(408));
}

#[test]
fn a_stream_without_a_window_is_reset() {
    let gateway = Running::with(SHORT);
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "example.com"),
    ];
    // INITIAL_WINDOW_SIZE is 0.
    let shut = Frames::default().frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let frames = shut.headers(&fields, WHOLE | 1);
    let mut wire = gateway.client().connect();
    frames.open(&mut wire);
    let mut last = 0;
    while let Some(head) = wire.try_exactly(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        wire.exactly(length as usize);
        last = head[3];
        if last == 3 {
            break;
        }
    }
    assert_eq!(last, 3, "RST_STREAM");
    assert_eq!(timeouts(&gateway), "1");
}

#[test]
fn a_slow_origin_does_not_time_out_its_client() {
    let origin = Origin::scripted(|mut stream| {
        thread::sleep(LONG);
        let mut bytes = [0; 1 << 16];
        let mut seen = 0;
        while seen < 4 << 20 {
            seen += std::io::Read::read(&mut stream, &mut bytes).unwrap();
        }
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nevent\n";
        stream.write_all(head.as_bytes()).unwrap();
        thread::sleep(LONG);
        stream.write_all(b"event\n").unwrap();
    });
    let gateway = Running::with_origin(origin, SHORT);
    let client = gateway.client().post("/").body(&vec![b'u'; 5 << 20]);
    let answer = client.send();
    assert_eq!((answer.status, answer.text().len()), (200, 12));
    assert_eq!(timeouts(&gateway), "0");
}

#[test]
fn a_client_that_does_not_read_is_disconnected_and_its_origin_released() {
    let left = Arc::new(AtomicBool::new(false));
    let noted = left.clone();
    let origin = Origin::scripted(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
        noted.store(true, Ordering::SeqCst);
    });
    let gateway = Running::with_origin(origin, SHORT);
    for client in [gateway.client(), gateway.tls_client()] {
        left.store(false, Ordering::SeqCst);
        let mut wire = client.connect();
        wire.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
        wait_until("the origin is let go", || left.load(Ordering::SeqCst));
    }
    assert_eq!(timeouts(&gateway), "2");
}

#[test]
fn a_stalled_client_releases_its_slot() {
    let rule = "[[rules]]\nname = \"one\"\ncount = 'http.host eq \"example.com\"'\n\
                algorithm = \"concurrency\"\nlimit = 1\n";
    // Long enough to be seen on a machine that is busy.
    let config = format!("{}{rule}", SHORT.replace("500ms", "4s"));
    let gateway = Running::with(&config);
    let ask = |gateway: &Running| gateway.client().get("/").send().status;
    let mut wire = None;
    // Whoever asks may be the first on another core: then the place is not the wire's.
    wait_until("the place is taken", || {
        drop(wire.take());
        thread::sleep(Duration::from_millis(50));
        wire = Some(half_sent(&gateway.client(), "/"));
        thread::sleep(Duration::from_millis(50));
        ask(&gateway) == 429
    });
    wait_until("the place is free", || ask(&gateway) == 200);
    drop(wire);

    let gateway = Running::with_origin(endless(), &config);
    let mut wire = gateway.client().connect();
    wire.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    wire.head();
    let head = |gateway: &Running| {
        let mut other = gateway.client().connect();
        other.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
        crate::harness::Answer::parse(&other.head()).status
    };
    wait_until("the place is taken", || head(&gateway) == 429);
    wait_until("the place is free", || head(&gateway) == 200);
    drop(wire);
}

#[test]
fn connections_of_an_address_beyond_the_limit_are_refused() {
    let config = r#"
[server]
workers = 2
[log]
access = "off"
[limits]
max_connections_per_ip = 2
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;
    let gateway = Running::on(config);
    let mut open: Vec<Wire> = (0..2).map(|_| gateway.client().connect()).collect();
    for wire in &mut open {
        assert_eq!(wire.get("/").status, 200);
    }
    assert!(gateway.client().connect().rest().is_empty());
    let refused = "lockgate_protocol_errors_total{kind=\"too_many_connections\"} 1";
    assert!(gateway.metrics().contains(refused));
    assert_eq!(open[0].get("/").status, 200);
    open.pop();
    wait_until("there is room again", || {
        gateway.client().get("/").send().status == 200
    });
    // Trusted proxies speak for many.
    let trusting = format!("{config}[client_ip]\ntrusted_proxies = [\"127.0.0.0/8\"]\n");
    gateway.reload_whole(&trusting).unwrap();
    let mut many: Vec<Wire> = (0..5).map(|_| gateway.client().connect()).collect();
    for wire in &mut many {
        assert_eq!(wire.get("/").status, 200);
    }
}

#[test]
fn changed_limits_apply_to_new_connections() {
    let gateway = Running::with("");
    let mut before = half_sent(&gateway.client(), "/before");
    wait_until("it is being forwarded", || {
        gateway.metrics().contains("upstream_in_flight{") && gateway.origin.count() == 0
    });
    gateway.reload(SHORT).unwrap();
    let mut after = half_sent(&gateway.client(), "/after");
    assert_eq!(after.answer().status, 408);
    before.send(b"done");
    let answer = before.answer();
    assert_eq!((answer.status, answer.text()), (200, "halfdone".into()));
}

/// So many descriptors are too few for one connection to its origin for each stream.
const FEW: usize = 100;

#[test]
fn the_admin_port_responds_when_file_descriptors_are_exhausted() {
    let held = Arc::new(Mutex::new(Vec::<TcpStream>::new()));
    let holds = held.clone();
    let origin = Origin::scripted(move |stream| holds.lock().unwrap().push(stream));
    let config = format!(
        "[server]\nworkers = 1\nmax_connections = 1000\n[log]\naccess = \"off\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[[upstreams]]\nname = \"o\"\n\
         servers = [\"{}\"]\n[[routes]]\npath = \"/own\"\nrespond = {{ body = \"hello\" }}\n\
         [[routes]]\nupstream = \"o\"\n",
        origin.address
    );
    let process = Process::run_with_descriptors(FEW, &config);
    let warned = process.logged("too few file descriptors");
    assert!(warned[0].contains("descriptors=100"), "{warned:?}");
    let client = Client::plain(process.address(0));
    // Each stream of a few connections takes a descriptor at the other side.
    let mut wires: Vec<Wire> = (0..4).map(|_| client.connect()).collect();
    for wire in &mut wires {
        streams(50).open(wire);
    }
    wait_until("there are none left", || {
        !process.logged("upstream failed").is_empty()
    });
    let waiting = client.clone().get("/own");
    let waiting = thread::spawn(move || waiting.send().status);
    let admin = Client::admin(process.admin());
    for _ in 0..20 {
        admin.clone().get("/healthz").times(3).all_are(200);
        admin.clone().get("/metrics").times(1).all_are(200);
    }
    drop(wires);
    held.lock().unwrap().clear();
    assert_eq!(waiting.join().unwrap(), 200);
    client.get("/own").times(5).all_are(200);
}

/// Requests on so many streams.
fn streams(count: u32) -> Frames {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "example.com"),
    ];
    let block = crate::harness::block(&fields);
    (0..count).fold(Frames::default(), |frames, n| {
        frames.frame(1, WHOLE | 1, 2 * n + 1, &block)
    })
}
