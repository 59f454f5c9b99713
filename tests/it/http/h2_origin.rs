//! HTTP/2 to the origin: what it is told, how requests share connections, and what becomes of
//! those that it refuses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;

use super::before;
use crate::harness::{Call, Frames, Origin, Running, Stage, WHOLE, Wire, fields, next_frame, run};

const H2: &str = r#"protocol = "h2""#;

/// SETTINGS without a word.
fn settings() -> Frames {
    Frames::default().frame(4, 0, 0, &[])
}

/// `:status: 200` and nothing else.
fn ok(stream: u32, flags: u8) -> Frames {
    Frames::default().frame(1, WHOLE | flags, stream, &[0x88])
}

/// An origin whose frames are what `script` writes, after the preface and its settings.
fn raw(script: impl Fn(usize, Wire) + Send + Sync + 'static) -> Origin {
    let connections = AtomicUsize::new(0);
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        if wire.try_exactly(24).is_some() {
            wire.send(&settings().0);
            script(connections.fetch_add(1, Ordering::SeqCst), wire);
        }
    })
}

/// The stream of the next HEADERS frame; `None` at the end.
fn next_head(wire: &mut Wire) -> Option<u32> {
    loop {
        let (kind, _, stream, _) = next_frame(wire)?;
        if kind == 1 {
            return Some(stream);
        }
    }
}

/// The statuses of `count` requests sent together over HTTP/2.
async fn together(gateway: &Running, count: usize) -> Vec<(u16, String)> {
    let mut talk = gateway.client().talk().await;
    let mut answers = Vec::new();
    for _ in 0..count {
        let (answer, _) = talk.open(talk.request("GET", "/"), true).await;
        answers.push(crate::harness::Told::hear(answer));
    }
    let mut all = Vec::new();
    for answer in answers {
        let told = answer.await;
        all.push((told.status, told.text()));
    }
    all
}

#[test]
fn a_response_head_above_a_limit_becomes_502() {
    let origin = Stage::default().play(|mut call: Call| async move {
        let number = |name| call.header(name).parse().unwrap();
        let (count, size): (usize, usize) = (number("x-count"), number("x-size"));
        let value = "b".repeat(size);
        let names: Vec<String> = (0..count).map(|n| format!("x-{n}")).collect();
        let headers: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), value.as_str()))
            .collect();
        call.head(200, &headers, true);
    });
    let limits = "max_response_headers = 10\nmax_response_header_bytes = \"2KiB\"";
    let gateway = before(origin, &format!("{H2}\n{limits}"));
    for (count, size, status) in [("10", "1", 200), ("11", "1", 502), ("2", "1000", 502)] {
        let client = gateway
            .client()
            .header("x-count", count)
            .header("x-size", size);
        client.get("/").times(1).all_are(status);
    }
}

#[test]
fn an_http2_origin_gets_the_same_headers_as_an_http1_origin() {
    let (tell, told) = mpsc::channel();
    let origin = Stage::default().play(move |call: Call| {
        let tell = tell.clone();
        async move {
            let request = &call.request;
            let line = (request.method().to_string(), request.uri().to_string());
            tell.send((line, request.headers().clone())).unwrap();
            call.say("ok");
        }
    });
    let gateway = before(origin, H2);
    let mut wire = gateway.client().connect();
    wire.send(
        b"GET //a/./b?c=d HTTP/1.1\r\nhost: EXAMPLE.com:80\r\nconnection: x-hop, keep-alive\r\n\
          x-hop: 1\r\nkeep-alive: 5\r\nte: gzip, trailers\r\nx-forwarded-for: 1.2.3.4\r\n\
          proxy: evil\r\nx-lockgate-rule: mine\r\ncookie: a=1; b=2\r\nx-kept: 1\r\n\r\n",
    );
    assert!(wire.head().starts_with(b"HTTP/1.1 200"));
    let (line, headers) = told.recv().unwrap();
    assert_eq!(line, ("GET".into(), "http://example.com/a/b?c=d".into()));
    let mut names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "cookie",
        "te",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-kept",
        "x-real-ip",
        "x-request-id",
    ];
    assert_eq!(names, expected);
    assert_eq!(headers["te"], "trailers");
    assert_eq!(headers["x-forwarded-for"], "127.0.0.1");
    assert_eq!(headers["cookie"], "a=1; b=2");
    // An HTTP/1.0 client may have named no host.
    let answer = gateway.client().raw(b"GET / HTTP/1.0\r\n\r\n");
    assert!(answer.ends_with(b"ok"), "{answer:?}");
    assert_eq!(told.recv().unwrap().0.1, "/");
    // The whole server.
    wire.send(b"OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(wire.rest().ends_with(b"ok\r\n0\r\n\r\n"));
    let (line, _) = told.recv().unwrap();
    assert_eq!(line.0, "OPTIONS");
    assert!(line.1.ends_with('*'), "{line:?}");
}

#[test]
fn bodies_lengths_and_trailers_are_forwarded_in_both_directions() {
    let origin = Stage::default().play(|mut call: Call| async move {
        let length = call.header("content-length");
        let (body, trailers) = call.body().await;
        let sum = trailers.get("x-sum").cloned();
        let size = body.len().to_string();
        let mut stream = call.head(
            200,
            &[("content-length", &size), ("x-length", &length)],
            false,
        );
        stream.send_data(body.into(), false).unwrap();
        let mut trailers = fields(&[("x-end", "1"), ("set-cookie", "a=b")]);
        if let Some(sum) = sum {
            trailers.insert("x-sum", sum);
        }
        stream.send_trailers(trailers).unwrap();
    });
    let gateway = before(origin, H2);
    // A megabyte is more than any window.
    let body: &'static [u8] = vec![b'x'; 1 << 20].leak();
    let answer = gateway.client().body(body).post("/").send();
    assert_eq!(answer.header("x-length"), Some("1048576"));
    assert_eq!(answer.header("content-length"), Some("1048576"));
    assert!(answer.body == body);
    run(async {
        let mut talk = gateway.client().talk().await;
        let request = talk.request("POST", "/");
        let trailers = fields(&[("x-sum", "7"), ("host", "b")]);
        let told = talk.send_all(request, &[b"abc", b"def"], trailers).await;
        assert_eq!((told.status, told.text().as_str()), (200, "abcdef"));
        assert_eq!(told.headers["x-length"], "");
        assert_eq!(told.trailers, fields(&[("x-end", "1"), ("x-sum", "7")]));
    });
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    let origin = Stage::default().play(|mut call: Call| async move {
        let status = call.request.uri().path()[1..].parse().unwrap();
        let length: &[_] = match status {
            204 => &[],
            _ => &[("content-length", "10")],
        };
        call.head(status, length, true);
    });
    let gateway = before(origin, H2);
    let mut wire = gateway.client().connect();
    for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404)] {
        let request = format!("{method} /{status} HTTP/1.1\r\nhost: a\r\n\r\n");
        wire.send(request.as_bytes());
        let answer = crate::harness::Answer::parse(&wire.head());
        assert_eq!(answer.status, status);
        let length = (method == "HEAD").then_some("10");
        assert_eq!(answer.header("content-length"), length, "{method} {status}");
    }
}

#[test]
fn requests_share_a_connection_and_open_another_when_it_is_full() {
    for (streams, connections) in [(None, 1), (Some(4), 3), (Some(1), 10)] {
        let stage = Stage {
            streams,
            ..Stage::default()
        };
        // Nobody is answered before all ten are there.
        let all = Arc::new(tokio::sync::Barrier::new(10));
        let origin = stage.play(move |call: Call| {
            let all = all.clone();
            async move {
                all.wait().await;
                let connection = call.connection.to_string();
                call.say(&connection);
            }
        });
        let gateway = before(origin, H2);
        run(async {
            let mut told = together(&gateway, 10).await;
            assert!(told.iter().all(|(status, _)| *status == 200), "{told:?}");
            told.sort();
            told.dedup();
            assert_eq!(told.len(), connections, "{streams:?}: {told:?}");
        });
    }
}

#[test]
fn a_refused_stream_is_retried_on_another_connection() {
    // Whatever the method, and with a small body too.
    for request in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
    ] {
        let refusals: [fn(u32) -> Frames; 2] = [
            // REFUSED_STREAM.
            |stream| Frames::default().frame(3, 0, stream, &[0, 0, 0, 7]),
            // GOAWAY: stream 1 was the last, or none was.
            |stream| {
                Frames::default()
                    .frame(7, 0, 0, &[[0, 0, 0, 0], [0, 0, 0, 0]].concat()[..])
                    .frame(6, 0, 0, &u64::from(stream).to_be_bytes())
            },
        ];
        for refusal in refusals {
            let origin = raw(move |connection, mut wire| {
                let mut first = connection == 0;
                while let Some(stream) = next_head(&mut wire) {
                    let frames = match std::mem::take(&mut first) {
                        true => refusal(stream),
                        false => ok(stream, 1),
                    };
                    wire.send(&frames.0);
                }
            });
            let gateway = before(origin, H2);
            let mut wire = gateway.client().connect();
            wire.send(request.as_bytes());
            assert!(wire.head().starts_with(b"HTTP/1.1 200"));
        }
    }
}

#[test]
fn a_connection_after_goaway_finishes_its_streams() {
    // The first request is answered after GOAWAY; the second comes when that is known.
    let origin = raw(|connection, mut wire| {
        let stream = next_head(&mut wire).unwrap();
        let goaway = [0, 0, 0, 1, 0, 0, 0, 0];
        wire.send(&Frames::default().frame(7, 0, 0, &goaway).0);
        let fields = [
            (":status", "200"),
            ("x-connection", &connection.to_string()),
        ];
        let head = crate::harness::block(&fields);
        wire.send(&Frames::default().frame(1, WHOLE | 1, stream, &head).0);
        wire.rest();
    });
    let gateway = before(origin, H2);
    let mut wire = gateway.client().connect();
    for connection in ["0", "1", "2"] {
        wire.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let answer = crate::harness::Answer::parse(&wire.head());
        assert_eq!(answer.header("x-connection"), Some(connection));
    }
}

#[test]
fn an_origin_that_keeps_refusing_is_502() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let origin = Stage::default().play(move |mut call: Call| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { call.answer.send_reset(h2::Reason::REFUSED_STREAM) }
    });
    let gateway = before(origin, H2);
    gateway.client().get("/").times(1).all_are(502);
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

#[test]
fn a_request_that_the_origin_read_is_not_retried() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL] {
        let list = seen.clone();
        let origin = Stage::default().play(move |mut call: Call| {
            list.lock().unwrap().push(call.request.method().clone());
            async move { call.answer.send_reset(reason) }
        });
        let gateway = before(origin, H2);
        gateway.client().body(b"x").post("/").times(1).all_are(502);
    }
    assert_eq!(
        *seen.lock().unwrap(),
        [http::Method::POST, http::Method::POST]
    );
}

/// How often an origin that resets what it gets is asked, after a first answer.
fn asked(reason: h2::Reason, settings: &str, send: impl Fn(&Running)) -> usize {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let origin = Stage::default().play(move |mut call: Call| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match first {
                true => call.say("ok"),
                false => call.answer.send_reset(reason),
            }
        }
    });
    let gateway = before(origin, &format!("{H2}\n{settings}"));
    gateway.client().get("/").times(1).all_are(200);
    send(&gateway);
    asked.load(Ordering::SeqCst) - 1
}

const BROKEN: [h2::Reason; 3] = [
    h2::Reason::INTERNAL_ERROR,
    h2::Reason::CANCEL,
    h2::Reason::NO_ERROR,
];

#[test]
fn a_reset_on_an_idle_connection_uses_up_a_retry() {
    for reason in BROKEN {
        for retries in [0, 1, 2] {
            let settings = format!("retries = {retries}");
            let asked = asked(reason, &settings, |gateway| {
                gateway.client().get("/").times(1).all_are(502);
            });
            assert_eq!(asked, 1 + retries, "{reason:?}");
        }
    }
}

#[test]
fn resets_open_the_circuit() {
    let breaker = r#"circuit_breaker = { failures = 3, within = "60s", open_for = "60s" }"#;
    for reason in BROKEN {
        let asked = asked(reason, breaker, |gateway| {
            gateway.client().body(b"x").post("/").times(3).all_are(502);
            gateway.client().body(b"x").post("/").times(3).all_are(503);
        });
        assert_eq!(asked, 3, "{reason:?}");
    }
}

#[test]
fn a_request_with_an_interim_response_is_not_retried() {
    for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::REFUSED_STREAM] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let origin = raw(move |_, mut wire| {
            while let Some(stream) = next_head(&mut wire) {
                count.fetch_add(1, Ordering::SeqCst);
                // `:status: 103`, as a literal with the name of the static table.
                let hints = Frames::default().frame(1, WHOLE, stream, b"\x08\x03103");
                wire.send(
                    &hints
                        .frame(3, 0, stream, &u32::from(reason).to_be_bytes())
                        .0,
                );
            }
        });
        let gateway = before(origin, H2);
        gateway.client().get("/").times(1).all_are(502);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{reason:?}");
    }
}

#[test]
fn an_origin_that_does_not_speak_http2_is_502() {
    let gateway = before(Origin::start(), H2);
    gateway.client().get("/").times(2).all_are(502);
    let seen = gateway.origin.seen();
    assert!(
        seen.iter().all(|seen| !seen.line.starts_with("GET")),
        "{seen:?}"
    );
}

#[test]
fn an_origin_that_is_silent_is_504() {
    let origin = Stage::default().play(|call: Call| async move {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        drop(call);
    });
    let gateway = before(origin, "protocol = \"h2\"\nresponse_timeout = \"200ms\"");
    gateway.client().get("/").times(2).all_are(504);
    // One that never says that it speaks HTTP/2.
    let mute = Origin::scripted(|stream| drop(Wire::new(stream).rest()));
    let gateway = before(mute, "protocol = \"h2\"\nconnect_timeout = \"200ms\"");
    gateway.client().get("/").times(2).all_are(504);
}

#[test]
fn a_websocket_to_an_http2_origin_is_502() {
    let gateway = before(
        Stage::default().play(|call: Call| async { call.say("no") }),
        H2,
    );
    let mut wire = gateway.client().connect();
    wire.send(
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
          sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(wire.answer().status, 502);
}

#[test]
fn a_response_before_the_end_of_the_request_is_forwarded() {
    let origin = Stage::default().play(|mut call: Call| async move {
        let mut stream = call.head(403, &[("content-length", "2")], false);
        stream.send_data(Bytes::from_static(b"no"), true).unwrap();
        // The reset must not overtake the answer.
        tokio::time::sleep(Duration::from_millis(50)).await;
        // RFC 9113, section 8.1: the rest is not wanted.
        stream.send_reset(h2::Reason::NO_ERROR);
    });
    let gateway = before(origin, H2);
    let answer = gateway.client().body(&vec![b'x'; 8 << 20]).post("/").send();
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
}

#[test]
fn a_body_that_differs_from_its_declared_length_is_reset() {
    let (tell, told) = mpsc::channel();
    let origin = Stage::default().play(move |mut call: Call| {
        let tell = tell.clone();
        async move {
            let body = call.request.body_mut();
            let mut whole = true;
            while let (true, Some(data)) = (whole, body.data().await) {
                whole = data.is_ok();
            }
            tell.send(whole).unwrap();
        }
    });
    let gateway = before(origin, H2);
    let mut wire = gateway.client().connect();
    wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nfive!");
    drop(wire);
    assert!(!told.recv().unwrap(), "the origin saw a whole request");
}

#[test]
fn an_origin_cannot_make_the_gateway_buffer_much() {
    let long = "x".repeat(70_000);
    let many: Vec<(String, String)> = (0..200)
        .map(|n| (format!("x-{n}"), "1".to_owned()))
        .collect();
    let mut heads: Vec<Frames> = Vec::new();
    // A head that is too large, one with too many fields, two lengths, one about the connection,
    // interim answers without end, a switch that nobody asked for.
    let mut large = vec![(":status", "200"), ("x-long", long.as_str())];
    heads.push(continued(&large));
    large.truncate(1);
    large.extend(many.iter().map(|(n, v)| (n.as_str(), v.as_str())));
    heads.push(continued(&large));
    let status = (":status", "200");
    for fields in [
        vec![status, ("content-length", "1"), ("content-length", "1")],
        vec![status, ("content-length", "1"), ("content-length", "2")],
        vec![status, ("content-length", "+1")],
        vec![status, ("connection", "close")],
        vec![status, ("transfer-encoding", "chunked")],
        vec![status, ("x-a", "b\nc")],
        vec![status, ("X-Upper", "1")],
        vec![("x-a", "b")],
        vec![(":status", "101")],
    ] {
        heads.push(continued(&fields));
    }
    let mut interim = Frames::default();
    let early = crate::harness::block(&[(":status", "103"), ("link", "</a>")]);
    for _ in 0..100 {
        interim = interim.frame(1, WHOLE, 1, &early);
    }
    heads.push(Frames([interim.0, ok(1, 1).0].concat()));
    for (number, frames) in heads.into_iter().enumerate() {
        let origin = raw(move |_, mut wire| {
            if next_head(&mut wire).is_some() {
                let _ = wire.try_send(&frames.0);
                wire.rest();
            }
        });
        let gateway = before(origin, H2);
        let status = gateway.client().get("/").send().status;
        assert_eq!(status, 502, "head {number}");
    }
}

/// A head on stream 1 that is followed by its body, in as many frames as it takes.
fn continued(fields: &[(&str, &str)]) -> Frames {
    let block = crate::harness::block(fields);
    let mut chunks = block.chunks(16_000).peekable();
    let mut frames = Frames::default();
    let mut kind = 1;
    while let Some(chunk) = chunks.next() {
        let flags = if chunks.peek().is_none() { WHOLE } else { 0 };
        frames = frames.frame(kind, flags, 1, chunk);
        kind = 9;
    }
    frames
}

#[test]
fn interim_responses_are_not_the_final_response() {
    let origin = raw(|_, mut wire| {
        while let Some(stream) = next_head(&mut wire) {
            let early = crate::harness::block(&[(":status", "103"), ("link", "</a>")]);
            let mut frames = Frames::default();
            for _ in 0..3 {
                frames = frames.frame(1, WHOLE, stream, &early);
            }
            wire.send(&[frames.0, ok(stream, 1).0].concat());
        }
    });
    let gateway = before(origin, H2);
    gateway.client().get("/").times(3).all_are(200);
}

#[test]
fn a_slow_reader_applies_backpressure_only_to_its_own_stream() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let origin = Stage::default().play(move |mut call: Call| {
        let count = count.clone();
        async move {
            if call.request.uri().path() != "/endless" {
                return call.say("quick");
            }
            let mut stream = call.head(200, &[], false);
            loop {
                stream.reserve_capacity(16 << 10);
                match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                    Some(Ok(room)) => {
                        count.fetch_add(room, Ordering::SeqCst);
                        stream.send_data(vec![0; room].into(), false).unwrap();
                    }
                    _ => return,
                }
            }
        }
    });
    let gateway = before(origin, H2);
    run(async {
        let mut talk = gateway.client().talk().await;
        let mut slow = Vec::new();
        for _ in 0..20 {
            let (answer, stream) = talk.open(talk.request("GET", "/endless"), true).await;
            slow.push((answer.await.unwrap(), stream));
        }
        let mut other = gateway.client().talk().await;
        for _ in 0..5 {
            let told = other.send(other.request("GET", "/")).await;
            assert_eq!(told.text(), "quick");
        }
    });
    // What the windows on the way hold, and not more.
    assert!(sent.load(Ordering::SeqCst) < 32 << 20);
}
