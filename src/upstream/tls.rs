//! TLS to origin servers: trusted roots, ALPN, the handshake, and the verification of the server
//! certificate. Reads only the system's root certificates from disk, and has no timeout.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature,
    verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::UpstreamProtocol;
use super::connection::OriginStream;
use crate::trust::TlsPeer;

/// The root certificates that are trusted to sign an origin server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedRoots {
    certificates: Vec<CertificateDer<'static>>,
    /// Whether the configuration lists the certificates. One may then be the origin server's own.
    given: bool,
}

/// The TLS settings in use. A reload with equal settings keeps sessions and connections.
#[derive(Debug, Default)]
pub struct KnownTls(Mutex<Vec<Weak<UpstreamTls>>>);

/// The TLS client settings for the servers of one upstream.
#[derive(Debug)]
pub struct UpstreamTls {
    /// The ALPN protocols for the upstream's configured protocol.
    usual: Arc<ClientConfig>,
    /// Only HTTP/1.1, for requests that HTTP/2 cannot carry.
    http1: Arc<ClientConfig>,
    /// The trusted roots. `None` to accept any certificate.
    roots: Option<TrustedRoots>,
    /// The expected name in the certificate. `None` to use the configured name of each server.
    name: Option<ServerName<'static>>,
    protocol: UpstreamProtocol,
    /// An id that is unique in the process.
    pub(super) id: u64,
}

/// Verifies the certificates of origin servers.
#[derive(Debug)]
struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None` to accept any certificate, but still check the handshake signature.
    trusted: Option<Trusted>,
}

/// Accepts these certificates, and certificates that the library verifies with a root.
#[derive(Debug)]
struct Trusted {
    given: Vec<CertificateDer<'static>>,
    roots: Arc<WebPkiServerVerifier>,
}

/// Why TLS to an origin cannot be set up.
#[derive(Debug)]
pub enum TlsError {
    /// The name is neither a host name nor an IP address.
    Name(String),
    /// The roots are not PEM, or not certificates.
    Roots(String),
    /// No root certificate was found.
    NoRoots,
    /// The error of the TLS library.
    Tls(rustls::Error),
}

// === impl TrustedRoots ===

impl TrustedRoots {
    /// Loads the system's root certificates. Skips those that cannot be read, because the others may be
    /// sufficient.
    pub fn of_system() -> Result<Self, TlsError> {
        Self::some(rustls_native_certs::load_native_certs().certs, false)
    }

    /// Reads the certificates of a PEM text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        Self::some(
            read.map_err(|error| TlsError::Roots(error.to_string()))?,
            true,
        )
    }

    fn some(certificates: Vec<CertificateDer<'static>>, given: bool) -> Result<Self, TlsError> {
        if certificates.is_empty() {
            Err(TlsError::NoRoots)
        } else {
            Ok(Self {
                certificates,
                given,
            })
        }
    }

    fn trusted(&self, provider: &Arc<CryptoProvider>) -> Result<Trusted, TlsError> {
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(self.certificates.iter().cloned());
        if added == 0 {
            return Err(TlsError::Roots("none of them is a certificate".into()));
        }
        let provider = Arc::clone(provider);
        let roots = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .map_err(|error| TlsError::Roots(error.to_string()))?;
        let given = if self.given {
            self.certificates.clone()
        } else {
            Vec::new()
        };
        Ok(Trusted { given, roots })
    }
}

// === impl KnownTls ===

impl KnownTls {
    /// Returns the existing settings if they equal `new`. Otherwise stores and returns `new`.
    pub fn adopt(&self, new: UpstreamTls) -> Arc<UpstreamTls> {
        let mut known = self.0.lock();
        known.retain(|secure| secure.strong_count() > 0);
        let mut in_use = known.iter().filter_map(Weak::upgrade);
        if let Some(secure) = in_use.find(|secure| secure.has_settings_of(&new)) {
            return secure;
        }
        let secure = Arc::new(new);
        known.push(Arc::downgrade(&secure));
        secure
    }
}

// === impl UpstreamTls ===

impl UpstreamTls {
    /// Creates TLS settings. `roots`: `None` accepts any certificate. `name`: the expected name in the
    /// certificate, `None` for the configured name of each server.
    pub fn new(
        roots: Option<TrustedRoots>,
        name: Option<&str>,
        protocol: UpstreamProtocol,
    ) -> Result<Self, TlsError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = name.map(server_name).transpose()?;
        let mut config = config(roots.as_ref())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http1 = config.clone();
        match protocol {
            UpstreamProtocol::Http1 => {}
            UpstreamProtocol::Http2 => config.alpn_protocols = vec![b"h2".to_vec()],
            UpstreamProtocol::Auto => config.alpn_protocols.insert(0, b"h2".to_vec()),
        }
        Ok(Self {
            usual: Arc::new(config),
            http1: Arc::new(http1),
            roots,
            name,
            protocol,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        })
    }

    fn has_settings_of(&self, other: &Self) -> bool {
        self.protocol == other.protocol && self.name == other.name && self.roots == other.roots
    }

    /// Returns the peer for error texts.
    pub(super) fn peer(&self) -> TlsPeer {
        let ca = self.roots.as_ref().is_some_and(|roots| roots.given);
        TlsPeer::Origin { ca }
    }

    /// Encrypts a stream. `label` is the configured name of the server.
    pub(super) async fn connect(
        &self,
        stream: OriginStream,
        label: &str,
        http1: bool,
    ) -> io::Result<TlsStream<OriginStream>> {
        let config = if http1 { &self.http1 } else { &self.usual };
        let name = match &self.name {
            Some(name) => name.clone(),
            None => own_name(label).map_err(io::Error::other)?,
        };
        let connector = TlsConnector::from(Arc::clone(config));
        connector.connect(name, stream).await
    }
}

/// Returns the host of `host:port`.
fn own_name(label: &str) -> Result<ServerName<'static>, TlsError> {
    if let Ok(address) = label.parse::<SocketAddr>() {
        return Ok(ServerName::from(address.ip()));
    }
    let (host, _) = label.rsplit_once(':').unwrap_or((label, ""));
    server_name(host)
}

/// Checks whether `name` can be the name in a certificate. The error has the reason.
pub fn is_name(name: &str) -> Result<(), TlsError> {
    server_name(name).map(drop)
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(ServerName::from(ip));
    }
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

fn config(roots: Option<&TrustedRoots>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier {
        algorithms: provider.signature_verification_algorithms,
        trusted: roots.map(|roots| roots.trusted(&provider)).transpose()?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(config.with_no_client_auth())
}

// === impl Verifier ===

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(Trusted { given, roots }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = roots.verify_server_cert(shown, chain, name, ocsp, now);
        if !given.contains(shown) {
            return verified;
        }
        // The library does not accept a self-signed certificate as its own root. This certificate is configured,
        // so only its validity period and its name remain to be checked.
        is_in_time(verified)?;
        verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Keeps only the errors about the validity period, which the library checks first.
fn is_in_time(verified: Result<ServerCertVerified, rustls::Error>) -> Result<(), rustls::Error> {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match verified {
        Err(rustls::Error::InvalidCertificate(
            why @ (Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }),
        )) => Err(why.into()),
        _ => Ok(()),
    }
}

// === impl TlsError ===

impl TlsError {
    /// Returns whether the name is invalid, not the roots.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}` is neither a host name nor an address"),
            Self::Roots(why) => write!(f, "the root certificates cannot be used: {why}"),
            Self::NoRoots => f.write_str("there is no root certificate"),
            Self::Tls(error) => write!(f, "cannot set up TLS: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}
