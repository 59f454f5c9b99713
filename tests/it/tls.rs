//! Certificates from files, chosen by name, replaced by a reload; with openssl and curl as clients.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{Client, Folder, Running};

/// A gateway with certificates for these names, each in files of its own.
struct Site {
    gateway: Running,
    folder: Folder,
}

impl Site {
    fn new(names: &[&str], tls: &str) -> Self {
        let folder = Folder::new();
        let mut certificates = Vec::new();
        for name in names {
            certify(&folder, name);
            let [cert, key] = files(&folder, name);
            certificates.push(format!("{{ cert = {cert:?}, key = {key:?} }}"));
        }
        let certificates = certificates.join(", ");
        let gateway = Running::on(&format!(
            r#"
            [server]
            workers = 2
            drain_timeout = "5s"
            [log]
            access = "off"
            [[listeners]]
            address = "127.0.0.1:0"
            [listeners.tls]
            certificates = [{certificates}]
            {tls}
            [[routes]]
            respond = {{ body = "hello" }}
            "#
        ));
        Self { gateway, folder }
    }

    /// What `openssl s_client` says after a request.
    fn openssl(&self, arguments: &[&str]) -> String {
        let address = self.gateway.address(0).to_string();
        let mut openssl = Command::new("openssl")
            .args(["s_client", "-ign_eof", "-connect", &address])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = openssl.stdin.take().unwrap();
        // It ends without reading where the handshake fails.
        let _ = stdin.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let output = openssl.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether the certificate of `name` is served to who asks for `server_name`.
    fn serves(&self, name: &str, server_name: &[&str]) -> bool {
        let [cert, _] = files(&self.folder, name);
        let cert = std::fs::read_to_string(cert).unwrap();
        let said = self.openssl(server_name);
        lines(&said).contains(&lines(&cert))
    }
}

fn lines(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Makes or replaces the certificate of `name`.
fn certify(folder: &Folder, name: &str) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let [cert, key] = files(folder, name);
    std::fs::write(cert, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
}

/// The same, valid until the first day of a year.
fn certify_until(folder: &Folder, name: &str, year: i32) {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let own = rcgen::KeyPair::generate().unwrap();
    let [cert, key] = files(folder, name);
    std::fs::write(cert, params.self_signed(&own).unwrap().pem()).unwrap();
    std::fs::write(key, own.serialize_pem()).unwrap();
}

fn files(folder: &Folder, name: &str) -> [PathBuf; 2] {
    let name = name.replace('*', "any");
    ["pem", "key"].map(|end| folder.path().join(format!("{name}.{end}")))
}

#[test]
fn the_server_name_selects_the_certificate() {
    let site = Site::new(&["a.example", "b.example", "*.c.example"], "");
    for (asked, served) in [
        ("a.example", "a.example"),
        ("b.example", "b.example"),
        ("B.EXAMPLE", "b.example"),
        ("x.c.example", "*.c.example"),
        ("c.example", "a.example"),
        ("other.example", "a.example"),
    ] {
        assert!(site.serves(served, &["-servername", asked]), "{asked}");
    }
    assert!(site.serves("a.example", &["-noservername"]));
}

#[test]
fn metrics_show_when_certificates_expire() {
    let site = Site::new(&["a.example", "b.example"], "");
    let label = "lockgate_certificate_not_after_timestamp_seconds{listener=\"127.0.0.1:0\"";
    let ends = |name: &str, at: u64| {
        let series = format!("{label},certificate=\"{name}\"}} {at}\n");
        site.gateway.metrics().contains(&series)
    };
    assert!(site.gateway.metrics().contains(label));
    certify_until(&site.folder, "a.example", 2121);
    certify_until(&site.folder, "b.example", 2122);
    site.gateway
        .gateway()
        .reloader()
        .reload(lockgate::gateway::ReloadTrigger::Signal)
        .unwrap();
    assert!(ends("a.example", 4_765_132_800));
    assert!(ends("b.example", 4_796_668_800));
}

#[test]
fn curl_trusts_the_certificate_of_the_name_it_asked_for() {
    let site = Site::new(&["a.example", "b.example"], "");
    let address = site.gateway.address(0);
    let [cert, _] = files(&site.folder, "b.example");
    let ask = |name: &str, flag: &str| {
        let at = format!("{name}:{}:127.0.0.1", address.port());
        let url = format!("https://{name}:{}/", address.port());
        let curl = Command::new("curl")
            .args([
                "--silent",
                "--max-time",
                "20",
                flag,
                "--resolve",
                &at,
                "--cacert",
            ])
            .arg(Path::new(&cert))
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8_lossy(&curl.stdout).into_owned()
    };
    assert_eq!(ask("b.example", "--http1.1"), "hello");
    assert_eq!(ask("b.example", "--http2"), "hello");
    // The certificate of another name is not signed by this one.
    assert_eq!(ask("a.example", "--http2"), "");
}

#[test]
fn only_tls_1_2_and_1_3_are_accepted() {
    let site = Site::new(&["a.example"], "");
    for (flag, protocol) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let said = site.openssl(&[flag]);
        assert!(said.contains(&format!("New, {protocol}")), "{said}");
        assert!(said.contains("hello"), "{said}");
    }
    assert!(!site.openssl(&["-tls1_1"]).contains("hello"));
    let site = Site::new(&["a.example"], "min_version = \"1.3\"");
    assert!(site.openssl(&["-tls1_3"]).contains("hello"));
    assert!(!site.openssl(&["-tls1_2"]).contains("hello"));
}

#[test]
fn replaced_certificates_apply_to_new_connections() {
    let site = Site::new(&["a.example", "b.example"], "");
    let mut old = Client::tls(site.gateway.address(0)).connect();
    assert_eq!(old.get("/").text(), "hello");
    let [cert, _] = files(&site.folder, "b.example");
    let before = std::fs::read_to_string(&cert).unwrap();
    certify(&site.folder, "b.example");
    site.gateway
        .gateway()
        .reloader()
        .reload(lockgate::gateway::ReloadTrigger::Signal)
        .unwrap();
    assert!(site.serves("b.example", &["-servername", "b.example"]));
    assert_ne!(before, std::fs::read_to_string(&cert).unwrap());
    assert_eq!(old.get("/").text(), "hello");
    // A certificate without its key changes nothing.
    let good = std::fs::read(&cert).unwrap();
    let [other, _] = files(&site.folder, "a.example");
    std::fs::copy(other, &cert).unwrap();
    let refused = site
        .gateway
        .gateway()
        .reloader()
        .reload(lockgate::gateway::ReloadTrigger::Signal)
        .unwrap_err();
    assert!(refused.text.contains(": error: "), "{refused}");
    std::fs::write(&cert, good).unwrap();
    assert!(site.serves("b.example", &["-servername", "b.example"]));
    assert_eq!(old.get("/").text(), "hello");
}

#[test]
fn sessions_are_resumed_across_a_reload() {
    let site = Site::new(&["a.example"], "");
    for flag in ["-tls1_2", "-tls1_3"] {
        let session = site.folder.path().join(flag);
        let session = session.to_str().unwrap();
        let said = site.openssl(&[flag, "-sess_out", session]);
        assert!(said.contains("New, TLSv1"), "{said}");
        site.gateway
            .gateway()
            .reloader()
            .reload(lockgate::gateway::ReloadTrigger::Signal)
            .unwrap();
        let said = site.openssl(&[flag, "-sess_in", session]);
        assert!(said.contains("Reused, TLSv1"), "{said}");
        assert!(said.contains("hello"), "{said}");
    }
    let metrics = site.gateway.metrics();
    let resumed = r#"lockgate_tls_handshakes_total{result="resumed"} 2"#;
    assert!(metrics.contains(resumed), "{metrics}");
}
