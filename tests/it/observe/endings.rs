//! Answers that have begun and do not come to their end: what the logs and the metrics say.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::parse;
use crate::harness::{Client, END, Echo, Folder, Frames, Origin, Process, Wire, run, wait_until};

/// A gateway in front of an origin.
struct Site {
    process: Process,
    log: PathBuf,
    _origin: Origin,
    _folder: Folder,
}

impl Site {
    fn before(origin: Origin) -> Self {
        Self::draining(origin, "1s")
    }

    /// The same with another `drain_timeout`.
    fn draining(origin: Origin, drain: &str) -> Self {
        let folder = Folder::new();
        let log = folder.path().join("access.log");
        let config = format!(
            r#"
            [server]
            workers = 1
            drain_timeout = "{drain}"
            [limits]
            response_write_timeout = "500ms"
            [log]
            access = {log:?}
            [admin]
            address = "127.0.0.1:0"
            [[listeners]]
            address = "127.0.0.1:0"
            [[upstreams]]
            name = "app"
            servers = ["{}"]
            [[routes]]
            path = "/own"
            respond = {{ body = "own" }}
            [[routes]]
            path = "/none"
            respond = {{ status = 304, body = "own" }}
            [[routes]]
            upstream = "app"
            "#,
            origin.address
        );
        Self {
            process: Process::run(&config),
            log,
            _origin: origin,
            _folder: folder,
        }
    }

    fn client(&self) -> Client {
        Client::plain(self.process.address(0))
    }

    /// The last of so many lines of the access log.
    fn line(&self, count: usize) -> Value {
        parse(&self.log, count).remove(count - 1)
    }

    fn counted(&self, series: &str) -> bool {
        let answer = Client::admin(self.process.admin()).get("/metrics").send();
        answer.text().contains(&format!("lockgate_{series}\n"))
    }
}

/// An origin that begins an answer and closes.
fn closing() -> Origin {
    Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.try_head();
        let _ = wire.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
    })
}

/// An origin whose answers have no end.
fn endless() -> Origin {
    Origin::scripted(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n");
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    })
}

/// An origin that begins an answer and says no more until the gateway hangs up.
fn pausing() -> Origin {
    Origin::scripted(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
        let _ = stream.read(&mut [0; 4096]);
    })
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn complete_responses_log_no_abort_reason() {
    let site = Site::before(Origin::start());
    let requests = [
        site.client().get("/"),
        site.client().method("HEAD", "/"),
        site.client().get("/own"),
        site.client().method("HEAD", "/own"),
    ];
    for request in requests {
        assert_eq!(request.send().status, 200);
    }
    assert_eq!(site.client().get("/none").send().status, 304);
    run(async {
        let mut talk = site.client().talk().await;
        for path in ["/", "/own"] {
            let told = talk.send(talk.request("GET", path)).await;
            assert_eq!((told.status, told.error.is_none()), (200, true));
        }
    });
    for line in parse(&site.log, 7) {
        assert!(line["cut"].is_null(), "{line}");
    }
    assert!(site.process.logged("response ended early").is_empty());
}

#[test]
fn an_abort_by_the_origin_is_logged_and_counted() {
    let site = Site::before(closing());
    site.client().raw(GET);
    let line = site.line(1);
    assert_eq!(
        (&line["cut"], &line["status"]),
        (&"upstream".into(), &200.into())
    );
    assert_eq!(line["bytes_out"], 9);
    run(async {
        let mut talk = site.client().talk().await;
        let told = talk.send(talk.request("GET", "/")).await;
        assert!(told.error.is_some());
    });
    assert_eq!(site.line(2)["cut"], "upstream");
    assert!(site.counted(r#"responses_cut_total{by="upstream"} 2"#));
    assert!(site.counted(r#"responses_cut_total{by="client"} 0"#));
    wait_until("it is in the log", || {
        !site.process.logged("response ended early").is_empty()
    });
    let said = site.process.logged("response ended early").remove(0);
    let server = format!("upstream=app server={}", site._origin.address);
    assert!(said.contains(" WARN ") && said.contains(&server), "{said}");
    let why = "the origin server ended its response early: the connection closed before the end of \
               the body";
    assert!(said.contains(why), "{said}");
    assert_eq!(said.matches("cut_short").count(), 0, "{said}");
}

#[test]
fn a_disconnect_and_a_client_that_does_not_read_have_different_reasons() {
    let site = Site::before(endless());
    let mut wire = site.client().connect();
    wire.send(GET);
    wire.exactly(1000);
    drop(wire);
    assert_eq!(site.line(1)["cut"], "client");
    // Its socket is full.
    let mut wire = site.client().connect();
    wire.send(GET);
    assert_eq!(site.line(2)["cut"], "slow_client");
    drop(wire);
    // The window of its stream is full, and those of others are not.
    let fields = [
        (":method", "GET"),
        (":path", "/"),
        (":scheme", "http"),
        (":authority", "a"),
    ];
    let mut wire = site.client().connect();
    Frames::default().headers(&fields, END).open(&mut wire);
    assert_eq!(site.line(3)["cut"], "slow_client");
    assert!(site.counted(r#"responses_cut_total{by="slow_client"} 2"#));
    assert!(site.process.logged("response ended early").is_empty());
}

/// The origin answers before it has heard all, and what follows has no meaning.
#[test]
fn a_request_that_aborts_its_own_response_is_logged_and_counted() {
    let site = Site::before(Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.head();
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
        wire.rest();
    }));
    let mut wire = site.client().connect();
    wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n");
    wire.head();
    assert_eq!(wire.exactly(9), b"only this");
    wire.send(b"no chunk\r\n");
    assert_eq!(wire.rest(), b"");
    let line = site.line(1);
    assert_eq!(
        (&line["cut"], &line["status"]),
        (&"request_body".into(), &200.into())
    );
    assert!(site.counted(r#"responses_cut_total{by="request_body"} 1"#));
    assert!(site.counted(r#"responses_cut_total{by="upstream"} 0"#));
    // The origin is not to blame.
    assert!(site.process.logged("response ended early").is_empty());
}

/// However long `drain_timeout` is.
#[test]
fn responses_cut_off_by_a_second_stop_are_logged() {
    let mut site = Site::draining(pausing(), "600s");
    let mut wire = site.client().connect();
    wire.send(GET);
    wire.head();
    wire.exactly(9);
    site.process.signal("TERM");
    wait_until("the stop was heard", || {
        !site.process.logged(" stopping").is_empty()
    });
    assert!(site.process.runs());
    site.process.signal("TERM");
    assert_eq!(site.line(1)["cut"], "drain");
    assert_eq!(wire.rest(), b"");
    assert_eq!(site.process.exit_code(), Some(1));
}

#[test]
fn responses_cut_off_by_the_drain_timeout_are_logged() {
    let site = Site::before(pausing());
    let mut wire = site.client().connect();
    wire.send(GET);
    wire.head();
    wire.exactly(9);
    std::thread::sleep(Duration::from_millis(50));
    site.process.signal("TERM");
    assert_eq!(site.line(1)["cut"], "drain");
}

fn socket_line(site: &Site, count: usize) -> (u64, u64, Value, Value) {
    let line = site.line(count);
    let bytes = |name: &str| line[name].as_u64().unwrap();
    assert_eq!(line["status"], 101);
    assert!(line["cut"].is_null(), "{line}");
    (
        bytes("bytes_in"),
        bytes("bytes_out"),
        line["ended_by"].clone(),
        line["duration_ms"].clone(),
    )
}

#[test]
fn a_tunnel_is_logged_when_it_ends() {
    let echo = Echo::start();
    let site = Site::before(Origin::at(echo.origin.address));
    let upgrade = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-key: abc\r\n\r\n"
        )
    };
    let open = |path: &str| {
        let mut wire = site.client().connect();
        wire.send(upgrade(path).as_bytes());
        assert_eq!(wire.answer().status, 101);
        wire
    };
    let mut first = open("/chat");
    assert_eq!(first.exactly(5), b"first");
    first.send(b"hello!");
    assert_eq!(first.exactly(6), b"hello!");
    // The log has no line while the tunnel is open, and another request is not the tunnel's.
    assert_eq!(site.client().get("/own").send().status, 200);
    assert_eq!(site.line(1)["status"], 200);
    assert!(site.line(1)["ended_by"].is_null());
    drop(first);
    let (bytes_in, bytes_out, ended_by, duration) = socket_line(&site, 2);
    assert_eq!((bytes_in, bytes_out, ended_by), (6, 11, "client".into()));
    assert!(duration.as_f64().unwrap() > 0.0);
    // Over HTTP/2.
    run(async {
        let mut talk = site.client().talk().await;
        let mut socket = talk.socket("/chat").await;
        assert_eq!(socket.hear(5).await, b"first");
        socket.say(b"bye");
        assert_eq!(socket.hear(3).await, b"bye");
        socket.end();
        assert_eq!(socket.hear(1).await, b"");
    });
    let (bytes_in, bytes_out, ended_by, _) = socket_line(&site, 3);
    assert_eq!((bytes_in, bytes_out, ended_by), (3, 8, "client".into()));
    assert_eq!(open("/chat?end").rest(), b"");
    assert_eq!(socket_line(&site, 4).2, "server");
    let mut last = open("/chat");
    assert_eq!(last.exactly(5), b"first");
    site.process.signal("TERM");
    let (bytes_in, bytes_out, ended_by, _) = socket_line(&site, 5);
    assert_eq!((bytes_in, bytes_out, ended_by), (0, 5, "gateway".into()));
}
