//! HTTP/1 as clients meet it.

use super::*;

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn a_connection_is_reused() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        for _ in 0..3 {
            let answer = client.send(GET).await.until("hello").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains("\r\ndate: "), "{answer}");
        }
        assert_eq!(site.gate.open(), 1);
    });
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        let last = "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        client.send(format!("{}{last}", GET.repeat(40))).await;
        assert_eq!(client.rest().await.matches("hello").count(), 41);
        assert_eq!(site.seen.get(), 41);
    });
}

/// A client that disconnects gets no response, even if it sent bytes after its request.
#[test]
fn a_disconnect_is_detected_behind_pipelined_bytes() {
    let held = "GET /held HTTP/1.1\r\nhost: a\r\n\r\n";
    let upgrade = held.replace("\r\n\r\n", "\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    let upload = held.replace("\r\n\r\n", "\r\ncontent-length: 2\r\n\r\nxx");
    for request in [held, &upgrade, &upload] {
        for behind in ["", "G", GET, &GET.repeat(10)] {
            run(async {
                let site = Site::open(limits()).await;
                let mut client = site.connect().await;
                client.send(format!("{request}{behind}")).await;
                site.until(|site| site.seen.get() == 1).await;
                client.send(behind).await;
                drop(client);
                let _ = timeout(LONG, site.end()).await.unwrap();
                assert_eq!((site.seen.get(), site.gate.open()), (1, 0));
            });
        }
    }
}

#[test]
fn more_pipelined_requests_than_the_buffer_holds_get_responses() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n").await;
        site.until(|site| site.seen.get() == 1).await;
        let (mut reader, mut writer) = client.0.into_split();
        let sent = tokio::task::spawn_local(async move {
            let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            let all = format!("{}{last}", GET.repeat(4000));
            writer.write_all(all.as_bytes()).await.unwrap();
            writer
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        site.release.notify_one();
        let mut answers = String::new();
        let read = reader.read_to_string(&mut answers);
        timeout(LONG, read).await.unwrap().unwrap();
        assert_eq!(answers.matches("hello").count(), 4002);
        sent.await.unwrap();
    });
}

#[test]
fn a_request_without_a_response_closes_the_connection_after_earlier_responses() {
    let silence = "GET /silence HTTP/1.1\r\nhost: a\r\n\r\n";
    let upload = "POST /silence HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999\r\n\r\nbeginning";
    for (asked, answered) in [
        (silence.to_owned(), 0),
        (upload.to_owned(), 0),
        (GET.repeat(3) + silence, 3),
    ] {
        run(async {
            let site = Site::open(limits()).await;
            let mut client = site.connect().await;
            let answers = client.send(&asked).await.rest().await;
            assert_eq!(answers.matches("HTTP/1.1").count(), answered, "{answers}");
            assert_eq!(answers.matches("hello").count(), answered);
            let error = site.end().await.unwrap_err();
            assert_eq!(error.fault(), None, "{error:?}");
        });
    }
}

#[test]
fn invalid_http_gets_400_and_a_close() {
    for garbage in [
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nna me: x\r\n\r\n",
        "GET / HTTP/9.9\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
    ] {
        run(async {
            let site = Site::open(limits()).await;
            let mut client = site.connect().await;
            client.send(format!("{garbage}{}", GET.repeat(2000))).await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{garbage:?}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1").count(), 1);
            drop(client);
            assert!(site.end().await.unwrap_err().status() == Some(400));
            assert_eq!(site.seen.get(), 0);
        });
    }
}

/// The client need not wait for the linger timeout.
#[test]
fn the_close_is_sent_before_the_rest_is_read() {
    run(async {
        let upgrade = GET.replace("\r\n\r\n", "\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
        for bytes in [
            format!("{GET}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            format!("{upgrade}\0\0\r\n\r\n"),
        ] {
            let site = Site::open(limits()).await;
            let mut listens_on = false;
            // One look can come too late on a machine that stood still.
            for _ in 0..5 {
                let mut client = site.connect().await;
                client.send(&bytes).await;
                let answers = client.rest_in_peace().await;
                assert!(answers.contains("\r\n\r\nhelloHTTP/1.1 400 "), "{answers}");
                listens_on |= site.gate.open() > 0;
                drop(client);
                assert!(site.end().await.unwrap_err().status() == Some(400));
            }
            assert!(listens_on, "{bytes}");
        }
    });
}

#[test]
fn a_head_too_large_gets_431_and_a_close() {
    let many = "x: y\r\n".repeat(50);
    let long = format!("x: {}\r\n", "y".repeat(20 * 1024));
    for fields in [many, long] {
        run(async {
            let site = Site::open(limits()).await;
            let mut client = site.connect().await;
            client
                .send(format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n"))
                .await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
            assert_eq!(site.seen.get(), 0);
        });
    }
}

#[test]
fn a_target_too_long_gets_414_and_is_reported() {
    run(async {
        let wide = ConnectionLimits {
            max_header_bytes: 128 * 1024,
            ..limits()
        };
        let site = Site::open(wide).await;
        for (length, status) in [(70_000, 414), (140_000, 431)] {
            let mut client = site.connect().await;
            let target = "y".repeat(length);
            client
                .send(format!("GET /{target} HTTP/1.1\r\nhost: a\r\n\r\n"))
                .await;
            let answer = client.rest().await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")));
            drop(client);
            let error = site.end().await.unwrap_err();
            assert_eq!(error.status(), Some(status));
            assert_eq!(error.fault(), Some(ClientFault::HeadTooLarge));
        }
    });
}

#[test]
fn the_smallest_head_limit_is_enforced() {
    run(async {
        let tight = ConnectionLimits {
            max_header_bytes: 100,
            ..limits()
        };
        let site = Site::open(tight).await;
        let mut client = site.connect().await;
        client.send(GET).await.until("hello").await;
        client
            .send(format!(
                "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
                "y".repeat(100)
            ))
            .await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    });
}

#[test]
fn a_long_body_is_streamed_in_both_directions() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client
            .send("GET /stream HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await;
        client.until("\r\n\r\n").await;
        assert!(client.rest().await.matches('f').count() == 64 << 20);

        let mut client = site.connect().await;
        let head = format!(
            "POST /size HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
            64 << 20
        );
        client.send(head).await;
        for _ in 0..64 {
            client.send(vec![b'u'; 1 << 20]).await;
        }
        client.until("67108864").await;
    });
}

#[test]
fn a_panic_closes_only_its_connection() {
    run(async {
        let site = Site::open(limits()).await;
        let mut other = site.connect().await;
        other.send(GET).await.until("hello").await;
        let mut client = site.connect().await;
        client.send("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(client.rest().await, "");
        site.until(|site| site.gate.open() == 1).await;
        assert_eq!((site.timers.count(), site.drain.open()), (1, 1));
        other.send(GET).await.until("hello").await;
        site.connect().await.send(GET).await.until("hello").await;
    });
}

#[test]
fn a_tunnel_counts_as_a_connection_until_it_ends() {
    run(async {
        let site = Site::open(limits()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let permit = site.gate.try_enter(&site.drain).unwrap();
        let timer = site.timers.start(&limits(), permit);
        let me = site.clone();
        let app = move |mut request: Request<RequestBody>, _| {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::task::spawn_local(async move {
                let mut tunnel = hyper_util::rt::TokioIo::new(upgrade.await.unwrap());
                let word = tunnel.read_u8().await.unwrap();
                tunnel.write_u8(word + 1).await.unwrap();
            });
            me.clone().answer(request)
        };
        let ask =
            "GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        client.write_all(ask.as_bytes()).await.unwrap();
        serve(stream, HttpVersion::Http1, &limits(), timer, app)
            .await
            .unwrap();
        assert_eq!((site.gate.open(), site.timers.count()), (1, 0));
        let mut client = Client(client);
        let answer = client.until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert_eq!(client.send("x").await.rest().await, "y");
        site.drain.ended().await;
        assert_eq!(site.gate.open(), 0);
    });
}
