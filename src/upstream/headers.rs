//! Decides which headers are forwarded in each direction. Never reads or writes a head.
//!
//! Headers that concern one connection are removed (RFC 9110, section 7.6.1). Headers that identify the
//! client are set by the gateway unless a trusted proxy sent them.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{self, HeaderName};
use smallvec::SmallVec;

/// Names of headers.
pub(super) type Named = SmallVec<[HeaderName; 2]>;

/// The values of the headers that describe the client to an origin server.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedHeaders<'a> {
    /// The TCP peer.
    pub peer: IpAddr,
    /// The client address: the peer, or the address that a trusted proxy forwarded.
    pub client: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub trusted_peer: bool,
    /// The host that the client requested, normalised.
    pub host: &'a str,
    /// Whether the client's connection is encrypted.
    pub https: bool,
    /// The request's id.
    pub request_id: &'a str,
    /// The names of the rules that tagged the request, separated by commas. Empty if there are none.
    pub rules: &'a str,
    /// What the gateway's cookies prove. `None` if it gives clients no cookies.
    pub credentials: Option<CredentialHeaders<'a>>,
}

/// What the gateway's cookies prove about a client. The cookies themselves are not forwarded.
#[derive(Clone, Copy, Debug)]
pub struct CredentialHeaders<'a> {
    /// Whether the client is known: `known` or `new`. `None` if no client can become known.
    pub client: Option<&'static str>,
    /// The name of the rule whose challenge the client has solved. Empty if the request passed no challenge.
    pub challenge: &'a str,
}

/// Removes headers that are not allowed in trailers (RFC 9110, section 6.5.1).
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

/// Returns the headers that `Connection` lists (RFC 9110, section 7.6.1). It cannot remove headers that
/// affect framing, routing or identity.
pub(super) fn named<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Named {
    lines
        .flat_map(|line| line.split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        // These are options, not headers, and nearly every `Connection` header has one of them.
        .filter(|name| !name.eq_ignore_ascii_case(b"keep-alive") && !is_close(name))
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !is_ours(name.as_str()))
        .collect()
}

/// Returns whether an option of `Connection` is `close`.
pub(super) fn is_close(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"close")
}

/// One pass over the existing headers is cheaper than one lookup for each unwanted name.
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

/// Returns whether a client's header must not reach an origin server.
pub(super) fn stays_here(name: &HeaderName, trusted: bool) -> bool {
    match *name {
        // The most frequent headers first, to skip the comparison of strings.
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
        // The gateway responds to `Expect` itself and sends the body without waiting.
        header::EXPECT => true,
        header::FORWARDED => !trusted,
        _ if is_hop_by_hop(name) => true,
        _ => match name.as_str() {
            // CGI scripts would read it as the variable HTTP_PROXY.
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

/// Returns whether a header identifies the client or the requested resource.
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

/// Returns whether origin servers rely on the gateway for this header.
fn is_ours(name: &str) -> bool {
    claims_identity(name)
        || name.starts_with("x-lockgate-")
        || matches!(name, "host" | "content-length" | "x-request-id")
}

/// Returns whether a name is another spelling of a header that the gateway sets or removes: CGI and WSGI
/// read `x_real_ip` and `x-real-ip` as one variable.
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
