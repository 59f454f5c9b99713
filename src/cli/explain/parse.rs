//! Parsers for the arguments of `lockgate explain`. Each error message states the expected format.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode, Version};

use crate::facts::host;

/// A parsed URL argument.
#[derive(Clone, Debug)]
pub struct ParsedUrl {
    /// Whether the scheme is `https`. `None` if the argument is only a path.
    pub secure: Option<bool>,
    /// Host and port.
    pub authority: Authority,
    /// Path and query. The fragment is removed, because clients never send it.
    pub target: String,
}

const URL_HELP: &str = "write https://example.com/login, or a path such as /login";

/// Parses a URL, a path, or the `*` of `OPTIONS *`.
pub fn url(text: &str) -> Result<ParsedUrl, String> {
    if text.starts_with('/') || text == "*" {
        return Ok(ParsedUrl {
            secure: None,
            authority: Authority::from_static("localhost"),
            target: without_fragment(text).to_owned(),
        });
    }
    let (secure, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        _ => return Err(format!("it is not an HTTP URL: {URL_HELP}")),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let target = without_fragment(target);
    let slash = if target.starts_with('/') { "" } else { "/" };
    Ok(ParsedUrl {
        secure: Some(secure),
        authority: self::authority(authority)?,
        target: format!("{slash}{target}"),
    })
}

fn authority(text: &str) -> Result<Authority, String> {
    if text.contains('@') {
        return Err("a password does not belong in a URL: use -H 'authorization: …'".into());
    }
    let host = host::parse(text, 0).and_then(|_| text.parse().ok());
    host.ok_or_else(|| format!("`{text}` is not a host: {URL_HELP}"))
}

fn without_fragment(target: &str) -> &str {
    target.split('#').next().unwrap_or(target)
}

/// Parses a request method.
pub fn method(text: &str) -> Result<Method, String> {
    let known = text.parse::<Method>().ok();
    let upper = text.to_ascii_uppercase();
    match known.filter(|_| !text.contains([':', '/'])) {
        None => Err("it is not a method: write GET or POST first, then the URL".into()),
        Some(_) if text != upper => Err(format!("methods are written in capitals: {upper}")),
        Some(method) => Ok(method),
    }
}

/// Parses a header, `name: value`.
pub fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a header needs a colon between name and value: 'accept: text/html'")?;
    let name: HeaderName = (name.trim().parse())
        .map_err(|_| format!("`{}` is not a valid header name", name.trim()))?;
    let value = HeaderValue::from_bytes(value.trim().as_bytes())
        .map_err(|_| "a header value cannot have line breaks or control characters")?;
    Ok((name, value))
}

/// Parses a form field, `name=value`.
pub fn form_field(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let (name, value) = pair.ok_or("a form field is like user=alice, without escapes")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses an IP address.
pub fn address(text: &str) -> Result<IpAddr, String> {
    let wrong = |_| "it is not an address: write 203.0.113.7 or 2001:db8::1".to_owned();
    text.parse().map_err(wrong)
}

/// Parses a country code.
pub fn country(text: &str) -> Result<[u8; 2], String> {
    let code: Option<[u8; 2]> = text.to_ascii_uppercase().into_bytes().try_into().ok();
    code.filter(|code| code.iter().all(u8::is_ascii_alphanumeric))
        .ok_or_else(|| "a country code has two letters, such as DE".into())
}

/// Parses a JA3 fingerprint.
pub fn ja3(text: &str) -> Result<String, String> {
    let fits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a JA3 fingerprint has 32 hexadecimal digits".into())
    }
}

/// Parses a JA4 fingerprint.
pub fn ja4(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('_').collect();
    let word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    if parts.len() == 3 && parts.iter().all(word) {
        Ok(text.to_owned())
    } else {
        Err("a JA4 fingerprint is like t13d1516h2_8daaf6152771_b186095e22b6".into())
    }
}

/// Parses an HTTP version.
pub fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" => Ok(Version::HTTP_10),
        "1.1" => Ok(Version::HTTP_11),
        "2" => Ok(Version::HTTP_2),
        _ => Err("the supported versions are 1.0, 1.1 and 2".into()),
    }
}

/// Parses a response status.
pub fn status(text: &str) -> Result<StatusCode, String> {
    let number = text.parse().ok().filter(|code| (200..=599).contains(code));
    number
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or_else(|| "a status is a number from 200 to 599".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_as_a_client_splits_it() {
        let parts = |text: &str| {
            let url = url(text).unwrap();
            (url.secure, url.authority.to_string(), url.target)
        };
        let is = |text: &str, secure, authority: &str, target: &str| {
            assert_eq!(
                parts(text),
                (secure, authority.into(), target.into()),
                "{text}"
            );
        };
        is("https://a.example/x?y#z", Some(true), "a.example", "/x?y");
        is("HTTP://a.example:81", Some(false), "a.example:81", "/");
        is(
            "https://[2001:db8::1]?q=1",
            Some(true),
            "[2001:db8::1]",
            "/?q=1",
        );
        is("/a b", None, "localhost", "/a b");
        is("*", None, "localhost", "*");
        is(
            "https://a.example/..%2fb",
            Some(true),
            "a.example",
            "/..%2fb",
        );
    }

    #[test]
    fn invalid_urls_and_methods_are_errors() {
        for text in [
            "a.example/x",
            "ftp://a.example/",
            "https:///x",
            "https://u:p@a/",
            "",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
        assert_eq!(
            method("get").unwrap_err(),
            "methods are written in capitals: GET"
        );
        assert!(method("https://a/").is_err() && method("PROPFIND").is_ok());
        assert_eq!(form_field("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(form_field("user").is_err());
        assert!(header("accept").is_err() && header("a b: c").is_err());
        assert!(country("DEU").is_err() && country("de") == Ok(*b"DE"));
        assert!(ja3("abc").is_err() && ja4("x").is_err() && status("99").is_err());
    }
}
