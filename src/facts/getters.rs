//! Functions for the getters of the field table. They return borrowed data if possible.

use std::borrow::Cow;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Version};

use super::{CertificateFields, FactsView, RequestHead, TlsFacts};

/// The result of a string getter. `None` if the value is missing.
pub type Bytes<'a> = Option<Cow<'a, [u8]>>;

/// The name of an HTTP version in rules and logs.
pub fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

pub fn uri<'a>(view: FactsView<'a, '_>) -> Bytes<'a> {
    Some(match view.request.head.uri() {
        Cow::Borrowed(uri) => Cow::Borrowed(uri.as_bytes()),
        Cow::Owned(uri) => Cow::Owned(uri.into_bytes()),
    })
}

pub fn x_forwarded_for<'a>(view: FactsView<'a, '_>) -> Bytes<'a> {
    const NAME: HeaderName = HeaderName::from_static("x-forwarded-for");
    joined(view.request.headers, &NAME, b", ")
}

/// The media type of the response in lower case, without parameters.
pub fn media_type<'a>(view: FactsView<'a, '_>) -> Bytes<'a> {
    media_type_of(view.response?.headers.get(CONTENT_TYPE)?.as_bytes())
}

/// The media type in a `Content-Type` header.
pub fn media_type_of(content_type: &[u8]) -> Bytes<'_> {
    let media_type = content_type.split(|byte| *byte == b';').next()?;
    lower(media_type.trim_ascii())
}

pub fn tls<'a>(view: FactsView<'a, '_>) -> Option<&'a TlsFacts> {
    view.request.connection.tls.as_ref()
}

/// The fields of the client's certificate. `None` if it has none.
pub fn certificate<'a>(view: FactsView<'a, '_>) -> Option<&'a CertificateFields> {
    Some(tls(view)?.client.as_ref()?.fields())
}

pub fn text(text: &str) -> Bytes<'_> {
    Some(Cow::Borrowed(text.as_bytes()))
}

/// The value. `None` if it is empty, which means unknown.
pub fn known(value: &str) -> Bytes<'_> {
    (!value.is_empty()).then_some(Cow::Borrowed(value.as_bytes()))
}

pub fn lower(bytes: &[u8]) -> Bytes<'_> {
    Some(if bytes.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(bytes.to_ascii_lowercase())
    } else {
        Cow::Borrowed(bytes)
    })
}

pub fn number(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}

pub fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Bytes<'a> {
    Some(Cow::Borrowed(headers.get(name)?.as_bytes()))
}

/// Joins all values of a header.
pub fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName, separator: &[u8]) -> Bytes<'a> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |mut all, line| {
        all.to_mut().extend_from_slice(separator);
        all.to_mut().extend_from_slice(line);
        all
    }))
}

pub fn absolute<'a>(head: &RequestHead<'_>, uri: &str) -> Bytes<'a> {
    let scheme = if head.secure { "https" } else { "http" };
    let full = format!("{scheme}://{}{uri}", head.authority());
    Some(Cow::Owned(full.into_bytes()))
}

/// The file extension of a path. Empty if there is none, as at Cloudflare; a name that starts with
/// its only dot (`.env`) has none.
pub fn extension_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}
