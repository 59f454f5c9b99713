//! Accepts TLS on a TCP connection: reads the ClientHello, computes its fingerprints, frees the bytes, and lets
//! the TLS library finish the handshake.
//!
//! The resulting stream is the library's own, without a wrapper.

use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{HandshakeKind, PeerIncompatible, ServerConnection};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::StartHandshake;

use super::{AlpnProtocol, HandshakeError, TlsTerminator, client_certificate};
use crate::facts::{ClientCertificate, HelloFacts, TlsFacts};
use crate::fingerprint::{self, Fingerprint};

/// A TLS connection.
pub type TlsStream<S> = tokio_rustls::server::TlsStream<S>;

/// The maximum number of bytes before the ClientHello is complete. Hellos with post-quantum keys are below 2
/// KiB.
pub const MAX_HELLO: usize = 16 * 1024;

/// The number of bytes by which the read buffer grows.
const ROOM: usize = 2048;

/// Alerts (RFC 8446, section 6).
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;

/// Performs the TLS handshake. It has no timeout: the caller sets one. Dropping the future closes the
/// connection.
pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    mut tcp: S,
    terminator: &TlsTerminator,
) -> Result<(TlsStream<S>, TlsFacts), HandshakeError> {
    let (accepted, fingerprint) = match hello(&mut tcp).await {
        Ok(hello) => hello,
        Err((error, alert)) => {
            send_alert(&mut tcp, &alert).await;
            return Err(error);
        }
    };
    let start = StartHandshake::from_parts(accepted, tcp);
    // Boxed, so that a client that sends half a ClientHello takes no memory for the whole handshake.
    let stream = Box::pin(start.into_stream(terminator.config.clone())).await?;
    let facts = facts(stream.get_ref().1, fingerprint);
    Ok((stream, facts))
}

/// Returns whether the client resumed a session.
pub fn is_resumed<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed)
}

/// Why a ClientHello is refused, and the alert record for the client; empty if there is none.
type Refusal = (HandshakeError, Vec<u8>);

async fn hello<S: AsyncRead + Unpin>(tcp: &mut S) -> Result<(Accepted, Fingerprint), Refusal> {
    let mut acceptor = Acceptor::default();
    let mut bytes = Vec::with_capacity(ROOM);
    loop {
        let new = read_more(tcp, &mut bytes).await?;
        let fed = feed(&mut acceptor, bytes.get(new..).unwrap_or_default());
        if let Some(accepted) = fed.map_err(|(error, alert)| refused(error, alert, &bytes))? {
            let fingerprint = fingerprint::of_records(&bytes).map_err(|error| {
                let error = HandshakeError::NoFingerprint(error);
                (error, fatal(DECODE_ERROR))
            })?;
            return Ok((accepted, fingerprint));
        }
    }
}

/// Reads at least one byte, appends the bytes to the buffer and returns where they start.
async fn read_more<S: AsyncRead + Unpin>(
    tcp: &mut S,
    bytes: &mut Vec<u8>,
) -> Result<usize, Refusal> {
    let new = bytes.len();
    let left = MAX_HELLO.saturating_sub(new);
    if left == 0 {
        return Err((HandshakeError::HelloTooLarge, fatal(ILLEGAL_PARAMETER)));
    }
    if bytes.len() == bytes.capacity() {
        bytes.reserve_exact(ROOM.min(left));
    }
    match tcp.take(left as u64).read_buf(bytes).await {
        Ok(0) => Err((HandshakeError::Closed, Vec::new())),
        Ok(_) => Ok(new),
        Err(error) => Err((error.into(), Vec::new())),
    }
}

/// Passes all of `bytes` to the library, including those after the ClientHello, and returns the ClientHello.
fn feed(
    acceptor: &mut Acceptor,
    mut bytes: &[u8],
) -> Result<Option<Accepted>, (rustls::Error, AcceptedAlert)> {
    // An empty read would signal the end of the connection to the library.
    while !bytes.is_empty() {
        if !matches!(acceptor.read_tls(&mut bytes), Ok(1..)) {
            break;
        }
    }
    acceptor.accept()
}

fn facts(connection: &ServerConnection, fingerprint: Fingerprint) -> TlsFacts {
    TlsFacts {
        version: connection
            .protocol_version()
            .map_or("", |version| match version {
                rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
                _ => "TLSv1.2",
            }),
        cipher: connection
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .map_or("", iana),
        sni: fingerprint.sni,
        alpn: connection.alpn_protocol().and_then(AlpnProtocol::selected),
        client: connection
            .peer_certificates()
            .and_then(<[_]>::first)
            .map(|own| ClientCertificate::new(&**own, client_certificate::fields_of)),
        hello: HelloFacts {
            ja3: fingerprint.ja3,
            ja3_raw: fingerprint.ja3_raw,
            ja4: fingerprint.ja4,
            length: fingerprint.length,
        },
    }
}

/// Converts the library's name of a cipher suite to IANA's: they differ in the prefix `TLS13_`.
fn iana(name: &'static str) -> &'static str {
    match name {
        "TLS13_AES_128_GCM_SHA256" => "TLS_AES_128_GCM_SHA256",
        "TLS13_AES_256_GCM_SHA384" => "TLS_AES_256_GCM_SHA384",
        "TLS13_CHACHA20_POLY1305_SHA256" => "TLS_CHACHA20_POLY1305_SHA256",
        name => name,
    }
}

/// Describes a ClientHello that the library refuses. If it does not start with a handshake record, it is not TLS
/// (RFC 8446, section 5.1).
fn refused(error: rustls::Error, mut alert: AcceptedAlert, bytes: &[u8]) -> Refusal {
    let mut record = Vec::new();
    // A write to memory cannot fail; without the record the client only sees the connection close.
    let _ = alert.write_all(&mut record);
    match (bytes.first(), error) {
        // The library fails before it checks the version (RFC 5246, appendix E.1).
        (Some(22), _) if is_old(bytes) => (
            HandshakeError::Tls(PeerIncompatible::Tls12NotOffered.into()),
            fatal(PROTOCOL_VERSION),
        ),
        (Some(22), error @ rustls::Error::PeerIncompatible(_)) => {
            (HandshakeError::Tls(error), record)
        }
        (Some(22), error) => (HandshakeError::BadHello(error), record),
        _ => (HandshakeError::NotTls, record),
    }
}

/// Sends the alert, if the client still reads.
async fn send_alert<S: AsyncWrite + Unpin>(tcp: &mut S, alert: &[u8]) {
    if !alert.is_empty() && tcp.write_all(alert).await.is_ok() {
        let _ = tcp.shutdown().await;
    }
}

/// Builds an unencrypted alert record (RFC 8446, section 6).
fn fatal(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

/// Returns whether the ClientHello is from a client that supports at most TLS 1.1. The version follows the
/// headers of the record and of the message (RFC 5246, sections 6.2.1 and 7.4.1.2).
fn is_old(bytes: &[u8]) -> bool {
    const TLS_1_2: [u8; 2] = [3, 3];
    let version = bytes.get(9..11).filter(|_| bytes.get(5) == Some(&1));
    version.is_some_and(|version| version < &TLS_1_2[..])
}
