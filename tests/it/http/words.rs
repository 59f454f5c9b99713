//! What the log says when something fails: sentences, each thing once, and the cure where there
//! is one.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::config;
use super::secure::Openssl;
use crate::harness::{
    Authority, Client, Folder, Frames, Origin, Process, Wire, next_frame, wait_until,
};

/// What the log says of the upstream at `address` after one request.
#[track_caller]
fn said(address: SocketAddr, keys: &str, request: &[u8]) -> String {
    said_with(502, address, keys, request)
}

/// The same where the answer has another status.
#[track_caller]
fn said_with(status: u16, address: SocketAddr, keys: &str, request: &[u8]) -> String {
    let config = config(keys).replace("{origin}", &address.to_string());
    let process = Process::run(&config);
    let mut wire = Client::plain(process.address(0)).connect();
    wire.send(request);
    assert_eq!(wire.answer().status, status);
    let logged = || process.logged("upstream failed");
    wait_until("it says why", || !logged().is_empty());
    let line = logged().remove(0);
    assert!(line.contains(&format!("server={address} ")) || line.contains("server=- "));
    line
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Runs openssl in a folder.
fn openssl(folder: &Folder, arguments: &str) {
    let made = Command::new("openssl")
        .current_dir(folder.path())
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(made.status.success(), "{arguments}: {made:?}");
}

#[test]
fn certificate_errors_of_origins_are_described() {
    let folder = Folder::new();
    let ca = folder.write("ca.pem", Authority::new().pem());
    let tls = format!(
        "tls = {{ ca = {:?}, server_name = \"a.test\" }}",
        ca.display().to_string()
    );
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a -keyout key.pem";

    openssl(&folder, &format!("req -x509 {new} -out cert.pem"));
    let (server, address) = Openssl::serve(&folder, "-tls1_3");
    let line = said(address, &tls, GET);
    assert!(
        line.contains("the origin server's certificate is a CA certificate;"),
        "{line}"
    );
    drop(server);

    openssl(&folder, &format!("req {new} -out request.pem"));
    openssl(
        &folder,
        "x509 -req -in request.pem -signkey key.pem -out cert.pem",
    );
    let (server, address) = Openssl::serve(&folder, "-tls1_3");
    let line = said(address, &tls, GET);
    let old = "the origin server's certificate has an old version: it must be X.509 version 3";
    assert!(line.contains(old), "{line}");
    drop(server);

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 12, 31);
    let made = params.self_signed(&key).unwrap();
    folder.write("ca.pem", Authority::new().pem());
    folder.write("cert.pem", made.pem());
    folder.write("key.pem", key.serialize_pem());
    let (server, address) = Openssl::serve(&folder, "-tls1_3");
    let line = said(address, &tls, GET);
    let expired = "the origin server's certificate expired on 2021-12-31T00:00:00Z";
    assert!(line.contains(expired), "{line}");
    drop(server);
}

/// A certificate that expired and signed itself, in the files of `folder`; it stands in `ca` itself.
fn expired(folder: &Folder) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 12, 31);
    folder.write("key.pem", key.serialize_pem());
    let cert = folder.write("cert.pem", params.self_signed(&key).unwrap().pem());
    format!("tls = {{ ca = {cert:?}, server_name = \"a.test\" }}")
}

#[test]
fn an_expired_certificate_is_reported_for_a_server_given_by_name() {
    let folder = Folder::new();
    let tls = expired(&folder);
    let (_server, address) = Openssl::serve(&folder, "-tls1_3");
    let line = said(address, &tls, GET);
    let wanted = "reason=tls_failed error=\"the origin server's certificate expired on 2021-12-31";
    assert!(line.contains(wanted), "{line}");
}

#[test]
fn a_health_check_reports_certificate_errors() {
    let folder = Folder::new();
    let tls = expired(&folder);
    let (_server, address) = Openssl::serve(&folder, "-tls1_3");
    let health = "health = { path = \"/\", interval = \"100ms\", unhealthy = 2 }";
    let config = config(&format!("{tls}\n{health}")).replace("{origin}", &address.to_string());
    let process = Process::run(&config);
    let logged = || process.logged("server unhealthy");
    wait_until("it is unhealthy", || !logged().is_empty());
    let line = logged().remove(0);
    let wanted = "reason=tls_failed error=\"the origin server's certificate expired on 2021-12-31";
    assert!(
        line.contains("upstream=app ") && line.contains(wanted),
        "{line}"
    );
    let mut wire = Client::plain(process.address(0)).connect();
    assert_eq!(wire.get("/").status, 503);
}

/// An origin that lets nobody in without a certificate, and says so before it closes.
fn asking(version: &'static SupportedProtocolVersion, protocol: &str) -> Origin {
    let authority = Authority::new();
    let (certificate, key) = authority.issue("a.test");
    let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(read(&authority.pem())).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(vec![read(&certificate)], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let config = Arc::new(config);
    Origin::scripted(move |mut tcp| {
        let mut tls = ServerConnection::new(config.clone()).unwrap();
        while tls.is_handshaking() && tls.complete_io(&mut tcp).is_ok() {}
        drop(Wire::new(tcp).rest());
    })
}

#[test]
fn an_origin_that_requires_a_client_certificate_is_reported() {
    for version in [&TLS12, &TLS13] {
        for protocol in ["http/1.1", "h2"] {
            let origin = asking(version, protocol);
            let keys = format!("protocol = {protocol:?}\ntls = {{ verify = false }}");
            let line = said(origin.address, &keys, GET);
            let wanted =
                "it requires a client certificate, which the gateway does not send (alert ";
            assert!(line.contains(wanted), "{protocol}: {line}");
            assert!(line.contains("upstream=app "), "{line}");
            assert!(!line.contains("does not support HTTP/2"), "{line}");
        }
    }
}

#[test]
fn an_origin_without_tls_is_reported() {
    let origin = Origin::start();
    let line = said(origin.address, "tls = { verify = false }", GET);
    let wanted =
        "reason=tls_failed error=\"the origin server does not speak TLS on this port\" more=0";
    assert!(line.contains(wanted), "{line}");
}

#[test]
fn an_origin_with_another_protocol_is_reported() {
    let origin = Origin::start();
    let line = said(origin.address, "protocol = \"h2\"", GET);
    let wanted = "reason=no_http2 error=\"the origin server does not support HTTP/2 on this port: \
                  set `protocol = \\\"http/1.1\\\"`\" more=0";
    assert!(line.contains(wanted), "{line}");

    // As one that speaks TLS answers to what is none (RFC 8446, section 6).
    let alert = Origin::scripted(|stream| {
        let mut wire = Wire::new(stream);
        wire.send(&[21, 3, 3, 0, 2, 2, 10]);
        drop(wire.rest());
    });
    let line = said(alert.address, "", GET);
    let wanted = "it looks like TLS: set `tls = true`";
    assert!(line.contains(wanted), "{line}");
}

#[test]
fn a_refused_body_that_is_too_large_to_send_again_is_reported() {
    let goaway = Frames::default().frame(7, 0, 0, &[0; 8]).0;
    let reset = Frames::default().frame(3, 0, 1, &[0, 0, 0, 7]).0;
    for (refusal, did) in [
        (goaway, "closed the HTTP/2 connection (GOAWAY, NO_ERROR)"),
        (reset, "reset the stream (REFUSED_STREAM)"),
    ] {
        let origin = Origin::scripted(move |stream| {
            let mut wire = Wire::new(stream);
            if wire.try_exactly(24).is_none() {
                return;
            }
            // Windows of a mebibyte more.
            let window = [0, 4, 0, 16, 0, 0];
            let frames = Frames::default().frame(4, 0, 0, &window);
            wire.send(&frames.frame(8, 0, 0, &[0, 16, 0, 0]).0);
            let mut body = 0;
            while let Some((kind, _, _, payload)) = next_frame(&mut wire) {
                let before = body;
                body += if kind == 0 { payload.len() } else { 0 };
                if before <= 80_000 && body > 80_000 {
                    wire.send(&refusal);
                }
            }
        });
        let request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";
        let request = [&request[..], &[b'x'; 100_000]].concat();
        let line = said(origin.address, "protocol = \"h2\"", &request);
        let wanted = format!(
            "reason=refused error=\"the origin server refused the request: it {did}, and the request \
             body is too large to be kept for another attempt\" more=0"
        );
        assert!(line.contains(&wanted), "{line}");
    }
}

#[test]
fn an_origin_that_accepts_and_stays_silent_is_reported() {
    let keys = "connect_timeout = \"100ms\"\nretries = 0\n";
    for (more, wanted) in [
        (
            "tls = { verify = false }",
            "but did not finish the TLS handshake within",
        ),
        ("protocol = \"h2\"", "but did not start HTTP/2 within"),
    ] {
        let mute = Origin::scripted(|stream| drop(Wire::new(stream).rest()));
        let line = said_with(504, mute.address, &format!("{keys}{more}"), GET);
        assert!(
            line.contains("reason=connect_timeout error=\"the origin server accepted"),
            "{line}"
        );
        assert!(line.contains(wanted), "{line}");
    }
}

#[test]
fn a_reason_is_logged_once_with_a_description() {
    let (address, listener) = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        (listener.local_addr().unwrap(), listener)
    };
    drop(listener);
    let line = said(address, "", GET);
    assert!(
        line.contains("reason=connect_refused error=\"the server refuses"),
        "{line}"
    );
    let once =
        [address.to_string().as_str(), "connect_refused"].map(|word| line.matches(word).count());
    assert_eq!(once, [1, 1], "{line}");
}

#[test]
fn a_websocket_to_an_http2_upstream_names_the_setting_to_change() {
    let origin = Origin::start();
    let opening = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let line = said(origin.address, "protocol = \"h2\"", opening);
    assert!(line.contains("reason=no_upgrade"), "{line}");
    assert!(
        line.contains(r#"set `protocol` to \"http/1.1\" or \"auto\""#),
        "{line}"
    );
}

#[test]
fn handshake_errors_of_clients_are_described() {
    let authority = Authority::new();
    let folder = Folder::new();
    let ca = folder.write("ca.pem", authority.pem());
    let config = config("").replace("{origin}", "127.0.0.1:1");
    let config = config.replace("[log]", "[log]\nlevel = \"debug\"");
    let asks = format!(
        "[listeners.tls]\nclient_ca = {:?}",
        ca.display().to_string()
    );
    let process = Process::run(&config.replace("[listeners.tls]", &asks));
    let address = process.address(1);
    let has = |wanted: &str| {
        wait_until(wanted, || {
            let lines = process.logged("handshake failed");
            lines.iter().any(|line| line.contains(wanted))
        });
    };
    let shake = |arguments: &[&str]| {
        let ran = Command::new("openssl")
            .current_dir(folder.path())
            .args(["s_client", "-connect", &address.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        ran.unwrap();
    };
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(GET).unwrap();
    let peer = tcp.local_addr().unwrap();
    has(&format!("peer={peer} kind=not_tls"));
    has("kind=not_tls error=\"the client does not speak TLS on this port\"");
    shake(&["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
    has("kind=handshake error=\"the client supports neither TLS 1.2 nor TLS 1.3\"");
    shake(&["-tls1_2"]);
    has("the client has no certificate, but `client_auth` requires one");
    let (cert, key) = Authority::new().issue("b.test");
    folder.write("b.pem", cert);
    folder.write("b.key", key);
    shake(&["-tls1_2", "-cert", "b.pem", "-key", "b.key"]);
    has("the client's certificate is not signed by an authority in `client_ca`");
    shake(&["-verify_return_error", "-CAfile", "ca.pem"]);
    has("the client ended the handshake: it does not trust the CA of the gateway's certificate");
    let debug = process.logged("handshake failed").join("\n");
    for name in ["UnknownIssuer", "UnknownCA", "InvalidContentType"] {
        assert!(!debug.contains(name), "{debug}");
    }
}
