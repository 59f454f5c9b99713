//! Lists of strings: the values of a field, or the parts of a string.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::super::FieldId;
use super::super::term::StringSource;
use super::{EvalContext, GetBytes, bytes};

/// A compiled list.
pub(super) enum ListReader {
    Field {
        field: FieldId,
        name: Option<Box<[u8]>>,
    },
    Split {
        text: GetBytes,
        separator: Box<[u8]>,
        limit: usize,
    },
    Chain(Vec<(ListReader, GetBytes)>),
}

type Visit<'v> = &'v mut dyn FnMut(&[u8]) -> ControlFlow<()>;

// === impl ListReader ===

impl ListReader {
    pub(super) fn new(source: StringSource) -> ListReader {
        match source {
            StringSource::Field { field, name } => ListReader::Field { field, name },
            StringSource::Split {
                text,
                separator,
                limit,
            } => ListReader::Split {
                text: bytes::get(*text),
                separator,
                limit,
            },
            StringSource::Chain(links) => ListReader::Chain(
                links
                    .into_iter()
                    .map(|(source, each)| (ListReader::new(source), bytes::text(each)))
                    .collect(),
            ),
        }
    }

    /// Calls `visit` with the values in order until it breaks. Returns `false` if the list is
    /// missing: the named entry or the string does not exist.
    pub(super) fn each(&self, context: &EvalContext<'_>, visit: Visit<'_>) -> bool {
        match self {
            ListReader::Field { field, name } => {
                let mut some = name.is_none();
                context.facts.each(*field, name.as_deref(), &mut |item| {
                    some = true;
                    visit(item)
                });
                some
            }
            ListReader::Split { text, .. } => {
                let Some(text) = text(context) else {
                    return false;
                };
                let _ = self.parts(&text).try_for_each(visit);
                true
            }
            ListReader::Chain(links) => chain(links, context, visit),
        }
    }

    /// The `index`th value; a negative index counts from the end. `None` if it is out of range.
    pub(super) fn element<'a>(
        &self,
        context: &EvalContext<'a>,
        index: i32,
    ) -> Option<Cow<'a, [u8]>> {
        match self {
            ListReader::Field { field, name } => {
                context.facts.element(*field, name.as_deref(), index)
            }
            ListReader::Split { text, .. } => match text(context)? {
                Cow::Borrowed(text) => self.part(text, index).map(Cow::Borrowed),
                Cow::Owned(text) => self
                    .part(&text, index)
                    .map(|part| Cow::Owned(part.to_vec())),
            },
            ListReader::Chain(_) => self.nth(context, index).map(Cow::Owned),
        }
    }

    fn nth(&self, context: &EvalContext<'_>, index: i32) -> Option<Vec<u8>> {
        let count = || usize::try_from(self.count(context)?).ok();
        let mut left = position(index, count)?;
        let mut found = None;
        self.each(context, &mut |item| match left.checked_sub(1) {
            Some(less) => {
                left = less;
                ControlFlow::Continue(())
            }
            None => {
                found = Some(item.to_vec());
                ControlFlow::Break(())
            }
        });
        found
    }

    /// The number of values. `None` if the list is missing.
    pub(super) fn count(&self, context: &EvalContext<'_>) -> Option<i64> {
        let mut count = 0;
        let there = self.each(context, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        there.then_some(count)
    }

    fn part<'t>(&self, text: &'t [u8], index: i32) -> Option<&'t [u8]> {
        let at = position(index, || Some(self.parts(text).count()))?;
        self.parts(text).nth(at)
    }

    fn parts<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        let (separator, limit) = match self {
            ListReader::Split {
                separator, limit, ..
            } => (&**separator, *limit),
            ListReader::Field { .. } | ListReader::Chain(_) => (&b""[..], 0),
        };
        let mut rest = Some(text).filter(|_| limit > 0);
        let mut left = limit;
        std::iter::from_fn(move || {
            let text = rest?;
            left = left.saturating_sub(1);
            let found = match left {
                0 => None,
                _ => memchr::memmem::find(text, separator),
            };
            let part = found.and_then(|at| text.split_at_checked(at));
            rest = part.and_then(|(_, after)| after.get(separator.len()..));
            Some(part.map_or(text, |(before, _)| before))
        })
    }
}

/// The position of `index` among `count` values; a negative index counts from the end. `None` if it
/// is out of range.
pub fn position(index: i32, count: impl FnOnce() -> Option<usize>) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => count()?.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// Calls `visit` with the values of all lists in order. A missing list has no values; the result is
/// missing only if all lists are.
fn chain(links: &[(ListReader, GetBytes)], context: &EvalContext<'_>, visit: Visit<'_>) -> bool {
    let (mut there, mut flow) = (false, ControlFlow::Continue(()));
    for (list, value) in links {
        there |= list.each(context, &mut |item| {
            if let Some(value) = value(&context.at(item)) {
                flow = visit(&value);
            }
            flow
        });
        if flow.is_break() {
            break;
        }
    }
    there
}
