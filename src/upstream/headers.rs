//! What a head may carry from one side to the other. Pure functions on header maps.
//!
//! Fields that concern one connection end here (RFC 9110, section 7.6.1), and fields that say who
//! a client is come from the gateway, unless a trusted proxy sent them.

use std::net::IpAddr;

use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode, Uri, Version};
use smallvec::SmallVec;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What an origin is told about who asks.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding<'a> {
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
}

/// The target of a request to an origin; `None` if it is not a path.
pub fn outbound_target(path_and_query: &str) -> Option<Uri> {
    let path = PathAndQuery::try_from(path_and_query).ok()?;
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = path.as_str().starts_with('/').then_some(path);
    parts.path_and_query.as_ref()?;
    Uri::from_parts(parts).ok()
}

/// Turns a client's validated head, received as `version`, into the origin's. `upgrade`: it is a
/// validated WebSocket handshake. Framing is left to the sender of the body.
pub fn outbound_headers(
    headers: &mut HeaderMap,
    version: Version,
    forwarding: &Forwarding<'_>,
    upgrade: bool,
) {
    let trusted = forwarding.trusted_peer;
    let trailers = wants_trailers(headers);
    remove_named_by_connection(headers);
    remove_all(headers, |name| stays_here(name, trusted));
    if version == Version::HTTP_2 {
        join_cookies(headers);
    }
    if upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    } else if trailers {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    set_forwarding(headers, forwarding);
}

/// Turns an origin's head into what a client may see.
pub fn inbound_headers(headers: &mut HeaderMap, status: StatusCode) {
    remove_named_by_connection(headers);
    remove_all(headers, is_hop_by_hop);
    match status {
        StatusCode::SWITCHING_PROTOCOLS => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.remove(header::CONTENT_LENGTH);
        }
        // RFC 9110, section 8.6: no length in a 204.
        StatusCode::NO_CONTENT => drop(headers.remove(header::CONTENT_LENGTH)),
        _ => {}
    }
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

/// RFC 9110, section 7.6.1. A field that frames, routes or identifies cannot be named away.
fn remove_named_by_connection(headers: &mut HeaderMap) {
    if !headers.contains_key(header::CONNECTION) {
        return;
    }
    let named: SmallVec<[HeaderName; 4]> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&b| b == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| !is_ours(name.as_str()))
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// One look at each field that is there is cheaper than one look-up for each that might be.
fn remove_all(headers: &mut HeaderMap, unwanted: impl Fn(&HeaderName) -> bool) {
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
fn stays_here(name: &HeaderName, trusted: bool) -> bool {
    match *name {
        // The gateway answers it itself, and sends the body without waiting.
        header::EXPECT => true,
        header::FORWARDED => !trusted,
        _ if is_hop_by_hop(name) => true,
        _ => match name.as_str() {
            // Scripts would read it as the variable HTTP_PROXY.
            "proxy" | "http2-settings" => true,
            text if text.starts_with("x-lockgate-") => true,
            text if claims_identity(text) => !trusted,
            text => is_twin(text),
        },
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
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
                | "true-client-ip"
                | "x-client-ip"
                | "x-cluster-client-ip"
                | "x-original-forwarded-for"
                | "x-real-ip"
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

fn wants_trailers(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::TE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&b| b == b','))
        .any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// RFC 9113, section 8.2.3: the crumbs of HTTP/2 are one field in HTTP/1.1.
fn join_cookies(headers: &mut HeaderMap) {
    if let Some(joined) = join(headers, &header::COOKIE, b"; ") {
        headers.insert(header::COOKIE, joined);
    }
}

/// Several lines of a field as one; `None` if there are fewer than two.
fn join(headers: &HeaderMap, name: &HeaderName, separator: &[u8]) -> Option<HeaderValue> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let (first, second) = (lines.next()?, lines.next()?);
    let mut joined = [first, separator, second].concat();
    for line in lines {
        joined.extend_from_slice(separator);
        joined.extend_from_slice(line);
    }
    HeaderValue::try_from(joined).ok()
}

fn set_forwarding(headers: &mut HeaderMap, forwarding: &Forwarding<'_>) {
    let client = address(forwarding.client);
    headers.insert(X_FORWARDED_FOR, forwarded_for(headers, forwarding, &client));
    headers.insert(X_REAL_IP, client);
    let host = HeaderValue::try_from(forwarding.host);
    let host = host.unwrap_or(HeaderValue::from_static(""));
    if !(forwarding.trusted_peer && headers.contains_key(X_FORWARDED_HOST)) {
        headers.insert(X_FORWARDED_HOST, host.clone());
    }
    headers.insert(header::HOST, host);
    if !(forwarding.trusted_peer && headers.contains_key(X_FORWARDED_PROTO)) {
        let proto = if forwarding.https { "https" } else { "http" };
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    }
    if !(forwarding.trusted_peer && headers.contains_key(X_REQUEST_ID)) {
        match HeaderValue::try_from(forwarding.request_id) {
            Ok(id) => drop(headers.insert(X_REQUEST_ID, id)),
            Err(_) => drop(headers.remove(X_REQUEST_ID)),
        }
    }
}

/// The peer, behind the hops that a trusted proxy told of.
fn forwarded_for(
    headers: &HeaderMap,
    forwarding: &Forwarding<'_>,
    client: &HeaderValue,
) -> HeaderValue {
    if forwarding.client == forwarding.peer && !headers.contains_key(X_FORWARDED_FOR) {
        return client.clone();
    }
    let peer = address(forwarding.peer);
    if !forwarding.trusted_peer {
        return peer;
    }
    let hops = join(headers, &X_FORWARDED_FOR, b", ").or(headers.get(X_FORWARDED_FOR).cloned());
    match hops {
        Some(hops) => HeaderValue::try_from([hops.as_bytes(), b", ", peer.as_bytes()].concat())
            .unwrap_or(peer),
        None => peer,
    }
}

fn address(ip: IpAddr) -> HeaderValue {
    let text = ip.to_canonical().to_string();
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
}
