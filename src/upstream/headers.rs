//! Which fields a head may carry from one side to the other. Never reads or writes a head itself.
//!
//! Fields that concern one connection end here (RFC 9110, section 7.6.1), and fields that say who
//! a client is come from the gateway, unless a trusted proxy sent them.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{self, HeaderName};
use smallvec::SmallVec;

/// Names of fields.
pub(super) type Named = SmallVec<[HeaderName; 2]>;

/// What an origin is told about who asks.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedHeaders<'a> {
    /// The TCP peer.
    pub peer: IpAddr,
    /// The client: the peer, or whom a trusted proxy named.
    pub client: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub trusted_peer: bool,
    /// The host that the client asked for, normalised.
    pub host: &'a str,
    /// Whether the client's connection is encrypted.
    pub https: bool,
    /// The request's id.
    pub request_id: &'a str,
    /// The rules that tagged the request, with commas; empty: none did.
    pub rules: &'a str,
}

/// Removes from trailers what only a head may say: RFC 9110, section 6.5.1.
pub(super) fn clean_trailers(trailers: &mut HeaderMap) {
    remove_all(trailers, |name| {
        matches!(
            *name,
            header::AGE
                | header::AUTHORIZATION
                | header::CACHE_CONTROL
                | header::CONTENT_ENCODING
                | header::CONTENT_RANGE
                | header::CONTENT_TYPE
                | header::COOKIE
                | header::LOCATION
                | header::MAX_FORWARDS
                | header::RANGE
                | header::SET_COOKIE
                | header::TRAILER
                | header::WWW_AUTHENTICATE
        ) || is_hop_by_hop(name)
            || stays_here(name, false)
            || is_ours(name.as_str())
    });
}

/// The fields that lines of `Connection` name: RFC 9110, section 7.6.1. A field that frames,
/// routes or identifies cannot be named away.
pub(super) fn named<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Named {
    lines
        .flat_map(|line| line.split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        // No field has these names, and nearly every line is one of them.
        .filter(|name| !name.eq_ignore_ascii_case(b"keep-alive") && !is_close(name))
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !is_ours(name.as_str()))
        .collect()
}

/// Whether an element of `Connection` asks for its end.
pub(super) fn is_close(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"close")
}

/// One look at each field that is there is cheaper than one look-up for each that might be.
pub(super) fn remove_all(headers: &mut HeaderMap, unwanted: impl Fn(&HeaderName) -> bool) {
    let found: SmallVec<[HeaderName; 8]> = headers
        .keys()
        .filter(|name| unwanted(name))
        .cloned()
        .collect();
    for name in found {
        headers.remove(name);
    }
}

/// Whether a client's field must not reach an origin.
pub(super) fn stays_here(name: &HeaderName, trusted: bool) -> bool {
    match *name {
        // What most requests are made of, so that they are not looked at letter by letter.
        header::ACCEPT
        | header::ACCEPT_ENCODING
        | header::ACCEPT_LANGUAGE
        | header::AUTHORIZATION
        | header::CACHE_CONTROL
        | header::CONTENT_TYPE
        | header::COOKIE
        | header::IF_MODIFIED_SINCE
        | header::IF_NONE_MATCH
        | header::ORIGIN
        | header::PRAGMA
        | header::RANGE
        | header::REFERER
        | header::USER_AGENT => false,
        // The gateway answers it itself, and sends the body without waiting.
        header::EXPECT => true,
        header::FORWARDED => !trusted,
        _ if is_hop_by_hop(name) => true,
        _ => match name.as_str() {
            // Scripts would read it as the variable HTTP_PROXY.
            "proxy" | "http2-settings" => true,
            text if text.starts_with("x-lockgate-") => true,
            text if claims_identity(text) => !trusted || is_twin(text),
            text => is_twin(text),
        },
    }
}

pub(super) fn is_hop_by_hop(name: &HeaderName) -> bool {
    match *name {
        header::CONNECTION
        | header::PROXY_AUTHENTICATE
        | header::PROXY_AUTHORIZATION
        | header::TE
        | header::TRANSFER_ENCODING
        | header::UPGRADE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

/// Whether a field says who the client is or what it asked for.
fn claims_identity(name: &str) -> bool {
    name.starts_with("x-forwarded-")
        || matches!(
            name,
            "cf-connecting-ip"
                | "cf-connecting-ipv6"
                | "client-ip"
                | "fastly-client-ip"
                | "forwarded"
                | "forwarded-for"
                | "front-end-https"
                | "true-client-ip"
                | "x-appengine-user-ip"
                | "x-azure-clientip"
                | "x-client-ip"
                | "x-cluster-client-ip"
                | "x-envoy-original-path"
                | "x-forwarded"
                | "x-original-forwarded-for"
                | "x-original-host"
                | "x-original-url"
                | "x-real-ip"
                | "x-rewrite-url"
                | "x-scheme"
                | "x-url-scheme"
        )
}

/// Whether origins rely on the gateway for this field.
fn is_ours(name: &str) -> bool {
    claims_identity(name)
        || name.starts_with("x-lockgate-")
        || matches!(name, "host" | "content-length" | "x-request-id")
}

/// Whether a name is another spelling of one that the gateway vouches for or removes: CGI, WSGI
/// and their kin read `x_real_ip` and `x-real-ip` as the same variable.
fn is_twin(name: &str) -> bool {
    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return false;
    }
    let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    is_ours(&plain)
        || matches!(
            plain.as_str(),
            "connection"
                | "expect"
                | "keep-alive"
                | "proxy-authorization"
                | "proxy-connection"
                | "te"
                | "trailer"
                | "transfer-encoding"
                | "upgrade"
        )
}
