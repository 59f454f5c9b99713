//! Certificates of clients, with curl and openssl as the clients: who is let in, and what a reload
//! changes.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, date_time_ymd};

use crate::harness::{Folder, Running};

/// Who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Writes a client's certificate and key; it is valid until the end of that year.
    fn certify(&self, folder: &Folder, name: &str, until: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![format!("{name}.test")]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let made = params.signed_by(&key, &self.issuer).unwrap();
        folder.write(&format!("{name}.pem"), made.pem());
        folder.write(&format!("{name}.key"), key.serialize_pem());
    }
}

/// A gateway that asks clients for certificates, and clients with all kinds of them.
struct Site {
    gateway: Running,
    folder: Folder,
    ours: Authority,
    other: Authority,
}

fn config(lines: &str) -> String {
    format!(
        "[server]\nworkers = 2\ndrain_timeout = \"5s\"\n[log]\naccess = \"off\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n{lines}\n\
         [[routes]]\nrespond = {{ body = \"hello\" }}\n"
    )
}

impl Site {
    fn new(auth: &str) -> Self {
        let folder = Folder::new();
        let (ours, other) = (Authority::new("ours"), Authority::new("other"));
        // Others beside it, as in a bundle.
        let bundle = format!("{}\n{}", Authority::new("third").pem, ours.pem);
        let ca = folder.write("ca.pem", bundle);
        ours.certify(&folder, "right", 2090);
        ours.certify(&folder, "expired", 2021);
        other.certify(&folder, "wrong", 2090);
        let gateway = Running::on(&config(&format!(
            "client_ca = {ca:?}\nclient_auth = \"{auth}\""
        )));
        Self {
            gateway,
            folder,
            ours,
            other,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The options of a client with this certificate.
    fn certificate(&self, option: [&str; 2], name: Option<&str>) -> Vec<String> {
        let name = name.into_iter().flat_map(|name| {
            let files = ["pem", "key"].map(|end| self.file(&format!("{name}.{end}")));
            option
                .iter()
                .zip(files)
                .map(|(o, f)| [(*o).to_owned(), f.display().to_string()])
        });
        name.flatten().collect()
    }

    /// What curl gets with this certificate.
    fn curl(&self, name: Option<&str>, version: &str) -> String {
        let url = format!("https://{}/", self.gateway.address(0));
        let output = Command::new("curl")
            .args(["-sk", "--max-time", "20", "--tlsv1.2", "--tls-max", version])
            .args(self.certificate(["--cert", "--key"], name))
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What `openssl s_client` says with this certificate.
    fn openssl(&self, name: Option<&str>, arguments: &[&str]) -> String {
        let address = self.gateway.address(0).to_string();
        let mut openssl = Command::new("openssl")
            .args(["s_client", "-ign_eof", "-connect", &address])
            .args(self.certificate(["-cert", "-key"], name))
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

    fn authorities(&self, pem: &str) {
        self.folder.write("ca.pem", pem);
        self.gateway
            .gateway()
            .reloader()
            .reload(lockgate::gateway::ReloadTrigger::Signal)
            .unwrap();
    }
}

#[test]
fn only_a_trusted_certificate_is_accepted() {
    let site = Site::new("required");
    for version in ["1.2", "1.3"] {
        assert_eq!(site.curl(Some("right"), version), "hello");
        for name in [None, Some("wrong"), Some("expired")] {
            assert_eq!(site.curl(name, version), "", "{name:?} {version}");
        }
    }
    for version in ["-tls1_2", "-tls1_3"] {
        let said = site.openssl(Some("right"), &[version]);
        assert!(said.contains("hello"), "{said}");
        // It sends no certificate whose issuer is not named; the gateway names those it takes.
        assert!(
            said.contains("CN = ours") && said.contains("CN = third"),
            "{said}"
        );
        for name in [None, Some("wrong"), Some("expired")] {
            let said = site.openssl(name, &[version]);
            assert!(!said.contains("hello"), "{name:?} {version}: {said}");
        }
    }
    let metrics = site.gateway.metrics();
    assert!(
        metrics.contains("tls_handshakes_total{result=\"full\"} 4"),
        "{metrics}"
    );
}

#[test]
fn an_optional_certificate_must_be_absent_or_trusted() {
    let site = Site::new("optional");
    for version in ["1.2", "1.3"] {
        assert_eq!(site.curl(None, version), "hello");
        assert_eq!(site.curl(Some("right"), version), "hello");
        assert_eq!(site.curl(Some("wrong"), version), "");
        assert_eq!(site.curl(Some("expired"), version), "");
    }
}

#[test]
fn a_reload_changes_the_accepted_certificates() {
    let site = Site::new("required");
    assert_eq!(site.curl(Some("right"), "1.3"), "hello");
    site.authorities(&site.other.pem);
    assert_eq!(site.curl(Some("right"), "1.3"), "");
    assert_eq!(site.curl(Some("wrong"), "1.3"), "hello");
    // What cannot be used changes nothing.
    for (pem, message) in [
        ("", "there is no `CERTIFICATE` section"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "the certificate is damaged",
        ),
    ] {
        site.folder.write("ca.pem", pem);
        let refused = site
            .gateway
            .gateway()
            .reloader()
            .reload(lockgate::gateway::ReloadTrigger::Signal)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(message), "{refused}");
    }
    assert_eq!(site.curl(Some("wrong"), "1.3"), "hello");
}

#[test]
fn a_session_is_not_resumed_after_its_authority_is_removed() {
    let site = Site::new("required");
    for version in ["-tls1_2", "-tls1_3"] {
        let session = site.file(version);
        let session = session.to_str().unwrap();
        let said = site.openssl(Some("right"), &[version, "-sess_out", session]);
        assert!(
            said.contains("New, TLSv1") && said.contains("hello"),
            "{said}"
        );
        // A reload that changes nothing keeps it, and it needs no certificate again.
        site.gateway
            .gateway()
            .reloader()
            .reload(lockgate::gateway::ReloadTrigger::Signal)
            .unwrap();
        let said = site.openssl(None, &[version, "-sess_in", session]);
        assert!(
            said.contains("Reused, TLSv1") && said.contains("hello"),
            "{said}"
        );
        site.authorities(&site.other.pem);
        let said = site.openssl(Some("right"), &[version, "-sess_in", session]);
        assert!(
            !said.contains("Reused") && !said.contains("hello"),
            "{said}"
        );
        site.authorities(&format!("{}{}", site.ours.pem, Authority::new("new").pem));
        let said = site.openssl(None, &[version, "-sess_in", session]);
        assert!(
            !said.contains("Reused") && !said.contains("hello"),
            "{said}"
        );
    }
}

#[test]
fn a_session_without_a_certificate_is_refused_where_one_is_required() {
    let site = Site::new("optional");
    let session = site.file("session");
    let session = session.to_str().unwrap();
    let said = site.openssl(None, &["-sess_out", session]);
    assert!(said.contains("hello"), "{said}");
    let ca = site.file("ca.pem");
    let required = config(&format!("client_ca = {ca:?}\nclient_auth = \"required\""));
    site.gateway.reload_whole(&required).unwrap();
    let said = site.openssl(None, &["-sess_in", session]);
    assert!(
        !said.contains("Reused") && !said.contains("hello"),
        "{said}"
    );
}
