//! A client whose requests are what the test wrote, byte by byte.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::Wire;

/// No answer takes longer.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A client with headers of its own. Each request has a connection of its own.
#[derive(Clone)]
pub struct Client {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) request: (String, String),
    pub(super) prelude: Vec<u8>,
    own: Option<SocketAddr>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Fields in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answers to a request that was repeated.
pub struct Answers(pub Vec<Answer>);

impl Client {
    /// Speaks plain HTTP/1.1.
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            headers: Vec::new(),
            body: Vec::new(),
            request: ("GET".into(), "/".into()),
            prelude: Vec::new(),
            own: None,
        }
    }

    /// Speaks to an admin port on this machine.
    pub fn admin(address: SocketAddr) -> Self {
        Self::plain(address).header("host", &address.to_string())
    }

    /// Speaks HTTP/1.1 over TLS with the usual cipher suites.
    pub fn tls(address: SocketAddr) -> Self {
        Self::plain(address).suites(usize::MAX)
    }

    /// Offers only the first `count` cipher suites: another JA3 and JA4.
    pub fn suites(mut self, count: usize) -> Self {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.cipher_suites.truncate(count);
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed hello has an extension more, and so another JA4.
        config.resumption = rustls::client::Resumption::disabled();
        self.tls = Some(Arc::new(config));
        self
    }

    /// Offers this protocol instead of HTTP/1.1, where it speaks TLS.
    pub fn alpn(mut self, protocol: &str) -> Self {
        if let Some(config) = &mut self.tls {
            Arc::make_mut(config).alpn_protocols = vec![protocol.into()];
        }
        self
    }

    /// As if a trusted proxy had this client behind it.
    pub fn from(self, address: &str) -> Self {
        self.header("x-forwarded-for", address)
    }

    /// Sends a field with every request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Asks the origin for this status.
    pub fn wants(self, status: u16) -> Self {
        self.header("x-answer", &status.to_string())
    }

    /// Connects from this address.
    pub fn bound_to(mut self, own: &str) -> Self {
        self.own = Some(own.parse().unwrap());
        self
    }

    /// Begins each connection with these bytes, before TLS.
    pub fn after(mut self, prelude: &[u8]) -> Self {
        self.prelude = prelude.to_vec();
        self
    }

    /// Sends a body.
    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// GET.
    pub fn get(self, target: &str) -> Self {
        self.method("GET", target)
    }

    /// POST.
    pub fn post(self, target: &str) -> Self {
        self.method("POST", target)
    }

    /// Sends JSON.
    pub fn json(self, body: &str) -> Self {
        self.header("content-type", "application/json")
            .body(body.as_bytes())
    }

    /// Any method.
    pub fn method(mut self, method: &str, target: &str) -> Self {
        self.request = (method.into(), target.into());
        self
    }

    /// Sends the request so many times.
    pub fn times(&self, count: usize) -> Answers {
        Answers((0..count).map(|_| self.send()).collect())
    }

    /// Sends the request with a body as it is written on the wire.
    pub fn raw_body(&self, body: &[u8]) -> Answer {
        let mut bytes = self.head().into_bytes();
        bytes.extend_from_slice(body);
        Answer::parse(&self.raw(&bytes))
    }

    /// Sends the request.
    pub fn send(&self) -> Answer {
        self.raw_body(&self.body)
    }

    fn head(&self) -> String {
        let (method, target) = &self.request;
        let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head.push_str("host: example.com\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head + "\r\n"
    }

    /// Sends bytes as they are and gives all that comes back until the gateway closes.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut wire = self.connect();
        // The gateway may answer and close before it has read everything.
        let _ = wire.try_send(bytes);
        wire.rest()
    }

    fn tcp(&self) -> TcpStream {
        let Some(own) = self.own else {
            return TcpStream::connect(self.address).unwrap();
        };
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        socket.bind(&own.into()).unwrap();
        socket.connect(&self.address.into()).unwrap();
        socket.into()
    }

    /// A connection that stays open.
    pub fn connect(&self) -> Wire {
        let mut tcp = self.tcp();
        tcp.set_nodelay(true).unwrap();
        tcp.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        // A gateway may refuse the client at once.
        let _ = tcp.write_all(&self.prelude);
        match &self.tls {
            None => Wire::new(tcp),
            Some(config) => {
                let name = ServerName::try_from("localhost").unwrap();
                let tls = ClientConnection::new(config.clone(), name).unwrap();
                Wire::new(StreamOwned::new(tls, tcp))
            }
        }
    }
}

impl Answer {
    /// Reads the first answer in `bytes`; status 0: there is none.
    pub fn parse(bytes: &[u8]) -> Self {
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            return Self::default();
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let chunked = headers
            .iter()
            .any(|(n, v)| n == "transfer-encoding" && v == "chunked");
        Self {
            status: status.unwrap_or(0),
            headers,
            body: if chunked {
                unchunk(rest)
            } else {
                rest.to_vec()
            },
        }
    }

    /// The first value of a field.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        fields.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the origin made it.
    pub fn is_from_origin(&self) -> bool {
        self.header("server") == Some("origin")
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).unwrap();
        let chunk = &rest[end + 2..];
        body.extend_from_slice(&chunk[..size]);
        if size == 0 {
            break;
        }
        rest = &chunk[size + 2..];
    }
    body
}

impl Answers {
    /// The statuses, in order.
    pub fn statuses(&self) -> Vec<u16> {
        self.0.iter().map(|answer| answer.status).collect()
    }

    /// All but the last have the first status, the last has the second.
    #[track_caller]
    pub fn then(&self, before: u16, last: u16) -> &Answer {
        let statuses = self.statuses();
        let (end, start) = statuses.split_last().unwrap();
        assert!(start.iter().all(|s| *s == before), "{statuses:?}");
        assert_eq!(*end, last, "{statuses:?}");
        self.last()
    }

    /// The answers have these statuses.
    #[track_caller]
    pub fn then_all(&self, statuses: &[u16]) {
        assert_eq!(self.statuses(), statuses);
    }

    /// Every answer has this status.
    #[track_caller]
    pub fn all_are(&self, status: u16) -> &Answer {
        assert!(
            self.0.iter().all(|a| a.status == status),
            "{:?}",
            self.statuses()
        );
        self.last()
    }

    /// The last answer has this status.
    #[track_caller]
    pub fn last_is(&self, status: u16) -> &Answer {
        assert_eq!(self.last().status, status, "{:?}", self.statuses());
        self.last()
    }

    fn last(&self) -> &Answer {
        self.0.last().unwrap()
    }
}

/// Trusts every certificate: the development one is made anew each time.
#[derive(Debug)]
struct AnyCertificate(rustls::crypto::CryptoProvider);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
