//! Errors of certificates when a configuration is loaded, and of TLS handshakes.

use std::{fmt, io};

use rustls::InconsistentKeys;
use rustls::pki_types::pem;

use crate::clock::{Rfc3339, Timestamp};
use crate::fingerprint;
use crate::trust::{PlainError, TlsPeer};

/// Why a certificate or a [`super::TlsTerminator`] cannot be created.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// The certificate text cannot be read as PEM.
    CertificatePem(pem::Error),
    /// The key text cannot be read as PEM.
    KeyPem(pem::Error),
    /// There is no certificate in the text.
    NoCertificate,
    /// There is no private key in the text.
    NoKey,
    /// The private key has an unsupported type.
    BadKey(rustls::Error),
    /// The certificate cannot be read.
    BadCertificate(rustls::Error),
    /// The revocation list cannot be read as PEM.
    RevocationPem(pem::Error),
    /// There is no revocation list in the text.
    NoRevocationList,
    /// The revocation list cannot be read.
    BadRevocationList(rustls::CertRevocationListError),
    /// The next revocation list was due at this time.
    ExpiredRevocationList(Timestamp),
    /// The private key does not match the certificate.
    KeyMismatch,
    /// A certificate could not be generated.
    Generate(rcgen::Error),
    /// The settings have no certificate.
    NoCertificates,
    /// The operating system provided no random bytes.
    NoRandomness,
    /// The TLS library reports an error.
    Tls(rustls::Error),
}

/// Why a connection did not become a TLS connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The client does not speak TLS but, for example, plain HTTP.
    NotTls,
    /// The ClientHello is longer than [`super::MAX_HELLO`].
    HelloTooLarge,
    /// The client disconnected.
    Closed,
    /// The ClientHello cannot be read.
    BadHello(rustls::Error),
    /// The TLS library accepted the ClientHello, but it has no valid fingerprint.
    NoFingerprint(fingerprint::ClientHelloError),
    /// The client ended the handshake with an alert.
    Alert(rustls::AlertDescription),
    /// The client sent no certificate, but one is required.
    NoClientCertificate,
    /// The client's certificate is rejected.
    BadClientCertificate(rustls::CertificateError),
    /// Client and server have no common parameters, or the handshake failed; the client got an alert.
    Tls(rustls::Error),
    /// The socket failed.
    Io(io::Error),
}

// === impl TlsConfigError ===

impl TlsConfigError {
    /// Returns whether the private key is the cause, not the certificate.
    pub fn is_key(&self) -> bool {
        matches!(
            self,
            TlsConfigError::KeyPem(_)
                | TlsConfigError::NoKey
                | TlsConfigError::BadKey(_)
                | TlsConfigError::KeyMismatch
        )
    }

    /// Returns why a chain and a key do not match.
    pub(super) fn of_pair(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Self::KeyMismatch,
            rustls::Error::InvalidCertificate(_) => Self::BadCertificate(error),
            error => Self::BadKey(error),
        }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CertificatePem(error) => write!(f, "the certificate is not PEM: {error}"),
            Self::KeyPem(error) => write!(f, "the private key is not PEM: {error}"),
            Self::NoCertificate => f.write_str("there is no `CERTIFICATE` section"),
            Self::NoKey => f.write_str("there is no `PRIVATE KEY` section"),
            Self::BadKey(error) => write!(f, "the private key cannot be used: {error}"),
            Self::BadCertificate(error) => PlainError(error, TlsPeer::Own).fmt(f),
            Self::RevocationPem(error) => write!(f, "the revocation list is not PEM: {error}"),
            Self::NoRevocationList => f.write_str("there is no `X509 CRL` section"),
            Self::BadRevocationList(error) => {
                write!(f, "the revocation list cannot be read ({error:?})")
            }
            Self::ExpiredRevocationList(end) => {
                write!(
                    f,
                    "a revocation list has expired: the next one was due at {}",
                    Rfc3339(*end)
                )
            }
            Self::KeyMismatch => f.write_str("the private key does not belong to the certificate"),
            Self::Generate(error) => write!(f, "cannot generate a certificate: {error}"),
            Self::NoCertificates => f.write_str("TLS needs at least one certificate"),
            Self::NoRandomness => f.write_str("the operating system returned no random bytes"),
            Self::Tls(error) => write!(f, "cannot set up TLS: {error}"),
        }
    }
}

impl std::error::Error for TlsConfigError {}

// === impl HandshakeError ===

impl HandshakeError {
    /// A short constant name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::HelloTooLarge => "hello_too_large",
            Self::Closed => "closed",
            Self::BadHello(_) | Self::NoFingerprint(_) => "bad_hello",
            Self::Alert(_) => "alert",
            Self::NoClientCertificate => "no_client_certificate",
            Self::BadClientCertificate(_) => "bad_client_certificate",
            Self::Tls(_) => "handshake",
            Self::Io(_) => "io",
        }
    }
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => Self::Closed,
            _ => match error.downcast::<rustls::Error>() {
                Ok(rustls::Error::AlertReceived(alert)) => Self::Alert(alert),
                Ok(rustls::Error::NoCertificatesPresented) => Self::NoClientCertificate,
                Ok(rustls::Error::InvalidCertificate(error)) => Self::BadClientCertificate(error),
                Ok(error) => Self::Tls(error),
                Err(error) => Self::Io(error),
            },
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls => f.write_str("the client does not speak TLS on this port"),
            Self::HelloTooLarge => f.write_str("the ClientHello is too large"),
            Self::Closed => f.write_str("the client closed the connection"),
            Self::BadHello(error) | Self::Tls(error) => PlainError(error, TlsPeer::Client).fmt(f),
            Self::NoFingerprint(error) => error.fmt(f),
            Self::Alert(alert) => {
                let error = rustls::Error::AlertReceived(*alert);
                PlainError(&error, TlsPeer::Client).fmt(f)
            }
            Self::NoClientCertificate => {
                f.write_str("the client has no certificate, but `client_auth` requires one")
            }
            Self::BadClientCertificate(error) => {
                let error = rustls::Error::InvalidCertificate(error.clone());
                PlainError(&error, TlsPeer::Client).fmt(f)
            }
            Self::Io(error) => write!(f, "the socket failed: {error}"),
        }
    }
}

impl std::error::Error for HandshakeError {}
