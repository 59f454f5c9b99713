//! Fields that hold names and values: headers, cookies, query arguments and form fields.
//!
//! Cookies and arguments are parsed on demand, and stored after several lookups. The meaning of
//! names and values is not known here.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::ControlFlow;

use http::{HeaderMap, HeaderName};
use memchr::memchr;

use super::FactsView;
use super::getters::Bytes;
use crate::expr::position;

/// Up to this many headers, a linear search is faster than hashing.
const FEW_FIELDS: usize = 16;

/// This many lookups of single values search the text itself. Most requests need no more, and so no
/// memory for the parsed pairs.
const LOOKS: u8 = 8;

/// A collection of names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapSource {
    /// The request's headers.
    Headers,
    /// The response's headers.
    ResponseHeaders,
    /// The cookies.
    Cookies,
    /// The query arguments.
    Arguments,
    /// The fields of an urlencoded form in the body.
    Form,
}

/// All pairs of a request, stored after enough lookups.
#[derive(Debug)]
pub(super) struct ParsedPairs<T> {
    all: OnceCell<Vec<T>>,
    looks: Cell<u8>,
}

/// The parts of `text`, at least one.
pub(super) fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr(separator, text) else {
            return rest.take();
        };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

// === impl MapSource ===

impl MapSource {
    /// The `index`th value of `name`, or of all names. A negative index counts from the end.
    #[inline(never)]
    pub fn value<'a>(self, view: FactsView<'a, '_>, name: Option<&[u8]>, index: i32) -> Bytes<'a> {
        match (self, name, usize::try_from(index)) {
            (MapSource::Headers | MapSource::ResponseHeaders, Some(name), Ok(nth))
                if self.headers(view)?.len() <= FEW_FIELDS =>
            {
                let named = |(found, _): &(&HeaderName, _)| is_called(found, name);
                let (_, value) = self.headers(view)?.iter().filter(named).nth(nth)?;
                Some(Cow::Borrowed(value.as_bytes()))
            }
            (MapSource::Headers | MapSource::ResponseHeaders, Some(name), Ok(nth)) => {
                let values = self.headers(view)?.get_all(std::str::from_utf8(name).ok()?);
                let value = values.iter().nth(nth)?;
                Some(Cow::Borrowed(value.as_bytes()))
            }
            (MapSource::Cookies, Some(name), Ok(nth)) => view.request.cookie(name, nth),
            (MapSource::Arguments, Some(name), Ok(nth)) => view.request.argument(name, nth),
            (MapSource::Form, Some(name), Ok(nth)) => view.request.body()?.form_value(name, nth),
            _ => pick(index, |visit| {
                self.each_pair(view, name, &mut |_, v| visit(v))
            }),
        }
    }

    /// The `index`th name. A negative index counts from the end.
    #[inline(never)]
    pub fn name<'a>(self, view: FactsView<'a, '_>, index: i32) -> Bytes<'a> {
        pick(index, |visit| {
            self.each_pair(view, None, &mut |n, _| visit(n))
        })
    }

    /// Calls `visit` with the values of `name`, or with all values.
    pub fn each_value(
        self,
        view: FactsView<'_, '_>,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let _ = self.each_pair(view, name, &mut |_, value| visit(value));
    }

    /// Calls `visit` with all names, once for each value.
    pub fn each_name(
        self,
        view: FactsView<'_, '_>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let _ = match self {
            MapSource::Cookies => view.request.each_cookie_name(visit),
            MapSource::Arguments => view.request.each_argument_name(visit),
            _ => self.each_pair(view, None, &mut |name, _| visit(name)),
        };
    }

    fn each_pair<'a>(
        self,
        view: FactsView<'a, '_>,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            MapSource::Cookies => {
                let pairs = view.request.cookies().iter();
                wanted(pairs.map(|(n, v)| (*n, &**v)), name, visit)
            }
            MapSource::Arguments => {
                let pairs = view.request.arguments().iter();
                wanted(pairs.map(|(n, v)| (&**n, &**v)), name, visit)
            }
            MapSource::Form => {
                let pairs = view.request.form_fields().iter();
                wanted(pairs.map(|(n, v)| (&**n, &**v)), name, visit)
            }
            MapSource::Headers | MapSource::ResponseHeaders => match self.headers(view) {
                Some(headers) => each_header(headers, name, visit),
                None => ControlFlow::Continue(()),
            },
        }
    }

    fn headers<'a>(self, view: FactsView<'a, '_>) -> Option<&'a HeaderMap> {
        match self {
            MapSource::ResponseHeaders => Some(view.response?.headers),
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
    // If the bytes are not UTF-8, uses the empty string, which is never a header's name.
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

/// A callback for each value; it can end the iteration.
type Visit<'v, 'a> = &'v mut dyn FnMut(&'a [u8]) -> ControlFlow<()>;

fn pick<'a>(index: i32, each: impl for<'v> Fn(Visit<'v, 'a>) -> ControlFlow<()>) -> Bytes<'a> {
    let mut left = position(index, || Some(count(&each)))?;
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

// === impl ParsedPairs ===

impl<T> ParsedPairs<T> {
    /// All pairs, parsed on the first call.
    pub(super) fn all(&self, parse: impl FnOnce() -> Vec<T>) -> &[T] {
        self.all.get_or_init(parse)
    }

    /// All pairs for one lookup. `None` if a search in the text is cheaper.
    pub(super) fn for_lookup(&self, parse: impl FnOnce() -> Vec<T>) -> Option<&[T]> {
        let looks = self.looks.get();
        if looks < LOOKS {
            self.looks.set(looks + 1);
            return self.all.get().map(Vec::as_slice);
        }
        Some(self.all(parse))
    }
}

impl<T> Default for ParsedPairs<T> {
    fn default() -> Self {
        Self {
            all: OnceCell::new(),
            looks: Cell::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn splitting_agrees_with_the_standard_library(text in "[ab;]{0,12}") {
            let expected: Vec<_> = text.as_bytes().split(|byte| *byte == b';').collect();
            prop_assert_eq!(split(text.as_bytes(), b';').collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn all_pairs_are_cached_after_several_lookups() {
        let pairs = ParsedPairs::default();
        assert!((0..LOOKS).all(|_| pairs.for_lookup(|| vec![1]).is_none()));
        assert_eq!(pairs.for_lookup(|| vec![1]), Some(&[1][..]));
        assert_eq!(pairs.for_lookup(|| vec![2]), Some(&[1][..]));
        let pairs = ParsedPairs::default();
        pairs.all(|| vec![1]);
        assert_eq!(pairs.for_lookup(|| vec![2]), Some(&[1][..]));
    }
}
