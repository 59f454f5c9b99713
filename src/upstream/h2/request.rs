//! The head of a request as HTTP/2 says it. What it says is decided where HTTP/1 decides it.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Uri, Version};

use super::super::Outbound;
use super::super::error::{Error, Kind};
use super::super::head::{self, Form};
use super::super::headers::remove_all;
use super::super::upload::Framing;
use crate::route::edit::Fields as Edits;

/// The fields of a head.
#[derive(Default)]
struct Fields {
    map: HeaderMap,
    buffer: Vec<u8>,
    /// The field that is being written, and where its value begins.
    open: Option<(HeaderName, usize)>,
}

/// A head, or an error if it cannot be said in HTTP/2.
pub(super) fn write(
    outbound: &Outbound<'_>,
    framing: Framing,
    secure: bool,
) -> Result<Request<()>, Error> {
    let mut request = Request::new(());
    let uri = uri(outbound, secure).ok_or(Kind::RequestTarget)?;
    *request.version_mut() = match uri.authority() {
        Some(_) => Version::HTTP_2,
        // The library lets a request of another version go without an authority.
        None => Version::HTTP_11,
    };
    *request.method_mut() = outbound.method.clone();
    *request.uri_mut() = uri;
    let fields = Fields {
        map: HeaderMap::with_capacity(outbound.headers.len() + 8),
        ..Fields::default()
    };
    *request.headers_mut() = head::fields(fields, outbound, framing).map;
    Ok(request)
}

/// An HTTP/1.0 client may have named no host.
fn uri(outbound: &Outbound<'_>, secure: bool) -> Option<Uri> {
    let target = Bytes::copy_from_slice(outbound.target.as_bytes());
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(target).ok()?);
    let host = head::host(outbound);
    if !host.is_empty() {
        parts.authority = Some(Authority::try_from(host).ok()?);
        parts.scheme = Some(if secure { Scheme::HTTPS } else { Scheme::HTTP });
    }
    Uri::from_parts(parts).ok()
}

// === impl Fields ===

impl Form for Fields {
    const JOINS_COOKIES: bool = false;

    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn open(&mut self, name: &'static str) {
        self.open = Some((HeaderName::from_static(name), self.buffer.len()));
    }

    fn close(&mut self) {
        let Some((name, from)) = self.open.take() else {
            return;
        };
        let value = self.buffer.get(from..).unwrap_or_default();
        // Whatever comes here was looked at, or was a value before.
        if let Ok(value) = HeaderValue::from_bytes(value) {
            self.map.append(name, value);
        }
    }

    fn pass(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.map.append(name.clone(), value.clone());
    }

    fn connection(&mut self, _: bool, trailers: bool) {
        if trailers {
            let value = HeaderValue::from_static("trailers");
            self.map.insert(header::TE, value);
        }
    }

    fn endless(&mut self) {}

    /// The client's fields of these names did not come so far.
    fn take_back(&mut self, _: usize, edits: &Edits) {
        remove_all(&mut self.map, |name| edits.replace(name));
    }
}
