//! HTTP/2 with prior knowledge, by hyper's client and by hand.

use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::TokioIo;

use super::*;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const NO_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// The widest windows there are, for streams and for the connection: only the socket stops.
pub(super) const WIDE_OPEN: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff\
    \0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0";
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

type Sender = SendRequest<Full<Bytes>>;

#[derive(Clone)]
struct Local;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

async fn connect(site: &Site) -> Sender {
    let stream = TcpStream::connect(site.address).await.unwrap();
    let (sender, http) = hyper::client::conn::http2::Builder::new(Local)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::task::spawn_local(http);
    sender
}

fn get(client: &Sender, path: &str) -> impl Future<Output = Result<String, hyper::Error>> + use<> {
    send(client, path, Bytes::new())
}

fn send(
    client: &Sender,
    path: &str,
    body: Bytes,
) -> impl Future<Output = Result<String, hyper::Error>> + use<> {
    let uri = format!("http://a{path}");
    let request = Request::post(uri).body(Full::new(body)).unwrap();
    let answer = client.clone().send_request(request);
    async move {
        let bytes = answer.await?.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The next frame: its type and payload. `None`: the connection has ended.
pub(super) async fn frame(client: &mut Client) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    timeout(LONG, client.0.read_exact(&mut head))
        .await
        .unwrap()
        .ok()?;
    let mut body = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    timeout(LONG, client.0.read_exact(&mut body))
        .await
        .unwrap()
        .ok()?;
    Some((head[3], body))
}

/// The types of the frames in `bytes`.
pub(super) fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = bytes {
        kinds.push(*kind);
        bytes = &rest[u32::from_be_bytes([0, *a, *b, *c]) as usize..];
    }
    kinds
}

#[test]
fn many_small_and_some_large_responses_all_arrive() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        for _ in 0..5 {
            let tasks: Vec<_> = (0..100)
                .map(|i| if i % 20 == 0 { "/big" } else { "/kib" })
                .map(|path| (path, tokio::task::spawn_local(get(&client, path))))
                .collect();
            for (path, task) in tasks {
                let size = task.await.unwrap().unwrap().len();
                assert_eq!(size, if path == "/big" { 3 << 20 } else { 1024 });
            }
        }
        assert_eq!((site.seen.get(), site.gate.open()), (500, 1));
    });
}

#[test]
fn a_long_body_is_streamed_in_both_directions() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        assert_eq!(get(&client, "/stream").await.unwrap().len(), 64 << 20);
        let body = Bytes::from(vec![b'u'; 64 << 20]);
        assert_eq!(send(&client, "/size", body).await.unwrap(), "67108864");
        let body = Bytes::from(vec![b'e'; 4 << 20]);
        assert_eq!(send(&client, "/echo", body).await.unwrap().len(), 4 << 20);
    });
}

#[test]
fn an_unread_body_ends_only_its_stream() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        for _ in 0..50 {
            let body = Bytes::from(vec![b'u'; 1 << 20]);
            // Reset after the response (RFC 9113, 8.1); hyper's client may see the reset first.
            if let Ok(answer) = send(&client, "/ignore", body).await {
                assert_eq!(answer, "hello");
            }
        }
        assert_eq!(get(&client, "/").await.unwrap(), "hello");
        assert_eq!(site.gate.open(), 1);
    });
}

#[test]
fn a_request_without_a_response_resets_only_its_stream() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        let held = tokio::task::spawn_local(get(&client, "/held"));
        // More than the resets for errors that end a connection.
        for _ in 0..300 {
            assert!(get(&client, "/silence").await.is_err());
        }
        let body = Bytes::from(vec![b'u'; 1 << 20]);
        assert!(send(&client, "/silence", body).await.is_err());
        site.release.notify_one();
        assert_eq!(held.await.unwrap().unwrap(), "hello");
        assert_eq!(get(&client, "/").await.unwrap(), "hello");

        let mut client = ask(&site, "/silence", NO_SETTINGS).await;
        let reset = loop {
            match frame(&mut client).await.unwrap() {
                (3, code) => break code,
                (kind, _) => assert!([SETTINGS, WINDOW_UPDATE].contains(&kind), "{kind}"),
            }
        };
        assert_eq!(reset, [0, 0, 0, 2], "INTERNAL_ERROR");
    });
}

#[test]
fn a_panic_resets_only_its_stream() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        assert!(get(&client, "/panic").await.is_err());
        assert_eq!(get(&client, "/").await.unwrap(), "hello");
        drop(client);
        site.drain.ended().await;
        assert_eq!((site.gate.open(), site.timers.count()), (0, 0));
    });
}

#[test]
fn a_disconnect_cancels_the_requests_in_flight() {
    run(async {
        let site = Site::open(limits()).await;
        let client = connect(&site).await;
        let held = tokio::task::spawn_local(get(&client, "/held"));
        site.until(|site| site.seen.get() == 1).await;
        held.abort();
        drop(client);
        site.drain.ended().await;
    });
}

#[test]
fn a_client_that_does_not_read_blocks_only_its_own_body() {
    run(async {
        let site = Site::open(limits()).await;
        let mut stalled = ask(&site, "/stream", WIDE_OPEN).await;
        site.until(|site| site.seen.get() == 1).await;
        // Others are served meanwhile, through the buffer that all share.
        let client = connect(&site).await;
        for _ in 0..200 {
            assert_eq!(get(&client, "/kib").await.unwrap().len(), 1024);
        }
        assert!(site.made.get() < 32, "{} MiB made", site.made.get());
        let mut bytes = 0;
        while bytes < 64 << 20 {
            let (kind, body) = frame(&mut stalled).await.unwrap();
            bytes += if kind == 0 { body.len() } else { 0 };
        }
        assert_eq!(bytes, 64 << 20);
    });
}

/// Asks for `path` after the given settings, and reads nothing.
pub(super) async fn ask(site: &Site, path: &str, settings: &[u8]) -> Client {
    let mut client = site.connect().await;
    client.send(PREFACE).await;
    client.send(settings).await;
    // HEADERS, END_STREAM and END_HEADERS: GET, http, `:path`, `:authority a`.
    let block = format!("\u{4}{}{path}\u{1}\u{1}a", path.len() as u8 as char);
    let head = [0, 0, block.len() as u8 + 2, 1, 5, 0, 0, 0, 1, 0x82, 0x86];
    client.send([&head[..], block.as_bytes()].concat()).await;
    client
}

#[test]
fn a_head_too_large_is_refused() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = connect(&site).await;
        let request = Request::get("http://a/")
            .header("x", "y".repeat(40 * 1024))
            .body(Full::default())
            .unwrap();
        match client.send_request(request).await {
            Ok(answer) => assert_eq!(answer.status(), 431),
            Err(e) => assert!(!e.is_canceled(), "{e}"),
        }
        assert_eq!(site.seen.get(), 0);
    });
}

#[test]
fn a_protocol_violation_gets_goaway_and_a_close() {
    run(async {
        let site = Site::open(limits()).await;
        let mut client = site.connect().await;
        client.send(PREFACE).await;
        client.send(NO_SETTINGS).await;
        // DATA on stream 0 (RFC 9113, 6.1).
        client.send(b"\0\0\x01\0\0\0\0\0\0x").await;
        let mut bytes = Vec::new();
        let _ = timeout(LONG, client.0.read_to_end(&mut bytes))
            .await
            .unwrap();
        assert!(kinds(&bytes).contains(&GOAWAY));
        assert!(site.end().await.is_err());
    });
}
