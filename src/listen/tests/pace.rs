//! Clients that send or read too slowly, and clients that only wait for others.

use super::http2::{NO_SETTINGS, ask, frame};
use super::*;

const RST_STREAM: u8 = 3;

/// SETTINGS with INITIAL_WINDOW_SIZE = 0.
const SHUT: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";

/// A client may be silent for 300 ms, and owes `rate` bytes a second within half a second.
fn paced(rate: u64) -> ConnectionLimits {
    ConnectionLimits {
        request_body_timeout: Duration::from_millis(300),
        response_write_timeout: Duration::from_millis(300),
        min_rate: rate,
        rate_window: Duration::from_millis(500),
        ..limits()
    }
}

/// Longer than any limit of these tests, with all the time that a sweep may take.
async fn long() {
    tokio::time::sleep(Duration::from_millis(1500)).await;
}

fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")
}

#[test]
fn a_stalled_body_times_out_and_its_request_gets_a_response() {
    run(async {
        let site = Site::open(paced(0)).await;
        let mut client = site.connect().await;
        client.send(post("/size", 10) + "half").await;
        client.until("arrived too slowly").await;
        client.rest().await;
        drop(client);
        site.drain.ended().await;
    });
}

#[test]
fn a_body_below_the_minimum_rate_times_out_even_if_steady() {
    run(async {
        let site = Site::open(paced(100)).await;
        let client = site.connect().await;
        let (mut reader, mut writer) = client.0.into_split();
        let head = post("/size", 1000);
        writer.write_all(head.as_bytes()).await.unwrap();
        let dribble = tokio::task::spawn_local(async move {
            while writer.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let mut bytes = Vec::new();
        let _ = timeout(LONG, reader.read_to_end(&mut bytes)).await.unwrap();
        assert!(String::from_utf8_lossy(&bytes).ends_with("arrived too slowly"));
        dribble.abort();
    });
}

#[test]
fn a_body_at_the_minimum_rate_may_take_long() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send(post("/size", 3000)).await;
        for _ in 0..30 {
            client.send([b'x'; 100]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        client.until("3000").await;
    });
}

#[test]
fn a_body_that_is_not_read_does_not_time_out() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send(post("/held", 10)).await;
        long().await;
        site.release.notify_one();
        client.until("hello").await;
    });
}

#[test]
fn a_body_may_pause_after_its_response_has_begun() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send(post("/echo", 9) + "one").await;
        client.until("one").await;
        for word in ["two", "six"] {
            long().await;
            client.send(word).await.until(word).await;
        }
    });
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    run(async {
        let site = Site::open(paced(0)).await;
        let mut client = site.connect().await;
        client.send("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(matches!(
            site.end().await,
            Err(ServeError::Slow(SlowPhase::Reading))
        ));
        assert_eq!((site.gate.open(), site.timers.count()), (0, 0));
    });
}

#[test]
fn a_client_that_does_not_read_the_rest_of_a_response_is_disconnected() {
    run(async {
        let site = Site::open(paced(0)).await;
        let mut client = site.connect().await;
        // It is all handed over before the socket is full.
        client.send("GET /huge HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(matches!(
            site.end().await,
            Err(ServeError::Slow(SlowPhase::Reading))
        ));
    });
}

#[test]
fn a_client_that_reads_too_slowly_is_disconnected() {
    run(async {
        let site = Site::open(paced(1 << 30)).await;
        let mut client = site.connect().await;
        client.send("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut part = vec![0; 64 << 10];
        while site.ends.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let _ = client.0.read(&mut part).await;
        }
        assert!(matches!(
            site.end().await,
            Err(ServeError::Slow(SlowPhase::Reading))
        ));
    });
}

#[test]
fn a_response_without_data_to_send_does_not_time_out() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.until("\r\n\r\n").await;
        let mut other = ask(&site, "/events", NO_SETTINGS).await;
        long().await;
        assert!(site.ends.borrow().is_empty());
        assert_eq!((site.gate.open(), site.slow_streams.get()), (2, 0));
        while let Ok(Some((kind, _))) = timeout(Duration::from_millis(50), frame(&mut other)).await
        {
            assert_ne!(kind, RST_STREAM);
        }
    });
}

#[test]
fn a_stream_without_a_window_is_reset_and_its_connection_stays() {
    for path in ["/kib", "/stream"] {
        run(async move {
            let site = Site::open(paced(100)).await;
            let mut client = ask(&site, path, SHUT).await;
            let reset = loop {
                match frame(&mut client).await.unwrap() {
                    (RST_STREAM, code) => break code,
                    (kind, _) => assert_ne!(kind, http2::GOAWAY),
                }
            };
            assert_eq!(reset, [0, 0, 0, 8], "CANCEL");
            assert_eq!((site.gate.open(), site.slow_streams.get()), (1, 1));
            // Acknowledged, so it lives.
            client.send(b"\0\0\x08\x06\0\0\0\0\0pingpong").await;
            loop {
                if frame(&mut client).await.unwrap().0 == http2::PING {
                    break;
                }
            }
        });
    }
}

#[test]
fn a_stream_with_a_stalled_body_gets_a_response() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send(http2::PREFACE).await;
        client.send(NO_SETTINGS).await;
        // POST without END_STREAM, and three bytes of DATA.
        client
            .send(b"\0\0\x0c\x01\x04\0\0\0\x01\x83\x86\x04\x05/size\x01\x01a")
            .await;
        client.send(b"\0\0\x03\0\0\0\0\0\x01abc").await;
        let answer = loop {
            match frame(&mut client).await.unwrap() {
                (0, data) => break data,
                (kind, _) => assert_ne!(kind, http2::GOAWAY),
            }
        };
        assert!(String::from_utf8_lossy(&answer).ends_with("arrived too slowly"));
        assert_eq!(site.gate.open(), 1);
    });
}

#[test]
fn a_long_frame_at_the_minimum_rate_may_take_long() {
    run(async {
        let site = Site::open(paced(100)).await;
        let mut client = site.connect().await;
        client.send(http2::PREFACE).await;
        client.send(NO_SETTINGS).await;
        client
            .send(b"\0\0\x0c\x01\x04\0\0\0\x01\x83\x86\x04\x05/size\x01\x01a")
            .await;
        // DATA of 1000 bytes, END_STREAM.
        client.send(b"\0\x03\xe8\0\x01\0\0\0\x01").await;
        for _ in 0..20 {
            client.send([b'x'; 50]).await;
            tokio::time::sleep(Duration::from_millis(80)).await;
        }
        let answer = loop {
            match frame(&mut client).await.unwrap() {
                (0, data) => break data,
                (kind, _) => assert_ne!(kind, http2::GOAWAY),
            }
        };
        assert_eq!(answer, b"1000");
    });
}

#[test]
fn an_http2_connection_that_does_not_read_is_closed() {
    run(async {
        let site = Site::open(paced(0)).await;
        let _client = ask(&site, "/stream", http2::WIDE_OPEN).await;
        assert!(matches!(
            site.end().await,
            Err(ServeError::Slow(SlowPhase::Reading))
        ));
    });
}

#[test]
fn connections_of_a_network_beyond_the_limit_are_refused() {
    run(async {
        let site = Site::open(limits()).await;
        let timer = || {
            let permit = site.gate.try_enter(&site.drain).unwrap();
            site.timers.start(&limits(), permit)
        };
        let network = "192.0.2.0".parse().unwrap();
        let (first, second) = (timer(), timer());
        assert!(first.admit(network, 1));
        assert!(first.admit(network, 1), "counted once");
        assert!(!second.admit(network, 1));
        assert!(second.admit("192.0.3.0".parse().unwrap(), 1));
        drop(first);
        assert!(timer().admit(network, 1));
    });
}
