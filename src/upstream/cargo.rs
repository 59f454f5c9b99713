//! A request that is to be sent, in the form that its connection wants. Never sends.

use super::error::{Error, Kind};
use super::upload::Upload;
use super::{Outbound, Protocol, Upstream, h2};

/// A request that is to be sent.
pub(super) enum Cargo<'a> {
    /// Over HTTP/1.1.
    Http1(Box<Upload>),
    /// Over HTTP/2.
    Http2(Box<h2::Upload>),
    /// Over what the origin chooses.
    Either(Box<Outbound<'a>>),
}

// === impl Cargo ===

impl<'a> Cargo<'a> {
    /// As the upstream wants it. On the heap, for whoever polls a request moves its future about.
    pub(super) fn new(upstream: &Upstream, outbound: Outbound<'a>) -> Result<Self, Error> {
        match upstream.protocol {
            Protocol::Http1 => Ok(Self::Http1(Box::new(Upload::new(outbound)?))),
            // RFC 9113, section 8.6: it cannot be upgraded.
            Protocol::Http2 if outbound.upgrade => Err(Kind::NoUpgrade.into()),
            Protocol::Auto if outbound.upgrade => Ok(Self::Http1(Box::new(Upload::new(outbound)?))),
            Protocol::Http2 => {
                let upload = h2::Upload::new(outbound, upstream.tls.is_some())?;
                Ok(Self::Http2(Box::new(upload)))
            }
            Protocol::Auto => Ok(Self::Either(Box::new(outbound))),
        }
    }

    /// For a connection over which HTTP/1.1 is spoken.
    pub(super) fn into_http1(self) -> Result<Box<Upload>, Error> {
        match self {
            Self::Http1(upload) => Ok(upload),
            Self::Either(outbound) => Ok(Box::new(Upload::new(*outbound)?)),
            Self::Http2(_) => Err(Kind::Handshake.into()),
        }
    }

    /// For a connection over which HTTP/2 is spoken.
    pub(super) fn into_http2(self, upstream: &Upstream) -> Result<Box<h2::Upload>, Error> {
        match self {
            Self::Http2(upload) => Ok(upload),
            Self::Either(outbound) => {
                let upload = h2::Upload::new(*outbound, upstream.tls.is_some())?;
                Ok(Box::new(upload))
            }
            Self::Http1(_) => Err(Kind::Handshake.into()),
        }
    }
}
