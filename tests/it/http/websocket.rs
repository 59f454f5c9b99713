//! WebSockets of HTTP/2 clients (RFC 8441): to rules and origins they are those of HTTP/1.1.

use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::harness::{
    Client, Echo, Frames, Heard, Origin, PUSHED, Process, Running, Wire, next_frame, run,
    wait_until,
};

const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nhost: example.com\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n";

/// One request at a time.
const ONE_PLACE: &str = "[[rules]]\nname = \"place\"\nmitigate = 'true'\nkey = []\n\
     algorithm = \"concurrency\"\nlimit = 1";

/// A gateway before an echo.
fn gateway(rules: &str) -> (Running, Echo) {
    let echo = Echo::start();
    let running = Running::with_origin(Origin::at(echo.origin.address), rules);
    (running, echo)
}

#[test]
fn bytes_flow_in_both_directions() {
    let (gateway, echo) = gateway("");
    for client in [gateway.client(), gateway.tls_client()] {
        run(async {
            let mut talk = client.talk().await;
            let mut socket = talk.socket("/chat").await;
            assert_eq!(socket.status, 200);
            assert_eq!(socket.headers["sec-websocket-protocol"], "chat");
            for name in ["sec-websocket-accept", "connection", "upgrade"] {
                assert!(!socket.headers.contains_key(name), "{name}");
            }
            assert_eq!(socket.hear(5).await, b"first");
            let noise: Vec<u8> = (0..1_000_000_u32)
                .map(|n| (n.wrapping_mul(n) >> 7) as u8)
                .collect();
            for message in [&b"one"[..], b"GET / HTTP/1.1\r\n\r\n", &noise] {
                socket.say(message);
                assert!(socket.hear(message.len()).await == message);
                gateway
                    .gateway()
                    .reloader()
                    .reload(lockgate::gateway::ReloadTrigger::Signal)
                    .unwrap();
            }
            // The connection has room for others meanwhile.
            let mut second = talk.socket("/chat").await;
            assert_eq!(second.hear(5).await, b"first");
            assert_eq!(talk.send(talk.request("GET", "/")).await.text(), "plain");
            for socket in [&mut socket, &mut second] {
                socket.say(b"last");
                assert_eq!(socket.hear(4).await, b"last");
            }
        });
    }
    let heads = echo.heads.lock().unwrap().clone();
    let (first, second) = (&heads[0], &heads[1]);
    assert!(first.starts_with("GET /chat HTTP/1.1\r\n"), "{first}");
    for field in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: chat",
    ] {
        assert_eq!(first.matches(&format!("\r\n{field}\r\n")).count(), 1);
    }
    let key = |head: &str| {
        let mut keys = head
            .lines()
            .filter_map(|l| l.strip_prefix("sec-websocket-key: "));
        keys.next().unwrap().to_owned()
    };
    assert_eq!(key(first).len(), 24);
    assert_ne!(key(first), key(second));
}

#[test]
fn either_side_can_end_the_tunnel() {
    let (gateway, echo) = gateway("");
    let ended = |count| {
        wait_until("the origin has seen the end", || {
            echo.ended.load(Ordering::SeqCst) == count
        });
    };
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        let mut socket = talk.socket("/chat").await;
        socket.say(b"the last");
        socket.end();
        assert_eq!(socket.hear(99).await, b"firstthe last");
        ended(1);
        let socket = talk.socket("/chat").await;
        socket.reset();
        // The reset goes out while this one is asked for.
        assert_eq!(talk.send(talk.request("GET", "/")).await.status, 200);
        ended(2);
        let mut socket = talk.socket("/chat?end").await;
        assert_eq!(socket.hear(99).await, b"");
        assert_eq!(talk.send(talk.request("GET", "/")).await.status, 200);
    });
}

#[test]
fn a_client_disconnect_ends_the_tunnel() {
    let (gateway, echo) = gateway("");
    run(async {
        let mut talk = gateway.client().talk().await;
        let _socket = talk.socket("/chat").await;
    });
    wait_until("the origin has seen the end", || {
        echo.ended.load(Ordering::SeqCst) == 1
    });
}

#[test]
fn a_refusal_is_an_ordinary_response() {
    let (gateway, _echo) = gateway(
        "[[rules]]\nname = \"no-chat\"\nmitigate = 'http.request.uri.path eq \"/blocked\"'\n\
         action = \"block\"",
    );
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        for (path, status, body) in [
            ("/no", 403, "no"),
            ("/wrong", 502, ""),
            ("/blocked", 429, ""),
        ] {
            let told = talk.refused(path).await;
            assert_eq!(
                (told.status, told.error.is_none()),
                (status, true),
                "{path}"
            );
            assert!(told.text().starts_with(body), "{}", told.text());
        }
        let (answer, _stream) = talk.ask_for("connect-udp", "/chat").await;
        assert_eq!(answer.await.unwrap().status(), 501);
        assert_eq!(talk.socket("/chat").await.hear(5).await, b"first");
    });
}

#[test]
fn an_unreachable_origin_is_502() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin::at(closed.local_addr().unwrap());
    drop(closed);
    let gateway = Running::with_origin(origin, "");
    run(async {
        let mut talk = gateway.client().talk().await;
        assert_eq!(talk.refused("/chat").await.status, 502);
        assert_eq!(talk.refused("/chat").await.status, 502);
    });
}

/// A 2xx says that the stream is open. Whoever sends it, a client sees the same: the stream ends
/// at once.
#[test]
fn a_response_other_than_101_ends_the_stream() {
    let echo = Echo::start();
    let own = "[[routes]]\npath = \"/own\"\nrespond = { body = \"own\" }\n[[routes]]";
    let config = super::config("").replace("[[routes]]", own);
    let rule = "[[rules]]\nname = \"quiet\"\nmitigate = 'http.request.uri.path eq \"/shadowed\"'\n\
         action = \"shadow\"";
    let at = Origin::at(echo.origin.address);
    let gateway = Running::before(at, &format!("{config}{rule}"));
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        for path in ["/plain", "/shadowed", "/own"] {
            let mut socket = talk.socket(path).await;
            assert_eq!(socket.status, 200, "{path}");
            assert!(!socket.headers.contains_key("content-length"), "{path}");
            assert_eq!(socket.hear(99).await, b"", "{path}");
        }
        assert_eq!(talk.send(talk.request("GET", "/")).await.text(), "plain");
    });
    let heads = echo.heads.lock().unwrap();
    let lines: Vec<_> = heads
        .iter()
        .filter_map(|head| head.lines().next())
        .collect();
    assert_eq!(lines, ["GET /plain HTTP/1.1", "GET / HTTP/1.1"]);
}

#[test]
fn rules_see_the_same_request_as_over_http_1() {
    let (gateway, _echo) = gateway(
        r#"
        [[rules]]
        name = "openings"
        mitigate = 'http.request.method eq "GET" and any(http.request.headers["upgrade"][*] eq "websocket")'
        key = ["ip.src", "http.request.method", "http.request.uri.path"]
        limit = 2
        period = "1h"
        [[rules]]
        name = "switches"
        count = 'http.response.code eq 101'
        mitigate = 'http.request.uri.path eq "/switches"'
        key = ["ip.src"]
        limit = 2
        period = "1h"
        "#,
    );
    let mut wire = gateway.client().connect();
    wire.send(UPGRADE);
    assert_eq!(wire.answer().status, 101);
    run(async {
        let mut talk = gateway.client().talk().await;
        assert_eq!(
            talk.send(talk.request("GET", "/switches")).await.status,
            200
        );
        assert_eq!(talk.socket("//%63hat").await.status, 200);
        assert_eq!(talk.refused("/chat").await.status, 429);
        assert_eq!(
            talk.send(talk.request("GET", "/switches")).await.status,
            429
        );
    });
    let mut wire = gateway.client().connect();
    wire.send(UPGRADE);
    assert_eq!(wire.answer().status, 429);
}

#[test]
fn a_tunnel_keeps_its_slot_until_it_closes() {
    let (gateway, _echo) = gateway(ONE_PLACE);
    let status = || gateway.client().get("/free").send().status;
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        for _ in 0..2 {
            let mut socket = talk.socket("/chat").await;
            assert_eq!(socket.hear(5).await, b"first");
            assert_eq!(status(), 429);
            gateway
                .gateway()
                .reloader()
                .reload(lockgate::gateway::ReloadTrigger::Signal)
                .unwrap();
            assert_eq!(status(), 429);
            socket.end();
            assert_eq!(socket.hear(1).await, b"");
            wait_until("the place is free", || status() == 200);
        }
    });
}

/// What a reset stream cannot hear keeps no origin and no place, however long the origin waits.
#[test]
fn a_reset_ends_a_tunnel_whose_origin_does_not() {
    let (gateway, _echo) = gateway(ONE_PLACE);
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        for _ in 0..2 {
            let socket = talk.socket("/chat?deaf").await;
            assert_eq!(socket.status, 200);
            socket.reset();
            while talk.send(talk.request("GET", "/free")).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
}

/// It is the tunnel that keeps the connection, for as long as there is one.
#[test]
fn a_quiet_tunnel_is_not_idle() {
    let (gateway, _echo) = gateway(
        "[limits]\nidle_timeout = \"500ms\"\nheader_timeout = \"500ms\"\n\
         response_write_timeout = \"500ms\"\nrequest_body_timeout = \"500ms\"",
    );
    for client in [gateway.client(), gateway.tls_client()] {
        run(async {
            let mut talk = client.talk().await;
            let mut socket = talk.socket("/chat").await;
            assert_eq!(socket.hear(5).await, b"first");
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(1800)).await;
                socket.say(b"still there");
                assert_eq!(socket.hear(11).await, b"still there");
            }
            socket.end();
            assert_eq!(socket.hear(1).await, b"");
            talk.ended().await;
        });
    }
}

#[test]
fn a_stop_waits_for_open_tunnels() {
    let echo = Echo::start();
    let mut process = Process::run(&format!(
        "[server]\nworkers = 1\ndrain_timeout = \"60s\"\n[log]\naccess = \"off\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[limits]\nidle_timeout = \"500ms\"\nheader_timeout = \"500ms\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[[upstreams]]\nname = \"origin\"\n\
         servers = [\"{}\"]\n[[routes]]\nupstream = \"origin\"\n",
        echo.origin.address
    ));
    let admin = process.admin();
    let tunnels = |count: usize| {
        let text = |path: &str| Client::admin(admin).get(path).send().text();
        text("/api/status").contains(&format!("\"tunnels\":{count}}}"))
            && text("/metrics").contains(&format!("\nlockgate_tunnels {count}\n"))
    };
    assert!(tunnels(0));
    run(async {
        let mut talk = Client::plain(process.address(0)).talk().await;
        let mut socket = talk.socket("/chat").await;
        assert_eq!(socket.hear(5).await, b"first");
        assert!(tunnels(1));
        process.signal("TERM");
        tokio::time::sleep(Duration::from_millis(1800)).await;
        socket.say(b"still there");
        assert_eq!(socket.hear(11).await, b"still there");
        assert!(process.runs());
        socket.end();
        assert_eq!(socket.hear(1).await, b"");
        talk.ended().await;
    });
    assert_eq!(process.exit_code(), Some(0));
}

/// What a client may not say beside `:protocol`, and what it must.
#[test]
fn a_malformed_extended_connect_is_refused() {
    let (gateway, echo) = gateway("");
    let whole = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "example.com"),
    ];
    let heard = |fields: &[(&str, &str)]| {
        let frames = Frames::default().headers(fields, 0);
        frames.heard(gateway.client().connect())
    };
    let without = |name: &str| {
        let fields = whole.iter().filter(|(n, _)| *n != name);
        heard(&fields.copied().collect::<Vec<_>>())
    };
    let with = |name, value| heard(&[&whole[..], &[(name, value)]].concat());
    assert_eq!(without(":path"), Heard::Reset(1));
    assert_eq!(without(":scheme"), Heard::Reset(1));
    assert_eq!(without(":authority"), Heard::Status(400));
    assert_eq!(with("upgrade", "websocket"), Heard::Reset(1));
    assert_eq!(with("connection", "upgrade"), Heard::Reset(1));
    assert_eq!(with("host", "other.example"), Heard::Status(400));
    // hyper ends the whole connection.
    assert_eq!(with("content-length", "4"), Heard::Goaway(1));
    assert_eq!(with("content-length", "0"), Heard::Status(200));
    let plain = [(":method", "CONNECT"), (":authority", "example.com:80")];
    assert_eq!(heard(&plain), Heard::Status(400));
    assert_eq!(echo.heads.lock().unwrap().len(), 1);
    assert_eq!(heard(&whole), Heard::Status(200));
}

/// An upgrade on a socket of its own.
fn upgraded(gateway: &Running, path: &str) -> (std::net::TcpStream, Wire) {
    let socket = std::net::TcpStream::connect(gateway.address(0)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut wire = Wire::new(socket.try_clone().unwrap());
    let head = String::from_utf8_lossy(UPGRADE).replace("/chat", path);
    wire.send(head.as_bytes());
    assert_eq!(wire.answer().status, 101);
    (socket, wire)
}

/// One side of it has ended, the other says nothing and does not end.
#[test]
fn a_half_closed_tunnel_ends_at_the_idle_timeout() {
    let (gateway, echo) = gateway(&format!("[limits]\nidle_timeout = \"1s\"\n{ONE_PLACE}"));
    let free = || gateway.client().get("/free").send().status == 200;
    // The origin has ended: the client sees it at once, and does nothing.
    let (_socket, mut wire) = upgraded(&gateway, "/chat?end");
    assert_eq!(wire.rest(), b"");
    wait_until("the place is free", free);
    // The client has ended, and the origin does nothing.
    let (socket, mut wire) = upgraded(&gateway, "/chat?deaf");
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(wire.rest(), b"");
    wait_until("the place is free", free);
    run(async {
        // The same over HTTP/2, whose connection lives on.
        let mut talk = gateway.client().talk().await;
        let mut ended = talk.socket("/chat?end").await;
        assert_eq!(ended.hear(1).await, b"");
        while talk.send(talk.request("GET", "/free")).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut deaf = talk.socket("/chat?deaf").await;
        deaf.end();
        while talk.send(talk.request("GET", "/free")).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(echo.ended.load(Ordering::SeqCst), 2);
}

/// What ends half a tunnel is silence, however long the rest takes.
#[test]
fn a_half_closed_tunnel_lasts_while_bytes_flow() {
    let (gateway, _echo) = gateway("[limits]\nidle_timeout = \"1s\"");
    let (socket, mut wire) = upgraded(&gateway, "/chat?long");
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(wire.rest(), b"........");
}

/// A client may be as slow to take what a tunnel brings as it is to take what an upgraded
/// connection does.
#[test]
fn a_tunnel_that_is_not_read_does_not_time_out() {
    let (gateway, _echo) = gateway(
        "[limits]\nidle_timeout = \"500ms\"\nresponse_write_timeout = \"500ms\"\n\
         request_body_timeout = \"500ms\"",
    );
    let opens = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat?push"),
        (":authority", "example.com"),
    ];
    // Windows for all of it: what it does not read waits in its socket.
    let open = Frames::default().frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let open = open.frame(8, 0, 0, &[0x7f, 0, 0, 0]).headers(&opens, 0);
    let mut wire = gateway.client().connect();
    open.open(&mut wire);
    std::thread::sleep(Duration::from_millis(2500));
    let mut heard = 0;
    while heard < PUSHED {
        let (kind, _, _, payload) = next_frame(&mut wire).expect("it is still open");
        heard += if kind == 0 { payload.len() } else { 0 };
    }
    wire.send(&Frames::default().data(b"still there", 0).0);
    let answer = std::iter::from_fn(|| next_frame(&mut wire)).find(|frame| frame.0 == 0);
    assert_eq!(answer.unwrap().3, b"still there");
}
