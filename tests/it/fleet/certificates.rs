//! TLS to the store: a certificate authority of its own, client certificates, and wrong ones.

use super::fleet_gateway::{FleetConfig, rule, unlimited};
use super::server::{TestServer, free_port};
use crate::harness::{Authority, Folder};

const REFUSED: &str = "ERROR store refuses the connection";

/// A server that speaks only TLS, and the files of a client.
struct TlsServer {
    _server: TestServer,
    port: u16,
    folder: Folder,
}

impl TlsServer {
    /// Starts a server with a certificate for 127.0.0.1. It asks clients for certificates of the same authority.
    fn start() -> Self {
        let folder = Folder::new();
        let ours = Authority::new();
        folder.write("ca.pem", ours.pem());
        folder.write("other.pem", Authority::new().pem());
        for (name, host) in [("server", "127.0.0.1"), ("client", "gateway")] {
            let (certificate, key) = ours.issue(host);
            folder.write(&format!("{name}.pem"), certificate);
            folder.write(&format!("{name}.key"), key);
        }
        let path = |name: &str| folder.path().join(name).display().to_string();
        let port = free_port();
        let server = TestServer::start(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &path("server.pem"),
            "--tls-key-file",
            &path("server.key"),
            "--tls-ca-cert-file",
            &path("ca.pem"),
            "--tls-auth-clients",
            "yes",
        ]);
        Self {
            _server: server,
            port,
            folder,
        }
    }

    /// A gateway with these files.
    fn config(&self, files: &[(&str, &str)]) -> FleetConfig {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let files: Vec<_> = files
            .iter()
            .map(|(setting, name)| format!("{setting} = \"{}\"", path(name)))
            .collect();
        let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
        let url = format!("rediss://127.0.0.1:{}", self.port);
        let tls = format!("tls = {{ {} }}", files.join(", "));
        FleetConfig::new(&url, &rules).store(&tls)
    }
}

#[test]
fn a_store_with_its_own_authority_and_client_certificates_is_used() {
    let server = TlsServer::start();
    let files = [
        ("ca", "ca.pem"),
        ("cert", "client.pem"),
        ("key", "client.key"),
    ];
    let gateway = server.config(&files).strict().start();
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
    assert_eq!(gateway.all_errors(), 0.0);
    assert_eq!(gateway.state(), "ok");
}

#[test]
fn a_store_of_another_authority_is_not_used() {
    let server = TlsServer::start();
    let files = [
        ("ca", "other.pem"),
        ("cert", "client.pem"),
        ("key", "client.key"),
    ];
    let gateway = server.config(&files).start();
    gateway.all_are("/many", 8, 200);
    assert!(gateway.is_down());
    gateway.logs(REFUSED, 1);
    let lines = gateway.logged(REFUSED);
    assert!(lines[0].contains("certificate"), "{lines:?}");
}

#[test]
fn a_store_that_misses_a_client_certificate_is_not_used() {
    let server = TlsServer::start();
    let gateway = server.config(&[("ca", "ca.pem")]).start();
    gateway.all_are("/many", 8, 200);
    assert!(gateway.is_down());
    gateway.logs(REFUSED, 1);
}
