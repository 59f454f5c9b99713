//! Real handshakes over real sockets: with the library's own client here, with the `openssl` and
//! `curl` programs in [`programs`].

mod certificates;
mod hellos;
mod programs;
mod resumption;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::*;
use crate::facts::TlsFacts;

/// What a client saw of a handshake that worked.
#[derive(Debug)]
struct Seen {
    names: Vec<String>,
    kind: Option<HandshakeKind>,
    alpn: Option<Vec<u8>>,
}

type Served = Result<TlsFacts, HandshakeError>;

/// The server's settings for these certificates, with everything else on.
fn settings(certificates: &[Certificate]) -> TerminatorSettings {
    TerminatorSettings {
        listener: "127.0.0.1:443".into(),
        clients: None,
        certificates: certificates.to_vec(),
        min_version: MinVersion::Tls12,
        protocols: vec![AlpnProtocol::H2, AlpnProtocol::Http1],
    }
}

fn terminator(certificates: &[Certificate]) -> TlsTerminator {
    TlsTerminator::new(settings(certificates))
        .unwrap()
        .with_tickets(&TicketKeys::default())
}

fn certificate(names: &[&str]) -> Certificate {
    Certificate::self_signed(names).unwrap()
}

/// A client that trusts these certificates and speaks one version.
fn client(
    version: &'static rustls::SupportedProtocolVersion,
    trusted: &[Certificate],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.key.cert[0].clone()).unwrap();
    }
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

async fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Accepts one connection, says `ok` on it and waits for its end.
async fn serve(listener: &TcpListener, terminator: &TlsTerminator) -> Served {
    let (tcp, _) = listener.accept().await.unwrap();
    let (mut stream, facts) = accept(tcp, terminator).await?;
    stream.write_all(b"ok").await?;
    stream.shutdown().await?;
    let _ = stream.read_to_end(&mut Vec::new()).await;
    Ok(facts)
}

async fn connect(config: &Arc<ClientConfig>, tcp: TcpStream, name: &str) -> std::io::Result<Seen> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(config.clone());
    let mut stream = connector.connect(name, tcp).await?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await?;
    assert_eq!(said, b"ok");
    let connection = stream.get_ref().1;
    Ok(Seen {
        names: names_of(&connection.peer_certificates().unwrap()[0]),
        kind: connection.handshake_kind(),
        alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
    })
}

/// One connection between the two.
async fn meet(
    terminator: &TlsTerminator,
    config: &Arc<ClientConfig>,
    name: &str,
) -> (std::io::Result<Seen>, Served) {
    let (listener, address) = listener().await;
    let client = async {
        let tcp = TcpStream::connect(address).await?;
        connect(config, tcp, name).await
    };
    tokio::join!(client, serve(&listener, terminator))
}

fn names_of(der: &CertificateDer<'_>) -> Vec<String> {
    let names = x509::names_of(der);
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn both_tls_versions_provide_the_handshake_facts() {
    let own = [certificate(&["localhost", "127.0.0.1", "::1"])];
    let server = terminator(&own);
    for (version, name, prefix) in [(&TLS12, "TLSv1.2", "t12d"), (&TLS13, "TLSv1.3", "t13d")] {
        let config = Arc::new(client(version, &own));
        let (seen, facts) = meet(&server, &config, "localhost").await;
        let (seen, facts) = (seen.unwrap(), facts.unwrap());
        assert_eq!(seen.names, ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(seen.kind, Some(HandshakeKind::Full));
        assert_eq!(facts.version, name);
        assert!(facts.cipher.starts_with("TLS_"), "{}", facts.cipher);
        assert_eq!(facts.sni.as_deref(), Some("localhost"));
        assert_eq!(facts.alpn, None);
        assert!(facts.hello.ja4.starts_with(prefix), "{}", facts.hello.ja4);
        assert_eq!(facts.hello.ja3.len(), 32);
        assert!(facts.hello.ja3_raw.starts_with("771,"));
        assert!(facts.hello.length > 100);
    }
}

#[tokio::test]
async fn an_address_is_not_a_server_name() {
    let own = [certificate(&["localhost", "127.0.0.1"])];
    let config = Arc::new(client(&TLS13, &own));
    let (seen, facts) = meet(&terminator(&own), &config, "127.0.0.1").await;
    seen.unwrap();
    let facts = facts.unwrap();
    assert_eq!(facts.sni, None);
    assert!(facts.hello.ja4.starts_with("t13i"));
}

#[tokio::test]
async fn the_servers_protocol_order_wins() {
    let own = [certificate(&["localhost"])];
    let server = terminator(&own);
    for (offered, agreed) in [
        (&["http/1.1", "h2"][..], "h2"),
        (&["h2"], "h2"),
        (&["http/1.1"], "http/1.1"),
        (&["spdy/3", "http/1.1"], "http/1.1"),
        // curl --http1.0
        (&["http/1.0"], "http/1.0"),
        (&["http/1.0", "http/1.1"], "http/1.1"),
    ] {
        let mut config = client(&TLS13, &own);
        config.alpn_protocols = offered.iter().map(|&p| p.into()).collect();
        let (seen, facts) = meet(&server, &Arc::new(config), "localhost").await;
        assert_eq!(seen.unwrap().alpn.unwrap(), agreed.as_bytes());
        assert_eq!(facts.unwrap().alpn, Some(agreed));
    }
    let mut config = client(&TLS13, &own);
    config.alpn_protocols = vec![b"spdy/3".to_vec()];
    let (seen, facts) = meet(&server, &Arc::new(config), "localhost").await;
    assert!(seen.is_err());
    assert_eq!(facts.unwrap_err().kind(), "handshake");
}

#[tokio::test]
async fn the_minimum_version_is_enforced() {
    let own = [certificate(&["localhost"])];
    let strict = TerminatorSettings {
        min_version: MinVersion::Tls13,
        ..settings(&own)
    };
    let server = TlsTerminator::new(strict)
        .unwrap()
        .with_tickets(&TicketKeys::default());
    let (seen, facts) = meet(&server, &Arc::new(client(&TLS13, &own)), "localhost").await;
    seen.unwrap();
    assert_eq!(facts.unwrap().version, "TLSv1.3");
    let (seen, facts) = meet(&server, &Arc::new(client(&TLS12, &own)), "localhost").await;
    assert!(seen.is_err());
    assert_eq!(facts.unwrap_err().kind(), "handshake");
}

#[tokio::test]
async fn a_client_that_rejects_the_certificate_sends_an_alert() {
    let own = [certificate(&["localhost"])];
    let stranger = [certificate(&["localhost"])];
    for version in [&TLS12, &TLS13] {
        let config = Arc::new(client(version, &stranger));
        let (seen, facts) = meet(&terminator(&own), &config, "localhost").await;
        assert!(seen.is_err());
        assert_eq!(facts.unwrap_err().kind(), "alert");
    }
}

#[tokio::test]
async fn certificates_are_chosen_by_name() {
    let all = [
        certificate(&["default.test"]),
        certificate(&["example.com", "*.example.com"]),
        certificate(&["api.example.com", "*.other.org"]),
    ];
    let server = terminator(&all);
    for (name, first) in [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("WWW.Example.COM", "example.com"),
        ("api.example.com", "api.example.com"),
        ("default.test", "default.test"),
        ("www.other.org", "api.example.com"),
    ] {
        let config = Arc::new(client(&TLS13, &all));
        let (seen, facts) = meet(&server, &config, name).await;
        assert_eq!(seen.unwrap().names[0], first, "{name}");
        facts.unwrap();
    }
    // Unknown names get the default certificate, and a client that checks names disconnects.
    for name in ["a.b.example.com", "other.org", "test"] {
        let config = Arc::new(client(&TLS13, &all));
        let (seen, facts) = meet(&server, &config, name).await;
        let error = seen.unwrap_err().to_string();
        assert!(error.contains("default.test"), "{error}");
        assert_eq!(facts.unwrap_err().kind(), "alert");
    }
}

/// A chain and the key that belongs to it, as PEM texts.
fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Certificate, TlsConfigError> {
    Certificate::of(
        CertificateChain::from_pem(certificate)?,
        PrivateKey::from_pem(key)?,
    )
}
