//! `[[listeners]]`.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use crate::config::Spanned;

/// One of `[[listeners]]`.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The header of the section.
    pub span: Range<usize>,
    /// Where to listen; `[::]` is both families.
    pub address: Spanned<SocketAddr>,
    /// What is spoken, in ALPN order, each once. Default h2, then HTTP/1.1.
    pub protocols: Vec<Spanned<Protocol>>,
    /// A PROXY header comes first, from trusted proxies alone. Default false.
    pub proxy_protocol: Spanned<bool>,
    /// TLS; `None`: plain HTTP.
    pub tls: Option<Tls>,
}

/// `[listeners.tls]`.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The header of the section.
    pub span: Range<usize>,
    /// Certificates, the first of which is the default; empty: a self-signed one for development.
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken. Default 1.2.
    pub min_version: Spanned<TlsVersion>,
    /// A PEM file of authorities that sign clients' certificates; `None`: none is asked for.
    pub client_ca: Spanned<Option<PathBuf>>,
    /// Whether a client must have one. Default required.
    pub client_auth: Spanned<ClientAuth>,
}

/// Whether a client must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A client without one is refused.
    Required,
    /// A client without one is let in.
    Optional,
}

/// A certificate and its key, PEM files. What is absent was reported when it was read.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The chain.
    pub cert: Option<Spanned<PathBuf>>,
    /// The private key.
    pub key: Option<Spanned<PathBuf>>,
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2.
    H2,
    /// HTTP/1.1.
    Http11,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}
