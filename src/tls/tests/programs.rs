//! The `openssl` and `curl` programs as clients and as makers of keys.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustls::pki_types::pem::PemObject;

use super::*;

/// A directory of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lockgate-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().unwrap().to_owned()
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.0.join(file)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program to its end, and gives what it printed, errors after output.
fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    [done.stdout, done.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat()
}

/// A key made by these `openssl` words, and a certificate for it.
fn made(scratch: &Scratch, key: &[&str]) -> Certificate {
    let (key_path, path) = (scratch.path("key.pem"), scratch.path("cert.pem"));
    run("openssl", &[key, &["-out", &key_path]].concat());
    let names = "subjectAltName=DNS:localhost,DNS:*.Example.com,IP:127.0.0.1,IP:::1,email:a@b.c";
    let words = ["req", "-x509", "-new", "-subj", "/CN=localhost", "-addext"];
    let files = [names, "-key", &key_path, "-out", &path];
    run("openssl", &[&words[..], &files].concat());
    from_pem(&scratch.read("cert.pem"), &scratch.read("key.pem")).unwrap()
}

/// Runs the program with PORT in its arguments replaced, while serving this many connections.
async fn talk(
    server: &TlsTerminator,
    program: &'static str,
    words: &[&str],
    connections: usize,
) -> (String, Vec<Served>) {
    let (listener, address) = listener().await;
    let port = address.port().to_string();
    let words: Vec<String> = words.iter().map(|w| w.replace("PORT", &port)).collect();
    let client = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run(program, &words)
    });
    let mut served = Vec::new();
    for _ in 0..connections {
        served.push(serve(&listener, server).await);
    }
    (client.await.unwrap(), served)
}

#[tokio::test]
async fn keys_of_every_kind_work_with_openssl_s_client() {
    for (name, key) in [
        ("sec1", &["ecparam", "-genkey", "-name", "prime256v1"][..]),
        (
            "p384",
            &[
                "genpkey",
                "-algorithm",
                "EC",
                "-pkeyopt",
                "ec_paramgen_curve:P-384",
            ],
        ),
        ("ed25519", &["genpkey", "-algorithm", "ED25519"]),
        ("rsa", &["genpkey", "-algorithm", "RSA"]),
        ("pkcs1", &["genrsa", "-traditional"]),
    ] {
        let scratch = Scratch::new(name);
        let own = made(&scratch, key);
        let names: Vec<String> = own.names().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["localhost", "*.example.com", "127.0.0.1", "::1"]);
        let server = terminator(&[own]);
        let trusted = scratch.path("cert.pem");
        for (version, shown) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
            let words = [
                "s_client",
                "-connect",
                "127.0.0.1:PORT",
                "-servername",
                "localhost",
            ];
            let more = [
                "-CAfile",
                &trusted,
                "-verify_return_error",
                version,
                "-alpn",
                "h2",
            ];
            let words = [&words[..], &more].concat();
            let (said, served) = talk(&server, "openssl", &words, 1).await;
            assert!(
                said.contains("Verify return code: 0 (ok)"),
                "{name}: {said}"
            );
            assert!(said.contains("ALPN protocol: h2"), "{name}: {said}");
            let facts = served.into_iter().next().unwrap().unwrap();
            assert_eq!((facts.version, facts.alpn), (shown, Some("h2")));
            assert_eq!(facts.sni.as_deref(), Some("localhost"));
        }
    }
}

#[tokio::test]
async fn the_cipher_has_the_name_that_openssl_gives_it() {
    let server = terminator(&[certificate(&["localhost"])]);
    for cipher in [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    ] {
        let words = [
            "s_client",
            "-connect",
            "127.0.0.1:PORT",
            "-ciphersuites",
            cipher,
        ];
        let (said, served) = talk(&server, "openssl", &words, 1).await;
        assert!(said.contains(&format!("Cipher is {cipher}")), "{said}");
        assert_eq!(served[0].as_ref().unwrap().cipher, cipher);
    }
    let words = [
        "s_client",
        "-connect",
        "127.0.0.1:PORT",
        "-tls1_2",
        "-cipher",
    ];
    let words = [&words[..], &["ECDHE-ECDSA-AES128-GCM-SHA256"]].concat();
    let (_, served) = talk(&server, "openssl", &words, 1).await;
    let name = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    assert_eq!(served[0].as_ref().unwrap().cipher, name);
}

#[tokio::test]
async fn names_ignore_case_and_a_trailing_dot() {
    let server = terminator(&[
        certificate(&["default.test"]),
        certificate(&["*.example.com"]),
    ]);
    for (name, expected) in [
        ("www.example.com", "*.example.com"),
        ("WWW.Example.com", "*.example.com"),
        ("www.example.com.", "*.example.com"),
        ("example.com", "default.test"),
        ("no_such", "default.test"),
    ] {
        let words = [
            "s_client",
            "-connect",
            "127.0.0.1:PORT",
            "-servername",
            name,
        ];
        let (said, served) = talk(&server, "openssl", &words, 1).await;
        let shown = CertificateDer::from_pem_slice(said.as_bytes()).unwrap();
        assert_eq!(names_of(&shown), [expected], "{name}");
        assert_eq!(served[0].as_ref().unwrap().sni.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn openssl_resumes_with_tickets_and_without() {
    let server = terminator(&[certificate(&["localhost"])]);
    for more in [&[][..], &["-no_ticket"]] {
        let words = [
            "s_client",
            "-connect",
            "127.0.0.1:PORT",
            "-tls1_2",
            "-reconnect",
        ];
        let (said, _) = talk(&server, "openssl", &[&words[..], more].concat(), 6).await;
        let reused = said.matches("Reused, TLSv1.2").count();
        assert_eq!(reused, 5, "{said}");
    }
}

#[tokio::test]
async fn an_old_version_is_refused() {
    let server = terminator(&[certificate(&["localhost"])]);
    let words = [
        "s_client",
        "-connect",
        "127.0.0.1:PORT",
        "-tls1_1",
        "-cipher",
    ];
    let words = [&words[..], &["ALL:@SECLEVEL=0"]].concat();
    let (said, served) = talk(&server, "openssl", &words, 1).await;
    assert!(said.contains("alert protocol version"), "{said}");
    let error = served[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), "handshake");
    let plain = "the client supports neither TLS 1.2 nor TLS 1.3";
    assert_eq!(error.to_string(), plain);
}

#[tokio::test]
async fn curl_verifies_the_certificate_and_reads_the_response() {
    let scratch = Scratch::new("curl");
    let server = terminator(&[made(
        &scratch,
        &["ecparam", "-genkey", "-name", "prime256v1"],
    )]);
    let trusted = scratch.path("cert.pem");
    for (host, prefix) in [("localhost", "t13d"), ("127.0.0.1", "t13i")] {
        let url = format!("https://{host}:PORT/");
        let words = [
            "-sS",
            "-4",
            "--http0.9",
            "--http1.1",
            "--cacert",
            &trusted,
            &url,
        ];
        let (said, served) = talk(&server, "curl", &words, 1).await;
        assert_eq!(said, "ok");
        let facts = served.into_iter().next().unwrap().unwrap();
        assert_eq!((facts.version, facts.alpn), ("TLSv1.3", Some("http/1.1")));
        assert!(facts.hello.ja4.starts_with(prefix), "{}", facts.hello.ja4);
    }
}
