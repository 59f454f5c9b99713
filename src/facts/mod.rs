//! What rules see of a request: borrowed, computed on first use, never changed.
//!
//! [`fields`] is the one table of fields; [`head`] refuses requests that do not have exactly one
//! meaning. Nothing here reads a socket, a clock or a file.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fingerprint::LazyText;

pub mod client_ip;
pub mod cookies;
pub mod fields;
mod getters;
pub mod head;
pub mod host;
mod maps;
pub mod path;
pub mod proxy;
pub mod query;
pub mod request;

pub use client_ip::{ClientIpResolver, HeaderKind, IpPrefixes};
pub use fields::{FieldRow, FieldTable};
pub use getters::version_name;
pub use head::{BodyLength, CookieLines, MalformedRequest, RequestHead, UpgradeProtocol};
pub use request::{FactsView, GeoSource, NoGeo, RequestFacts, ResponseFacts};

/// What is known about a connection before its first request.
#[derive(Clone, Debug)]
pub struct ClientConnection {
    /// The TCP peer, or whom its PROXY header names.
    pub peer: SocketAddr,
    /// The listener's address as configured, for metrics.
    pub listener: Arc<str>,
    /// What the handshake showed; `None`: plain.
    pub tls: Option<TlsFacts>,
}

/// What a TLS handshake showed.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.3`, `TLSv1.2`.
    pub version: &'static str,
    /// The IANA name of the cipher suite, `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The server name that the client asked for, as sent.
    pub sni: Option<Box<str>>,
    /// The agreed protocol, `h2` or `http/1.1`.
    pub alpn: Option<&'static str>,
    /// What the client's hello showed.
    pub hello: HelloFacts,
}

/// What a ClientHello showed. The fingerprints are computed when first read.
#[derive(Clone, Debug, Default)]
pub struct HelloFacts {
    /// The MD5 of the JA3 string, 32 hexadecimal digits.
    pub ja3: LazyText,
    /// The JA3 string.
    pub ja3_raw: LazyText,
    /// The JA4 fingerprint.
    pub ja4: LazyText,
    /// Bytes of the ClientHello message, its four-byte header included.
    pub length: usize,
}
