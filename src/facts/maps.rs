//! Fields that hold names and values: headers, cookies and query arguments.
//!
//! Cookies and arguments are split when a rule first reads one. What a name or a value means is not
//! known here.

use std::borrow::Cow;
use std::ops::ControlFlow;

use http::HeaderMap;
use memchr::memchr;

use super::View;
use super::get::Bytes;
use crate::expr::position;

/// A collection of names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The parts of `text`, of which there is at least one.
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

// === impl Source ===

impl Source {
    /// The `index`th value of `name`, or of all names; negative counts from the end.
    #[inline(never)]
    pub fn value<'a>(self, view: View<'a, '_>, name: Option<&[u8]>, index: i32) -> Bytes<'a> {
        pick(index, |visit| {
            self.each_pair(view, name, &mut |_, v| visit(v))
        })
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
        let _ = self.each_pair(view, None, &mut |name, _| visit(name));
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
            Source::ResponseHeaders => Some(view.response?.headers),
            _ => Some(view.request.headers),
        }
    }
}

/// Visits the fields called `name`, or all. Few enough come that a look at each is faster than a hash.
fn each_header<'a>(
    headers: &'a HeaderMap,
    name: Option<&[u8]>,
    visit: &mut dyn FnMut(&'a [u8], &'a [u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let fields = headers.iter().map(|(n, v)| (n.as_str().as_bytes(), v));
    let mut named = fields.filter(|(n, _)| name.is_none_or(|name| n.eq_ignore_ascii_case(name)));
    named.try_for_each(|(n, value)| visit(n, value.as_bytes()))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_splits_as_the_standard_library_does(text in "[ab;]{0,12}") {
            let expected: Vec<_> = text.as_bytes().split(|byte| *byte == b';').collect();
            prop_assert_eq!(split(text.as_bytes(), b';').collect::<Vec<_>>(), expected);
        }
    }
}
