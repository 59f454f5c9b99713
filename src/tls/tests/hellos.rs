//! Hellos that come in pieces, are too long, or are none.

use super::*;

/// How the bytes of the client's first record reach the server.
#[derive(Clone, Copy)]
enum Pieces {
    /// One byte a write.
    Bytes,
    /// One write of many records with this many bytes each.
    Records(usize),
}

/// A relay between client and server that passes the hello on in pieces, all else as it comes.
async fn relay(from: &TcpListener, to: std::net::SocketAddr, pieces: Pieces) {
    let (mut near, _) = from.accept().await.unwrap();
    let mut far = TcpStream::connect(to).await.unwrap();
    far.set_nodelay(true).unwrap();
    let mut head = [0; 5];
    near.read_exact(&mut head).await.unwrap();
    let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    near.read_exact(&mut body).await.unwrap();
    match pieces {
        Pieces::Bytes => {
            for byte in [&head[..], &body].concat() {
                far.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
        Pieces::Records(size) => {
            let records = body.chunks(size).flat_map(|piece| {
                let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
                [&head[..3], &length, piece].concat()
            });
            far.write_all(&records.collect::<Vec<u8>>()).await.unwrap();
        }
    }
    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}

#[tokio::test]
async fn a_client_hello_in_pieces_has_the_same_fingerprint() {
    let own = [certificate(&["localhost"])];
    let server = terminator(&own);
    let config = Arc::new(client(&TLS13, &own));
    let (_, whole) = meet(&server, &config, "localhost").await;
    let whole = whole.unwrap().hello;
    for pieces in [Pieces::Bytes, Pieces::Records(1), Pieces::Records(50)] {
        // A new client each time, because one that resumes sends another hello.
        let config = Arc::new(client(&TLS13, &own));
        let (behind, server_address) = listener().await;
        let (front, address) = listener().await;
        let meeting = async {
            let tcp = TcpStream::connect(address).await.unwrap();
            connect(&config, tcp, "localhost").await
        };
        let (seen, facts, ()) = tokio::join!(
            meeting,
            serve(&behind, &server),
            relay(&front, server_address, pieces)
        );
        seen.unwrap();
        let hello = facts.unwrap().hello;
        assert_eq!(hello.ja4, whole.ja4);
        assert_eq!(hello.length, whole.length);
        let sorted = |raw: &str| {
            let mut parts: Vec<String> = raw.split(['-', ',']).map(str::to_owned).collect();
            parts.sort();
            parts
        };
        // The library's client shuffles its extensions.
        assert_eq!(sorted(&hello.ja3_raw), sorted(&whole.ja3_raw));
    }
}

/// A client with a ClientHello of about `size` KiB, of unknown protocols and then h2.
fn verbose(own: &[Certificate], size: usize) -> Arc<ClientConfig> {
    let mut config = client(&TLS13, own);
    config.alpn_protocols = (0..size * 4).map(|_| vec![b'x'; 255]).collect();
    config.alpn_protocols.push(b"h2".to_vec());
    Arc::new(config)
}

#[tokio::test]
async fn a_client_hello_over_the_limit_is_refused() {
    let own = [certificate(&["localhost"])];
    let server = terminator(&own);
    let (seen, facts) = meet(&server, &verbose(&own, 12), "localhost").await;
    seen.unwrap();
    let facts = facts.unwrap();
    assert_eq!(facts.alpn, Some("h2"));
    assert!(facts.hello.length > 12 * 1024);

    let (seen, facts) = meet(&server, &verbose(&own, 20), "localhost").await;
    assert!(seen.is_err());
    assert_eq!(facts.unwrap_err().kind(), "hello_too_large");
}

/// The server's result for these bytes, and its response.
async fn answer(bytes: &[u8]) -> (HandshakeError, Vec<u8>) {
    let server = terminator(&[certificate(&["localhost"])]);
    let (listener, address) = listener().await;
    let client = async {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        tcp.shutdown().await.unwrap();
        let mut answer = Vec::new();
        tcp.read_to_end(&mut answer).await.unwrap();
        answer
    };
    let (answer, served) = tokio::join!(client, serve(&listener, &server));
    (served.unwrap_err(), answer)
}

#[tokio::test]
async fn bytes_that_are_not_a_client_hello_are_refused() {
    const ALERT: u8 = 21;
    for bytes in [&b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], &[0; 600]] {
        let (error, answer) = answer(bytes).await;
        assert_eq!(error.kind(), "not_tls");
        assert_eq!(answer.first(), Some(&ALERT));
    }
    for bytes in [
        &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0][..],
        &[22, 3, 1, 0, 4, 2, 0, 0, 0],
    ] {
        let (error, answer) = answer(bytes).await;
        assert_eq!(error.kind(), "bad_hello", "{error}");
        assert_eq!(answer.first(), Some(&ALERT));
    }
    for bytes in [&[][..], &[22], &[22, 3, 1, 2, 0, 1, 0]] {
        let (error, answer) = answer(bytes).await;
        assert_eq!(error.kind(), "closed");
        assert!(answer.is_empty());
    }
}

#[tokio::test]
async fn a_dropped_accept_closes_the_connection() {
    let server = terminator(&[certificate(&["localhost"])]);
    for bytes in [&[][..], &[22, 3, 1, 2, 0, 1, 0]] {
        let (listener, address) = listener().await;
        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        let soon = std::time::Duration::from_millis(20);
        let waited = tokio::time::timeout(soon, serve(&listener, &server)).await;
        assert!(waited.is_err());
        assert_eq!(tcp.read(&mut [0]).await.unwrap(), 0);
    }
}
