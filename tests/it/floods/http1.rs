//! The same over HTTP/1, and connections that come to nothing.

use std::io::Read;
use std::net::TcpStream;

use super::*;

const POST: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn an_endless_head_is_cut_off() {
    let site = Site::open();
    let line = "x".repeat(100);
    for (flood, status) in [
        (
            Flood::http1("fields", "GET / HTTP/1.1\r\nhost: a\r\n", "x-a: 1\r\n"),
            431,
        ),
        (
            Flood::http1("a field", "GET / HTTP/1.1\r\nhost: a\r\nx-a: ", &line),
            431,
        ),
        (Flood::http1("a target", "GET /", &line), 431),
        (
            Flood::http1(
                "cookies",
                "GET / HTTP/1.1\r\nhost: a\r\n",
                "cookie: a=1\r\n",
            ),
            431,
        ),
        (
            Flood::http1(
                "a chunk's extensions",
                POST,
                "1;x=yyyyyyyyyyyyyyyyyyyyyyy\r\nz\r\n",
            ),
            400,
        ),
        (
            Flood::http1("trailers", &format!("{POST}0\r\n"), "x-a: 1\r\n"),
            400,
        ),
    ] {
        let ended = site.flood(&flood);
        let cut = ended == Ended::Status(status) || ended == Ended::Closed;
        assert!(cut, "{}: {ended:?}", flood.name);
    }
}

#[test]
fn pipelined_requests_wait_for_a_client_that_does_not_read() {
    let site = Site::open();
    let flood = Flood::http1("pipeline", "", "GET / HTTP/1.1\r\nhost: a\r\n\r\n").deaf();
    let ended = site.flood(&flood);
    assert_ne!(ended, Ended::Endured);
}

#[test]
fn one_byte_chunks_use_no_memory() {
    let site = Site::open();
    let chunks = Flood::http1("chunks", POST, "1\r\nz\r\n");
    // It is a body like any other: it goes on for as long as the client does.
    let ended = site.flood(&chunks);
    assert!(
        [Ended::Endured, Ended::HeldUp].contains(&ended),
        "{ended:?}"
    );
}

#[test]
fn connections_that_send_nothing_or_half_a_preface_are_closed() {
    let site = Site::with(Origin::start(), "[limits]\nheader_timeout = \"2s\"\n");
    let address = site.process.address(0);
    let ((), mib) = site.under(|| {
        let silent: Vec<_> = (0..300).map(|n| half(address, n)).collect();
        for mut stream in silent {
            let mut rest = Vec::new();
            // The end, or a reset; a timeout would be a connection that was left open.
            if let Err(error) = stream.read_to_end(&mut rest) {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            }
        }
    });
    assert!(mib < ROOM, "{mib} MiB");
}

/// A connection that sends `n` octets of a preface, or of a preface and SETTINGS.
fn half(address: std::net::SocketAddr, n: usize) -> TcpStream {
    use std::io::Write;
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04";
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    stream.write_all(&hello[..n % hello.len()]).unwrap();
    stream
}

#[test]
fn short_connections_leak_no_memory() {
    let site = Site::open();
    let address = site.process.address(0);
    let ((), mib) = site.under(|| {
        for n in 0..3000 {
            drop(half(address, n));
        }
    });
    assert!(mib < ROOM, "{mib} MiB");
    crate::harness::wait_until("all are gone", || site.metric("lockgate_connections") <= 1);
}
