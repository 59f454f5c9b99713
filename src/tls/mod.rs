//! Terminates TLS: selects the certificate by server name, requests a client certificate, resumes sessions, and
//! reports what the ClientHello and the handshake contained.
//!
//! It reads no files and has no timeout: certificates are passed as bytes, and the caller sets a timeout for
//! [`accept()`], which may be dropped at any point. A [`TlsTerminator`] never changes; a reload creates a new
//! one that shares [`TicketKeys`].

mod accept;
mod certificate;
mod client_auth;
mod client_certificate;
mod error;
mod resolve;
#[cfg(test)]
mod tests;
mod tickets;
mod x509;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::WebPkiClientVerifier;

use crate::clock::Timestamp;
pub use accept::{MAX_HELLO, TlsStream, accept, is_resumed};
pub use certificate::{Certificate, CertificateChain, PrivateKey};
pub use client_auth::ClientAuth;
pub use error::{HandshakeError, TlsConfigError};
pub use tickets::{SavedKeys, TicketKeys};
use tickets::{ScopeKeys, TicketScope};
pub use x509::{CertificateName, ValidityPeriod};

/// The server side of TLS for one listener. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsTerminator {
    config: Arc<ServerConfig>,
    resolver: Arc<resolve::ByName>,
    ends: Box<[(Box<str>, Timestamp)]>,
    scope: TicketScope,
    /// Kept alive so that the terminator of the next configuration finds them in [`TicketKeys`]. `None` before
    /// [`TlsTerminator::with_tickets`].
    keys: Option<Arc<ScopeKeys>>,
}

/// The settings of a [`TlsTerminator`].
#[derive(Debug)]
pub struct TerminatorSettings {
    /// The listener. Sessions can only be resumed on it.
    pub listener: Box<str>,
    /// The certificates, selected by server name; the first is the default. At least one.
    pub certificates: Vec<Certificate>,
    /// The minimum version.
    pub min_version: MinVersion,
    /// The ALPN protocols in order of preference; empty disables ALPN.
    pub protocols: Vec<AlpnProtocol>,
    /// Which clients are accepted. `None` accepts all and requests no certificate.
    pub clients: Option<ClientAuth>,
}

/// The minimum TLS version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}

/// An ALPN protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlpnProtocol {
    /// HTTP/2.
    H2,
    /// HTTP/1.1.
    Http1,
}

/// Makes the cryptography library gather its entropy now instead of during the first handshake. Takes about 30
/// ms, once per process.
pub fn warm_up() -> Result<(), TlsConfigError> {
    let provider = aws_lc_rs::default_provider();
    let mut bytes = [0; 32];
    provider
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| TlsConfigError::NoRandomness)
}

// === impl TlsTerminator ===

impl TlsTerminator {
    /// Checks the settings. Sessions are resumed only after [`TlsTerminator::with_tickets`].
    pub fn new(settings: TerminatorSettings) -> Result<Self, TlsConfigError> {
        let resolver = Arc::new(resolve::ByName::new(&settings.certificates)?);
        let ends = settings.certificates.iter().filter_map(Certificate::end);
        let ends = ends.collect();
        let verifier = match &settings.clients {
            Some(clients) => clients.verifier()?,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(settings.min_version.versions())
            .map_err(TlsConfigError::Tls)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(resolver.clone());
        let protocols = settings.protocols.iter();
        config.alpn_protocols = protocols.flat_map(|protocol| protocol.wire()).collect();
        // A replayed request would be counted and forwarded twice (RFC 8446, section 8).
        config.max_early_data_size = 0;
        let scope = TicketScope {
            listener: settings.listener,
            clients: settings.clients.as_ref().map(|clients| clients.identity),
        };
        Ok(Self {
            config: Arc::new(config),
            resolver,
            ends,
            scope,
            keys: None,
        })
    }

    /// Resumes sessions with the keys that `tickets` has for this listener.
    pub fn with_tickets(mut self, tickets: &TicketKeys) -> Self {
        let keys = tickets.of(&self.scope);
        let config = Arc::make_mut(&mut self.config);
        config.ticketer = keys.ticketer.clone();
        config.session_storage = keys.sessions.clone();
        self.keys = Some(keys);
        self
    }

    /// Returns the first name of each certificate, and when it expires.
    pub fn ends(&self) -> &[(Box<str>, Timestamp)] {
        &self.ends
    }

    /// Returns whether a request for `host` belongs on a connection with another certificate than the one
    /// selected by `sni` (RFC 9110, section 15.5.20).
    pub fn misdirects(&self, sni: Option<&str>, host: &str) -> bool {
        self.resolver.misdirects(sni, host)
    }
}

// === impl MinVersion ===

impl MinVersion {
    fn versions(self) -> &'static [&'static rustls::SupportedProtocolVersion] {
        static NEWEST: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
        match self {
            Self::Tls12 => rustls::ALL_VERSIONS,
            Self::Tls13 => &NEWEST,
        }
    }
}

// === impl AlpnProtocol ===

impl AlpnProtocol {
    /// Returns the ALPN name, `h2` or `http/1.1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::H2 => "h2",
            Self::Http1 => "http/1.1",
        }
    }

    /// Returns the names by which a client may select the protocol. HTTP/1.0 is served like HTTP/1.1.
    fn wire_names(self) -> &'static [&'static str] {
        match self {
            Self::H2 => &["h2"],
            Self::Http1 => &["http/1.1", "http/1.0"],
        }
    }

    fn wire(self) -> impl Iterator<Item = Vec<u8>> {
        self.wire_names().iter().map(|name| Vec::from(*name))
    }

    /// Returns the negotiated name.
    fn selected(name: &[u8]) -> Option<&'static str> {
        let mut names = [Self::H2, Self::Http1]
            .into_iter()
            .flat_map(Self::wire_names);
        names.find(|known| known.as_bytes() == name).copied()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
