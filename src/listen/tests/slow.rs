//! ConnectionTimers.

use super::*;

/// Limits that a test waits for: `header` and `idle` in milliseconds.
fn within(header: u64, idle: u64) -> ConnectionLimits {
    ConnectionLimits {
        header_timeout: Duration::from_millis(header),
        idle_timeout: Duration::from_millis(idle),
        ..limits()
    }
}

fn is_slow(end: Result<(), ServeError>, slow: SlowPhase) -> bool {
    matches!(end, Err(ServeError::Slow(s)) if s == slow)
}

#[test]
fn a_connection_that_sends_nothing_is_closed() {
    run(async {
        let site = Site::open(within(300, 60_000)).await;
        let mut client = site.connect().await;
        assert_eq!(client.rest().await, "");
        assert!(is_slow(site.end().await, SlowPhase::Handshake));
        assert_eq!((site.gate.open(), site.timers.count()), (0, 0));
    });
}

#[test]
fn a_server_without_sniffing_closes_a_silent_connection_too() {
    for protocol in [HttpVersion::Http1, HttpVersion::Http2] {
        run(async {
            let site = Site::open(within(300, 60_000)).await;
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let permit = site.gate.try_enter(&site.drain).unwrap();
            let limits = within(300, 60_000);
            let timer = site.timers.start(&limits, permit);
            let me = site.clone();
            let app = move |request, _| me.clone().answer(request);
            let end = serve(stream, protocol, &limits, timer, app).await;
            assert!(is_slow(end, SlowPhase::Head));
            drop(client);
        });
    }
}

#[test]
fn a_slow_head_is_cut_off_even_if_bytes_arrive_steadily() {
    run(async {
        let site = Site::open(within(300, 60_000)).await;
        let mut client = site.connect().await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n").await;
        while client.0.write_all(b"x: y\r\n").await.is_ok() && site.ends.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(is_slow(site.end().await, SlowPhase::Head));
        assert_eq!(site.seen.get(), 0);
    });
}

#[test]
fn the_head_of_a_second_request_has_a_deadline_too() {
    run(async {
        let site = Site::open(within(300, 60_000)).await;
        let mut client = site.connect().await;
        client
            .send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("hello")
            .await;
        client.send("GET / HT").await;
        assert_eq!(client.rest().await, "");
        assert!(is_slow(site.end().await, SlowPhase::Head));
    });
}

#[test]
fn an_idle_connection_is_closed_without_an_error() {
    run(async {
        let site = Site::open(within(60_000, 300)).await;
        let mut client = site.connect().await;
        client
            .send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .until("hello")
            .await;
        assert_eq!(client.rest().await, "");
        site.end().await.unwrap();
        assert_eq!((site.gate.open(), site.timers.count()), (0, 0));
    });
}

#[test]
fn half_a_head_behind_a_complete_request_has_a_deadline_too() {
    for whole in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST /size HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n",
    ] {
        run(async {
            let site = Site::open(within(300, 60_000)).await;
            let mut client = site.connect().await;
            client.send(format!("{whole}GET /ha")).await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(is_slow(site.end().await, SlowPhase::Head));
        });
    }
}

/// Some clients end a body with an empty line of their own.
#[test]
fn an_empty_line_behind_a_request_does_not_begin_a_head() {
    run(async {
        let site = Site::open(within(300, 1500)).await;
        let mut client = site.connect().await;
        let request = "POST /size HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello\r\n";
        client.send(request).await;
        let answer = client.rest_in_peace().await;
        assert!(answer.ends_with("\r\n\r\n5"), "{answer}");
        site.end().await.unwrap();
    });
}

#[test]
fn a_request_in_flight_is_neither_slow_nor_idle() {
    run(async {
        let site = Site::open(within(300, 300)).await;
        let mut client = site.connect().await;
        client.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        site.release.notify_one();
        client.until("hello").await;
    });
}

#[test]
fn a_connection_with_a_slowly_read_response_is_not_idle() {
    run(async {
        let site = Site::open(within(500, 500)).await;
        let mut client = site.connect().await;
        socket2::SockRef::from(&client.0)
            .set_recv_buffer_size(64 * 1024)
            .unwrap();
        client.send("GET /huge HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.until("\r\n\r\n").await;
        let mut left = HUGE;
        let mut part = vec![0; 256 * 1024];
        while left > 0 {
            let n = client.0.read(&mut part).await.unwrap();
            assert!(n > 0, "cut with {left} bytes to go");
            left -= n;
            tokio::time::sleep(Duration::from_millis(n as u64 / 8_000)).await;
        }
    });
}

#[test]
fn an_idle_http2_connection_gets_goaway_and_closes_despite_pings() {
    run(async {
        let site = Site::open(within(300, 600)).await;
        let mut client = site.connect().await;
        client.send(http2::PREFACE).await;
        client.send(http2::NO_SETTINGS).await;
        let (mut reader, mut writer) = client.0.into_split();
        let pinger = tokio::task::spawn_local(async move {
            // PING, eight bytes. It never acknowledges one.
            while writer
                .write_all(b"\0\0\x08\x06\0\0\0\0\0pingpong")
                .await
                .is_ok()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let mut bytes = Vec::new();
        let _ = timeout(LONG, reader.read_to_end(&mut bytes)).await.unwrap();
        assert!(http2::kinds(&bytes).contains(&http2::GOAWAY));
        pinger.abort();
        site.until(|site| site.gate.open() == 0).await;
    });
}

#[test]
fn an_http2_request_must_follow_the_preface_in_time() {
    run(async {
        let site = Site::open(within(300, 300)).await;
        let mut client = site.connect().await;
        client.send(http2::PREFACE).await;
        client.send(http2::NO_SETTINGS).await;
        // HEADERS without END_HEADERS, then a CONTINUATION a moment, none of which ends it.
        let (mut reader, mut writer) = client.0.into_split();
        writer
            .write_all(b"\0\0\x01\x01\0\0\0\0\x01\x82")
            .await
            .unwrap();
        let dribble = tokio::task::spawn_local(async move {
            while writer.write_all(b"\0\0\0\x09\0\0\0\0\x01").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let mut bytes = Vec::new();
        let _ = timeout(LONG, reader.read_to_end(&mut bytes)).await.unwrap();
        dribble.abort();
        assert_eq!(site.seen.get(), 0);
    });
}

#[test]
fn the_first_connection_after_an_idle_period_is_not_timed_out() {
    run(async {
        let site = Site::open(within(1000, 1000)).await;
        // Longer than any limit, with no connection to sweep.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let mut client = site.connect().await;
        for _ in 0..2 {
            let request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            client.send(request).await.until("hello").await;
            // Long enough for a sweep or two, shorter than any limit.
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        assert_eq!(site.seen.get(), 2);
    });
}

#[test]
fn an_incomplete_http2_head_times_out_despite_other_streams() {
    run(async {
        let site = Site::open(within(300, 60_000)).await;
        let mut client = http2::ask(&site, "/events", http2::NO_SETTINGS).await;
        site.until(|site| site.seen.get() == 1).await;
        // HEADERS of stream 3 without END_HEADERS: GET, http, `/`, and a header with a value of 100 bytes that
        // follows in CONTINUATION frames, too few for another limit to end it.
        client
            .send(b"\0\0\x0b\x01\0\0\0\0\x03\x82\x86\x84\0\x05x-abc\x64")
            .await;
        while site.ends.borrow().is_empty() {
            let _ = client.0.write_all(b"\0\0\x01\x09\0\0\0\0\x03y").await;
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let end = site.end().await;
        assert!(
            matches!(end, Err(ServeError::Slow(SlowPhase::Head))),
            "{end:?}"
        );
    });
}

#[test]
fn half_an_http2_frame_or_preface_times_out() {
    let whole = [http2::PREFACE, http2::NO_SETTINGS].concat();
    for half in [
        &http2::PREFACE[..16],
        &whole[..27],
        &[&whole, &b"\0\0\x08\x06"[..]].concat(),
    ] {
        run(async move {
            let site = Site::open(within(300, 60_000)).await;
            let mut client = site.connect().await;
            client.send(half).await;
            assert!(is_slow(site.end().await, SlowPhase::Head), "{half:?}");
        });
    }
}
