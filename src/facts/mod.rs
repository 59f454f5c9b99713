//! The facts of a request that rules read: borrowed, computed on first use, never changed.
//!
//! [`fields`] is the one table of fields; [`head`] refuses ambiguous requests. Nothing here reads a
//! socket, a clock or a file.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fingerprint::LazyText;

pub mod body;
mod client;
mod client_certificate;
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
mod trace_parent;

pub use body::{BodyKind, BodyReads, InspectedBody};
pub use client::{ClientCredentials, ClientStanding, KnownClients, SuccessSource};
pub use client_certificate::{CertificateFields, ClientCertificate};
pub use client_ip::{ClientIpResolver, HeaderKind, IpPrefixes};
pub use fields::{FieldRow, FieldTable, HeadFields};
pub use getters::version_name;
pub use head::{BodyLength, CookieLines, MalformedRequest, RequestHead, UpgradeProtocol};
pub use request::{FactsView, GeoSource, NoGeo, RequestFacts, ResponseFacts};
pub use trace_parent::trace_id;

/// The properties of a connection that are known before its first request.
#[derive(Clone, Debug)]
pub struct ClientConnection {
    /// The TCP peer, or the address in its PROXY header.
    pub peer: SocketAddr,
    /// The listener's name, or else its address as configured, for routes, metrics and the access log.
    pub listener: Arc<str>,
    /// The results of the TLS handshake. `None` for a plain connection.
    pub tls: Option<TlsFacts>,
}

/// The results of a TLS handshake.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.3`, `TLSv1.2`.
    pub version: &'static str,
    /// The IANA name of the cipher suite, `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The server name that the client requested, as sent. `None` if there is none.
    pub sni: Option<Box<str>>,
    /// The negotiated protocol, `h2` or `http/1.1`. `None` without ALPN.
    pub alpn: Option<&'static str>,
    /// The verified certificate of the client. `None` if it has none.
    pub client: Option<ClientCertificate>,
    /// The properties of the ClientHello.
    pub hello: HelloFacts,
}

/// The properties of a ClientHello. The fingerprints are computed on first read.
#[derive(Clone, Debug, Default)]
pub struct HelloFacts {
    /// The MD5 of the JA3 string, 32 hexadecimal digits.
    pub ja3: LazyText,
    /// The JA3 string.
    pub ja3_raw: LazyText,
    /// The JA4 fingerprint.
    pub ja4: LazyText,
    /// The length of the ClientHello message in bytes, including its four-byte header.
    pub length: usize,
}
