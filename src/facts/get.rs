//! The getters behind the field table. Each gives borrowed data where there is some to borrow.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::ControlFlow;

use http::header::{CONTENT_TYPE, COOKIE, HeaderName, REFERER};
use http::{HeaderMap, HeaderValue, Version};

mod uri;

use super::{ResponseFacts, TlsFacts, View};

pub use uri::{extension, full_uri, path, raw_extension, raw_full_uri, raw_uri, uri};

/// Among so few fields, one is found faster by a look at each than by its hash.
const FEW_FIELDS: usize = 16;

/// What a string getter gives.
pub type Bytes<'a> = Option<Cow<'a, [u8]>>;

/// A collection of names and values.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The request's headers.
    Headers,
    /// The response's headers.
    ResponseHeaders,
    /// The cookies.
    Cookies,
    /// The query arguments.
    Arguments,
}

pub fn method<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.head.method.as_str())
}

pub fn version<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(version_name(view.request.head.version))
}

/// How rules and logs write a version.
pub fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// Empty where there is none, as Cloudflare has it.
pub fn query<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.head.query.unwrap_or_default())
}

pub fn raw_path<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.head.raw_path)
}

pub fn host<'a>(view: View<'a, '_>) -> Bytes<'a> {
    let host = &*view.request.head.host;
    (!host.is_empty()).then_some(Cow::Borrowed(host.as_bytes()))
}

pub fn referer<'a>(view: View<'a, '_>) -> Bytes<'a> {
    first(view.request.headers, &REFERER)
}

pub fn user_agent<'a>(view: View<'a, '_>) -> Bytes<'a> {
    Some(Cow::Borrowed(view.request.head.agent?.as_bytes()))
}

pub fn cookie<'a>(view: View<'a, '_>) -> Bytes<'a> {
    joined(view.request.headers, &COOKIE, b"; ")
}

pub fn x_forwarded_for<'a>(view: View<'a, '_>) -> Bytes<'a> {
    const NAME: HeaderName = HeaderName::from_static("x-forwarded-for");
    joined(view.request.headers, &NAME, b", ")
}

pub fn timestamp(view: View<'_, '_>) -> Option<i64> {
    number(view.request.now.as_secs())
}

/// The part of the second alone, as Cloudflare has it.
pub fn timestamp_msec(view: View<'_, '_>) -> Option<i64> {
    number(view.request.now.as_millis() % 1000)
}

pub fn body_size(view: View<'_, '_>) -> Option<i64> {
    number(view.request.head.body_size()?)
}

pub fn route<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.route?)
}

pub fn id<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(view.request.id)
}

pub fn client(view: View<'_, '_>) -> Option<IpAddr> {
    Some(view.request.client)
}

pub fn peer(view: View<'_, '_>) -> Option<IpAddr> {
    Some(view.request.connection.peer.ip().to_canonical())
}

pub fn asn(view: View<'_, '_>) -> Option<i64> {
    view.request.asn().map(i64::from)
}

pub fn country<'a>(view: View<'a, '_>) -> Bytes<'a> {
    Some(Cow::Borrowed(view.request.country()?.as_slice()))
}

pub fn continent<'a>(view: View<'a, '_>) -> Bytes<'a> {
    Some(Cow::Borrowed(view.request.continent()?.as_slice()))
}

pub fn ssl(view: View<'_, '_>) -> Option<bool> {
    Some(view.request.connection.tls.is_some())
}

pub fn tls_version<'a>(view: View<'a, '_>) -> Bytes<'a> {
    known(tls(view)?.version)
}

pub fn tls_cipher<'a>(view: View<'a, '_>) -> Bytes<'a> {
    known(tls(view)?.cipher)
}

pub fn sni<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(tls(view)?.sni.as_deref()?)
}

pub fn alpn<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(tls(view)?.alpn?)
}

pub fn ja3<'a>(view: View<'a, '_>) -> Bytes<'a> {
    known(&tls(view)?.hello.ja3)
}

pub fn ja3_raw<'a>(view: View<'a, '_>) -> Bytes<'a> {
    known(&tls(view)?.hello.ja3_raw)
}

pub fn ja4<'a>(view: View<'a, '_>) -> Bytes<'a> {
    known(&tls(view)?.hello.ja4)
}

pub fn hello_length(view: View<'_, '_>) -> Option<i64> {
    i64::try_from(tls(view)?.hello.length).ok()
}

pub fn status(view: View<'_, '_>) -> Option<i64> {
    Some(view.response?.status.into())
}

/// In lower case, without parameters.
pub fn media_type<'a>(view: View<'a, '_>) -> Bytes<'a> {
    let value = view.response?.headers.get(CONTENT_TYPE)?.as_bytes();
    let media_type = value.split(|byte| *byte == b';').next()?;
    lower(media_type.trim_ascii())
}

pub fn duration(view: View<'_, '_>) -> Option<i64> {
    number(view.response?.duration_ms)
}

pub fn response_size(view: View<'_, '_>) -> Option<i64> {
    number(view.response?.body_size?)
}

pub fn upstream<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(response(view)?.upstream?)
}

pub fn upstream_error<'a>(view: View<'a, '_>) -> Bytes<'a> {
    text(response(view)?.upstream_error?)
}

// === impl Source ===

impl Source {
    /// The `index`th value of `name`, or of all names; negative counts from the end.
    #[inline(never)]
    pub fn value<'a>(self, view: View<'a, '_>, name: Option<&[u8]>, index: i32) -> Bytes<'a> {
        match (self, name, usize::try_from(index)) {
            (Source::Headers | Source::ResponseHeaders, Some(name), Ok(nth))
                if self.headers(view)?.len() <= FEW_FIELDS =>
            {
                let named = |(found, _): &(&HeaderName, _)| is_called(found, name);
                let (_, value) = self.headers(view)?.iter().filter(named).nth(nth)?;
                Some(Cow::Borrowed(value.as_bytes()))
            }
            (Source::Headers | Source::ResponseHeaders, Some(name), nth) => {
                let values = self.headers(view)?.get_all(std::str::from_utf8(name).ok()?);
                let mut values = values.iter();
                let value = match nth {
                    Ok(nth) => values.nth(nth),
                    Err(_) => values.nth_back(from_end(index)),
                };
                Some(Cow::Borrowed(value?.as_bytes()))
            }
            (Source::Cookies, Some(name), Ok(nth)) => view.request.cookie(name, nth),
            (Source::Arguments, Some(name), Ok(nth)) => view.request.argument(name, nth),
            _ => pick(index, |visit| {
                self.each_pair(view, name, &mut |_, v| visit(v))
            }),
        }
    }

    /// The `index`th name; negative counts from the end.
    #[inline(never)]
    pub fn name<'a>(self, view: View<'a, '_>, index: i32) -> Bytes<'a> {
        pick(index, |visit| {
            self.each_pair(view, None, &mut |n, _| visit(n))
        })
    }

    /// Visits the values of `name`, or all.
    pub fn each_value(
        self,
        view: View<'_, '_>,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let _ = self.each_pair(view, name, &mut |_, value| visit(value));
    }

    /// Visits all names, once for each value.
    pub fn each_name(self, view: View<'_, '_>, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) {
        let _ = match self {
            Source::Cookies => view.request.each_cookie_name(visit),
            Source::Arguments => view.request.each_argument_name(visit),
            _ => self.each_pair(view, None, &mut |name, _| visit(name)),
        };
    }

    fn each_pair<'a>(
        self,
        view: View<'a, '_>,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Source::Cookies => {
                let pairs = view.request.cookies().iter();
                wanted(pairs.map(|(n, v)| (*n, &**v)), name, visit)
            }
            Source::Arguments => {
                let pairs = view.request.arguments().iter();
                wanted(pairs.map(|(n, v)| (&**n, &**v)), name, visit)
            }
            Source::Headers | Source::ResponseHeaders => match self.headers(view) {
                Some(headers) => each_header(headers, name, visit),
                None => ControlFlow::Continue(()),
            },
        }
    }

    fn headers<'a>(self, view: View<'a, '_>) -> Option<&'a HeaderMap> {
        match self {
            Source::ResponseHeaders => Some(response(view)?.headers),
            _ => Some(view.request.headers),
        }
    }
}

fn is_called(header: &HeaderName, name: &[u8]) -> bool {
    header.as_str().as_bytes().eq_ignore_ascii_case(name)
}

fn each_header<'a>(
    headers: &'a HeaderMap,
    name: Option<&[u8]>,
    visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let pairs = headers.iter();
    let Some(name) = name else {
        let pairs = pairs.map(|(n, v)| (n.as_str().as_bytes(), v.as_bytes()));
        return wanted(pairs, None, visit);
    };
    // Not a header's name: the empty string, which is no header's name either.
    let name = std::str::from_utf8(name).unwrap_or_default();
    let values = headers.get_all(name).iter();
    wanted(values.map(|v| (&[][..], v.as_bytes())), None, visit)
}

fn wanted<'a>(
    mut pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: Option<&[u8]>,
    visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    pairs.try_for_each(|(n, value)| match name {
        Some(name) if name != n => ControlFlow::Continue(()),
        _ => visit(n, value),
    })
}

/// What a visitor is shown.
type Visit<'v, 'a> = &'v mut dyn FnMut(&'a [u8]) -> ControlFlow<()>;

fn pick<'a>(index: i32, each: impl for<'v> Fn(Visit<'v, 'a>) -> ControlFlow<()>) -> Bytes<'a> {
    let mut left = match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => count(&each).checked_sub(from_end(index) + 1)?,
    };
    let mut found = None;
    let _ = each(&mut |value| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            ControlFlow::Continue(())
        }
        None => {
            found = Some(Cow::Borrowed(value));
            ControlFlow::Break(())
        }
    });
    found
}

fn count<'a>(each: &impl for<'v> Fn(Visit<'v, 'a>) -> ControlFlow<()>) -> usize {
    let mut count = 0;
    let _ = each(&mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    count
}

/// How many come after the one meant by a negative index.
fn from_end(index: i32) -> usize {
    usize::try_from(index.unsigned_abs()).map_or(usize::MAX - 1, |n| n.saturating_sub(1))
}

fn response<'a>(view: View<'a, '_>) -> Option<&'a ResponseFacts<'a>> {
    view.response
}

fn tls<'a>(view: View<'a, '_>) -> Option<&'a TlsFacts> {
    view.request.connection.tls.as_ref()
}

fn text(text: &str) -> Bytes<'_> {
    Some(Cow::Borrowed(text.as_bytes()))
}

/// An empty value was not seen.
fn known(value: &str) -> Bytes<'_> {
    (!value.is_empty()).then_some(Cow::Borrowed(value.as_bytes()))
}

fn lower(bytes: &[u8]) -> Bytes<'_> {
    Some(match bytes.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(bytes.to_ascii_lowercase()),
        false => Cow::Borrowed(bytes),
    })
}

fn number(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}

fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Bytes<'a> {
    Some(Cow::Borrowed(headers.get(name)?.as_bytes()))
}

fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName, separator: &[u8]) -> Bytes<'a> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |mut all, line| {
        all.to_mut().extend_from_slice(separator);
        all.to_mut().extend_from_slice(line);
        all
    }))
}
