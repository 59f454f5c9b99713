//! TLS to the origin: who it must be, and what becomes of one who is not.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use super::{before, config};
use crate::harness::{
    Authority, Client, Folder, Origin, Process, Running, Stage, Wire, run, server_of, wait_until,
};

/// An HTTP/1.1 origin behind TLS that tells of each handshake.
fn https(config: Arc<ServerConfig>) -> (Origin, mpsc::Receiver<Option<HandshakeKind>>) {
    let (tell, told) = mpsc::channel();
    let origin = Origin::scripted(move |tcp| {
        let Some(tls) = shake(tcp, &config) else {
            return;
        };
        let _ = tell.send(tls.conn.handshake_kind());
        let mut wire = Wire::new(tls);
        while let Some(head) = wire.try_head() {
            let line = String::from_utf8(head).unwrap();
            let line = line.split("\r\n").next().unwrap().to_owned();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{line}",
                line.len()
            );
            if wire.try_send(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (origin, told)
}

fn shake(
    mut tcp: TcpStream,
    config: &Arc<ServerConfig>,
) -> Option<StreamOwned<ServerConnection, TcpStream>> {
    let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).ok()?;
    }
    Some(StreamOwned::new(tls, tcp))
}

/// A gateway before `origin`, with `ca` in a file beside its configuration.
fn trusting(origin: Origin, authority: &Authority, keys: &str) -> Running {
    let folder = Folder::new();
    let ca = folder.write("ca.pem", authority.pem());
    before(origin, &keys.replace("{ca}", &ca.display().to_string()))
}

#[test]
fn an_origin_with_a_trusted_certificate_gets_requests() {
    let authority = Authority::new();
    for (name, tls) in [
        ("127.0.0.1", r#"tls = { ca = "{ca}" }"#),
        ("a.test", r#"tls = { ca = "{ca}", server_name = "a.test" }"#),
    ] {
        let (origin, told) = https(authority.server(name, &["http/1.1"]));
        let gateway = trusting(origin, &authority, tls);
        let mut wire = gateway.client().connect();
        for path in ["/a", "/b", "/c"] {
            assert_eq!(wire.get(path).text(), format!("GET {path} HTTP/1.1"));
        }
        // All over one connection.
        assert_eq!(told.recv().unwrap(), Some(HandshakeKind::Full));
        assert!(told.try_recv().is_err());
    }
}

#[test]
fn a_self_signed_certificate_in_ca_is_trusted_for_its_names() {
    let folder = Folder::new();
    let made = Command::new("openssl")
        .current_dir(folder.path())
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=a"])
        .args(["-addext", "subjectAltName=DNS:a.test"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .output();
    assert!(made.unwrap().status.success());
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let config = server_of(&read("cert.pem"), &read("key.pem"));
    for (name, status) in [("a.test", 200), ("b.test", 502)] {
        let (origin, _told) = https(config.clone());
        let keys = format!(
            "tls = {{ ca = {:?}, server_name = {name:?} }}",
            folder.path().join("cert.pem").display().to_string()
        );
        let gateway = before(origin, &keys);
        assert_eq!(gateway.client().get("/").send().status, status, "{name}");
    }
}

#[test]
fn sessions_are_resumed() {
    let authority = Authority::new();
    let (origin, told) = https(authority.server("127.0.0.1", &["http/1.1"]));
    let gateway = trusting(
        origin,
        &authority,
        "tls = { ca = \"{ca}\" }\nmax_idle_per_server = 0",
    );
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
        assert_eq!(gateway.client().get("/").send().status, 200);
        assert_eq!(told.recv().unwrap(), Some(kind));
    }
}

#[test]
fn an_origin_with_an_untrusted_certificate_is_502_and_gets_no_request() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let requests = Arc::new(AtomicUsize::new(0));
    for (issuer, name, why) in [
        (
            &authority,
            "b.test",
            "not for a.test, but for other names: b.test",
        ),
        (&stranger, "a.test", "not signed by an authority in `ca`"),
    ] {
        for protocol in ["http/1.1", "h2", "auto"] {
            let count = requests.clone();
            let config = issuer.server(name, &["h2", "http/1.1"]);
            let origin = Origin::scripted(move |tcp| {
                if let Some(tls) = shake(tcp, &config) {
                    let got = Wire::new(tls).try_exactly(1);
                    count.fetch_add(got.map_or(0, |_| 1), Ordering::SeqCst);
                }
            });
            let folder = Folder::new();
            let ca = folder.write("ca.pem", authority.pem());
            let keys = format!(
                "protocol = {protocol:?}\ntls = {{ ca = {:?}, server_name = \"a.test\" }}",
                ca.display().to_string()
            );
            let address = origin.address.to_string();
            let process = Process::run(&self::config(&keys).replace("{origin}", &address));
            let mut wire = Client::plain(process.address(0)).connect();
            assert_eq!(wire.get("/").status, 502, "{name} {protocol}");
            wait_until("it says why", || !process.logged("tls_failed").is_empty());
            let logged = process.logged("tls_failed");
            assert!(logged[0].contains(why), "{logged:?}");
            let once = ["tls_failed", &address].map(|word| logged[0].matches(word).count());
            assert_eq!(once, [1, 1], "{logged:?}");
        }
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[test]
fn without_verification_every_certificate_is_accepted() {
    let (origin, _told) = https(Authority::new().server("elsewhere.test", &[]));
    let gateway = before(origin, "tls = { verify = false }");
    assert_eq!(gateway.client().get("/x").send().text(), "GET /x HTTP/1.1");
}

#[test]
fn a_server_that_does_not_speak_tls_is_502() {
    let gateway = before(Origin::start(), "tls = { verify = false }");
    assert_eq!(gateway.client().get("/").send().status, 502);
}

#[test]
fn the_protocol_is_negotiated_by_alpn() {
    let authority = Authority::new();
    let said = |protocols: &[&str], keys: &str| {
        let (tell, told) = mpsc::channel();
        let config = authority.server("127.0.0.1", protocols);
        let origin = Origin::scripted(move |tcp| {
            if let Some(tls) = shake(tcp, &config) {
                let first = Wire::new(tls).try_exactly(3);
                tell.send(first.unwrap_or_default()).unwrap();
            }
        });
        let keys = format!("tls = {{ ca = \"{{ca}}\" }}\n{keys}");
        let gateway = trusting(origin, &authority, &keys);
        gateway.client().get("/").times(1).all_are(502);
        String::from_utf8(told.recv().unwrap()).unwrap()
    };
    let both = &["h2", "http/1.1"];
    assert_eq!(said(both, "protocol = \"http/1.1\""), "GET");
    assert_eq!(said(both, "protocol = \"h2\""), "PRI");
    assert_eq!(said(both, "protocol = \"auto\""), "PRI");
    assert_eq!(said(&["http/1.1"], "protocol = \"auto\""), "GET");
    assert_eq!(said(&[], "protocol = \"auto\""), "GET");
    // Nobody guesses: without an agreement there is no HTTP/2.
    assert_eq!(said(&[], "protocol = \"h2\""), "");
}

#[test]
fn http2_over_tls_carries_requests() {
    let authority = Authority::new();
    let stage = Stage {
        tls: Some(authority.server("127.0.0.1", &["h2"])),
        ..Stage::default()
    };
    let origin = stage.play(|call| async move {
        assert_eq!(call.request.uri().scheme_str(), Some("https"));
        let text = format!("{} on {}", call.request.uri().path(), call.connection);
        call.say(&text);
    });
    let keys = "tls = { ca = \"{ca}\" }\nprotocol = \"auto\"";
    let gateway = trusting(origin, &authority, keys);
    let mut wire = gateway.client().connect();
    for path in ["/a", "/b"] {
        wire.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
        wire.head();
        let body = String::from_utf8(wire.head()).unwrap();
        assert!(body.contains(&format!("{path} on 0\r\n")), "{body}");
    }
    run(async {
        let mut talk = gateway.tls_client().talk().await;
        let told = talk.send(talk.request("GET", "/c")).await;
        assert_eq!(told.text(), "/c on 0");
    });
}

#[test]
fn a_websocket_has_its_own_connection() {
    let authority = Authority::new();
    let config = authority.server("127.0.0.1", &["h2", "http/1.1"]);
    let origin = Origin::scripted(move |tcp| {
        let tls = shake(tcp, &config).unwrap();
        assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        let mut wire = Wire::new(tls);
        wire.head();
        wire.send(
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
              sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
        );
        assert_eq!(wire.exactly(5), b"world");
    });
    let keys = "tls = { ca = \"{ca}\" }\nprotocol = \"auto\"";
    let gateway = trusting(origin, &authority, keys);
    let mut wire = gateway.client().connect();
    wire.send(
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
          sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(wire.answer().status, 101);
    assert_eq!(wire.exactly(5), b"hello");
    wire.send(b"world");
    assert_eq!(wire.rest(), b"");
}

/// `openssl s_server`, killed with this value.
pub(super) struct Openssl(Child);

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Openssl {
    /// With `cert.pem` and `key.pem` of this folder.
    pub(super) fn serve(folder: &Folder, version: &str) -> (Self, SocketAddr) {
        let mut child = Command::new("openssl")
            .current_dir(folder.path())
            .args(["s_server", "-accept", "127.0.0.1:0", "-www", version])
            .args(["-cert", "cert.pem", "-key", "key.pem"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let openssl = Self(child);
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("ACCEPT ")).unwrap();
        // What it says of connections must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        (openssl, line["ACCEPT ".len()..].parse().unwrap())
    }
}

#[test]
fn openssl_s_server_works_as_an_origin_with_every_tls_version() {
    let authority = Authority::new();
    let folder = Folder::new();
    let (certificate, key) = authority.issue("a.test");
    folder.write("cert.pem", certificate);
    folder.write("key.pem", key);
    let ca = folder.write("ca.pem", authority.pem());
    for version in ["-tls1_2", "-tls1_3"] {
        let (_openssl, address) = Openssl::serve(&folder, version);
        let tls = format!(
            "tls = {{ ca = {:?}, server_name = \"a.test\" }}",
            ca.display().to_string()
        );
        let gateway = before(Origin::at(address), &tls);
        for _ in 0..3 {
            let answer = gateway.client().get("/").send();
            assert_eq!(answer.status, 200);
            assert!(answer.text().contains("Cipher"), "{}", answer.text());
        }
    }
}

#[test]
fn wrong_tls_settings_are_reported_by_check() {
    let authority = Authority::new();
    for (keys, code, said) in [
        ("tls = true", 0, ""),
        ("tls = { ca = \"ca.pem\" }", 0, ""),
        (
            "tls = { verify = false }",
            0,
            "warning[unverified-origin]: any certificate is accepted",
        ),
        ("protocol = \"auto\"", 0, ""),
        (
            "tls = { ca = \"ca.pem\", verify = false }",
            1,
            "error: `ca` has no effect with `verify = false`",
        ),
        (
            "tls = { ca = \"absent.pem\" }",
            1,
            "absent.pem`: No such file",
        ),
        (
            "tls = { ca = \"gateway.toml\" }",
            1,
            "error: cannot use `gateway.toml`: there is no root certificate",
        ),
        (
            "tls = { ca = \"ca.pem\", server_name = \"a b\" }",
            1,
            "error: `a b` is neither a host name nor an address",
        ),
    ] {
        let folder = Folder::new();
        folder.write("ca.pem", authority.pem());
        folder.write(
            "gateway.toml",
            config(keys).replace("{origin}", "127.0.0.1:9"),
        );
        let output = Process::output(&folder, &["check", "--config", "gateway.toml"]);
        let text =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{keys}: {text}");
        assert!(text.contains(said), "{keys}: {text}");
    }
}

/// A gateway before `localhost`, at the port of `origin`, by its name.
fn by_name(origin: &Origin, ca: &str, keys: &str) -> Process {
    let port = origin.address.port();
    let tls = format!("resolve_interval = \"1s\"\nretries = 2\n{keys}\ntls = {{ ca = {ca:?} }}");
    let config = config(&tls).replace("{origin}", &format!("localhost:{port}"));
    Process::run(&config)
}

#[test]
fn a_server_given_by_name_must_have_a_certificate_for_it() {
    let authority = Authority::new();
    let folder = Folder::new();
    let ca = folder.write("ca.pem", authority.pem());
    let ca = ca.display().to_string();
    for protocol in ["http/1.1", "auto"] {
        let keys = format!("protocol = {protocol:?}");
        let (tell, told) = mpsc::channel();
        let config = authority.server("localhost", &["http/1.1"]);
        let origin = Origin::scripted(move |tcp| {
            let tls = shake(tcp, &config).unwrap();
            tell.send(tls.conn.server_name().map(str::to_owned))
                .unwrap();
            let mut wire = Wire::new(tls);
            while wire.try_head().is_some() {
                wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            }
        });
        let process = by_name(&origin, &ca, &keys);
        let answer = Client::plain(process.address(0)).get("/").send();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        assert_eq!(told.recv().unwrap().as_deref(), Some("localhost"));

        // Neither another name nor the address it was found at will do.
        for name in ["elsewhere.test", "127.0.0.1"] {
            let requests = Arc::new(AtomicUsize::new(0));
            let (count, config) = (requests.clone(), authority.server(name, &["http/1.1"]));
            let origin = Origin::scripted(move |tcp| {
                if let Some(tls) = shake(tcp, &config) {
                    let got = Wire::new(tls).try_exactly(1);
                    count.fetch_add(got.map_or(0, |_| 1), Ordering::SeqCst);
                }
            });
            let process = by_name(&origin, &ca, &keys);
            let answer = Client::plain(process.address(0)).get("/").send();
            assert_eq!(answer.status, 502, "{name}");
            wait_until("it says why", || !process.logged("tls_failed").is_empty());
            let logged = process.logged("tls_failed");
            let server = format!("localhost:{}", origin.address.port());
            let why = "the origin server's certificate is not for localhost";
            for part in ["upstream failed", server.as_str(), why, name] {
                assert!(logged[0].contains(part), "{logged:?}");
            }
            assert_eq!(requests.load(Ordering::SeqCst), 0, "{name}");
        }
    }
}

#[test]
fn a_system_without_roots_is_an_error_that_names_the_package() {
    let folder = Folder::new();
    let lines = config("tls = true").replace("{origin}", "127.0.0.1:9000");
    folder.write("gateway.toml", &lines);
    let mut command = Process::command();
    command.args(["check", "--config", "gateway.toml"]);
    command.env("SSL_CERT_FILE", folder.path().join("none"));
    command.env("SSL_CERT_DIR", folder.path().join("none"));
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("cannot use the system's root certificates: there is no root certificate"),
        "{said}"
    );
    assert!(
        said.contains("install the package `ca-certificates`"),
        "{said}"
    );
}
