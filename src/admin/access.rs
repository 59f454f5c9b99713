//! Decides which requests the admin port accepts: the token, and protection against other web pages (DNS rebinding
//! and cross-site requests). Reads only the request head.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sha2::{Digest, Sha256};

use super::api_error::ApiError;

/// Which requests for a path are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// All requests: probes of load balancers.
    Open,
    /// Requests without a token too: files that contain no data.
    NoToken,
    /// Only requests with the token, if there is one.
    Token,
}

/// Checks the head of a request. `token` is `None` if the configuration has none.
pub fn check(head: &Parts, access: PathAccess, token: Option<&str>) -> Result<(), ApiError> {
    match token {
        _ if access == PathAccess::Open => {}
        Some(token) if access == PathAccess::Token => check_token(&head.headers, token)?,
        Some(_) => {}
        None => check_host(head)?,
    }
    if is_read(&head.method) {
        return Ok(());
    }
    check_site(head)?;
    check_content_type(&head.headers)
}

/// Returns whether a method only reads.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn check_token(headers: &HeaderMap, token: &str) -> Result<(), ApiError> {
    let given = only(headers, AUTHORIZATION)?.and_then(|value| bearer(value.as_bytes()));
    let is_right = given.is_some_and(|given| is_equal(given, token.as_bytes()));
    if is_right && !token.is_empty() {
        Ok(())
    } else {
        Err(ApiError::unauthorized())
    }
}

/// Returns the token of a `Bearer` credential (RFC 6750, section 2.1). The scheme ignores case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

/// Compares digests in constant time, so that the duration reveals nothing about the token. A client
/// without the token cannot control the digest.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (Sha256::digest(a), Sha256::digest(b));
    let differences = a.iter().zip(&b).fold(0, |seen, (x, y)| seen | (x ^ y));
    std::hint::black_box(differences) == 0
}

/// Accepts only names and addresses of this machine. A page can make its own name resolve to 127.0.0.1 (DNS
/// rebinding), but its requests then have that name in `Host`.
fn check_host(head: &Parts) -> Result<(), ApiError> {
    let is_local = |authority: &Authority| is_loopback(authority.host());
    // The authority of an absolute-form target replaces `Host` (RFC 9112, section 3.2.2).
    if host(&head.headers)?.is_some_and(|host| is_local(&host))
        && head.uri.authority().is_none_or(is_local)
    {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "without a token, `Host` must be localhost or a loopback address; set `admin.token_file` to use another name",
    ))
}

fn is_loopback(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address: Option<IpAddr> = address.unwrap_or(host).parse().ok();
    let is_local = |address: IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(is_local)
}

/// Returns the `Host` of a request. `None` if it is absent or invalid.
fn host(headers: &HeaderMap) -> Result<Option<Authority>, ApiError> {
    let host = only(headers, HOST)?;
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    Ok(authority.filter(|authority| !authority.as_str().contains('@')))
}

/// Refuses a change that a page of another site requests.
fn check_site(head: &Parts) -> Result<(), ApiError> {
    let site = only(&head.headers, HeaderName::from_static("sec-fetch-site"))?;
    let is_foreign = |site: &HeaderValue| site != "same-origin" && site != "none";
    if site.is_some_and(is_foreign) {
        return Err(ApiError::forbidden(
            "a page of another site cannot change anything",
        ));
    }
    let Some(origin) = only(&head.headers, ORIGIN)? else {
        return Ok(());
    };
    let host = host(&head.headers)?;
    if host.is_some_and(|host| is_origin_of(origin, &host)) {
        Ok(())
    } else {
        Err(ApiError::forbidden(
            "the host and port of `Origin` must equal `Host`",
        ))
    }
}

/// Returns whether an origin has the host and port of `host`. A default port may be absent.
fn is_origin_of(origin: &HeaderValue, host: &Authority) -> bool {
    let parts = origin.to_str().ok().and_then(|text| text.split_once("://"));
    let Some((scheme, authority)) = parts else {
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    let authority = authority.parse::<Authority>();
    authority.is_ok_and(|authority| {
        authority.host().eq_ignore_ascii_case(host.host()) && port(&authority) == port(host)
    })
}

/// A page can send a body of another type across sites without asking first.
fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let has_length = headers
        .get(CONTENT_LENGTH)
        .is_some_and(|length| length != "0");
    let has_body = has_length || headers.contains_key(TRANSFER_ENCODING);
    let media_type = only(headers, CONTENT_TYPE)?;
    let is_json = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        let essence = text.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    };
    if media_type.map_or(!has_body, is_json) {
        Ok(())
    } else {
        Err(ApiError::forbidden(
            "the body must have `content-type: application/json`",
        ))
    }
}

/// Returns the value of a header that must not be repeated.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, ApiError> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(ApiError::forbidden(format!("`{name}` is repeated"))),
        (value, None) => Ok(value),
    }
}

#[cfg(test)]
mod tests;
