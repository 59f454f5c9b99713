//! Certificates of clients, with curl and openssl as the clients: who is let in, and what a reload
//! changes.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rcgen::{
    CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};

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
        params.serial_number = Some(serial_of(name));
        let made = params.signed_by(&key, &self.issuer).unwrap();
        folder.write(&format!("{name}.pem"), made.pem());
        folder.write(&format!("{name}.key"), key.serialize_pem());
    }
}

impl Authority {
    /// A revocation list with the certificate of this name, valid until the end of that year.
    fn revoke(&self, name: &str, until: i32) -> String {
        let revoked = RevokedCertParams {
            serial_number: serial_of(name),
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 12, 31),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn serial_of(name: &str) -> SerialNumber {
    SerialNumber::from_slice(name.as_bytes())
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
        self.curl_path(name, version, "")
    }

    fn curl_path(&self, name: Option<&str>, version: &str, path: &str) -> String {
        let url = format!("https://{}/{path}", self.gateway.address(0));
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
        self.openssl_path(name, arguments, "/")
    }

    fn openssl_path(&self, name: Option<&str>, arguments: &[&str], path: &str) -> String {
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
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let _ = stdin.write_all(request.as_bytes());
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

/// A rule that stops clients with the certificate `right`, and one that limits each name.
const FIELDS: &str = r#"
[[rules]]
name = "right"
mitigate = '''
    tls.client.verified and http.request.uri.path eq "/who"
    and tls.client.subject eq "CN=rcgen self signed cert"
    and any(tls.client.san[*] eq "DNS:right.test")
    and tls.client.san[0] eq "DNS:right.test"
    and tls.client.serial eq "7269676874"
    and tls.client.fingerprint matches "^[0-9a-f]{64}$"
'''
action = "block"
response = "right"
[[rules]]
name = "no-certificate"
mitigate = 'http.request.uri.path eq "/who" and not tls.client.verified'
action = "block"
response = "nobody"
[[rules]]
name = "each"
mitigate = 'http.request.uri.path eq "/limited"'
key = ["tls.client.san[0]"]
limit = 1
period = "1h"
response = "limited"
[responses.right]
status = 403
body = "right"
[responses.nobody]
status = 401
body = "nobody"
[responses.limited]
status = 429
body = "limited"
"#;

#[test]
fn rules_read_the_certificate() {
    let site = Site::new("optional");
    site.ours.certify(&site.folder, "second", 2090);
    let ca = site.file("ca.pem");
    let lines = config(&format!("client_ca = {ca:?}\nclient_auth = \"optional\""));
    site.gateway
        .reload_whole(&format!("{lines}{FIELDS}"))
        .unwrap();
    for version in ["1.2", "1.3"] {
        for (name, path, body) in [
            (Some("right"), "who", "right"),
            (Some("second"), "who", "hello"),
            (None, "who", "nobody"),
        ] {
            assert_eq!(
                site.curl_path(name, version, path),
                body,
                "{name:?} {version}"
            );
        }
    }
    for name in ["right", "second"] {
        for body in ["hello", "limited"] {
            assert_eq!(site.curl_path(Some(name), "1.3", "limited"), body, "{name}");
        }
    }
    // The certificate belongs to the session, so that a resumed session has it too.
    let session = site.file("session");
    let session = session.to_str().unwrap();
    site.openssl(Some("right"), &["-sess_out", session]);
    let said = site.openssl_path(None, &["-sess_in", session], "/who");
    assert!(
        said.contains("Reused, TLSv1") && said.contains("right"),
        "{said}"
    );
}

#[test]
fn a_revoked_certificate_is_refused_after_a_reload() {
    let site = Site::new("required");
    site.ours.certify(&site.folder, "second", 2090);
    let (ca, crl) = (site.file("ca.pem"), site.file("crl.pem"));
    let lines = config(&format!(
        "client_ca = {ca:?}\nclient_auth = \"required\"\nclient_crl = {crl:?}"
    ));
    site.folder
        .write("crl.pem", site.ours.revoke("nobody", 2090));
    site.gateway.reload_whole(&lines).unwrap();
    let session = site.file("session");
    let session = session.to_str().unwrap();
    let said = site.openssl(Some("right"), &["-sess_out", session]);
    assert!(said.contains("hello"), "{said}");
    site.folder
        .write("crl.pem", site.ours.revoke("right", 2090));
    site.gateway.reload_whole(&lines).unwrap();
    for version in ["1.2", "1.3"] {
        assert_eq!(site.curl(Some("right"), version), "");
        assert_eq!(site.curl(Some("second"), version), "hello");
    }
    let said = site.openssl(None, &["-sess_in", session]);
    assert!(
        !said.contains("Reused") && !said.contains("hello"),
        "{said}"
    );
    // An authority without a list: whether its certificates are revoked is not known.
    site.folder
        .write("ca.pem", format!("{}{}", site.ours.pem, site.other.pem));
    site.gateway.reload_whole(&lines).unwrap();
    assert_eq!(site.curl(Some("wrong"), "1.3"), "");
    assert_eq!(site.curl(Some("second"), "1.3"), "hello");
    let both = site.ours.revoke("right", 2090) + &site.other.revoke("nobody", 2090);
    site.folder.write("crl.pem", both);
    site.gateway.reload_whole(&lines).unwrap();
    assert_eq!(site.curl(Some("wrong"), "1.3"), "hello");
    assert_eq!(site.curl(Some("right"), "1.3"), "");
    // What cannot be used changes nothing.
    for (pem, message) in [
        ("", "there is no `X509 CRL` section"),
        (
            "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
            "the revocation list cannot be read",
        ),
        (
            &site.ours.revoke("nobody", 2021),
            "a revocation list has expired: the next one was due at 2021-12-31T00:00:00.000Z",
        ),
    ] {
        site.folder.write("crl.pem", pem);
        let refused = site.gateway.reload_whole(&lines).unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
        assert_eq!(site.curl(Some("second"), "1.3"), "hello");
    }
}
