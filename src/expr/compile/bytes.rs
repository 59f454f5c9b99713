//! Strings: getters, and tests that are specialised for the source of their string.

use std::borrow::Cow;
use std::ops::ControlFlow;

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memchr;
use memchr::memmem::Finder;
use regex::bytes::Regex;

use super::super::ScalarValue;
use super::super::regexes;
use super::super::replace::MAX_RESULT;
use super::super::term::{BytesTerm, BytesTest, CompiledTerm, StringSource};
use super::super::transform::TransformCall;
use super::context::MemoSlot;
use super::list::ListReader;
use super::{Check, GetBytes, value};

/// Compiles a test of a string.
pub(super) fn test(term: BytesTerm, test: BytesTest) -> Check {
    if let BytesTerm::Changed(case @ (TransformCall::Lower | TransformCall::Upper), inner) = &term
        && let Some(check) = folded(case, inner, &test)
    {
        return check;
    }
    match test {
        BytesTest::Eq(right) => on(term, move |left| *left == *right),
        BytesTest::Ne(right) => on(term, move |left| *left != *right),
        BytesTest::Order(order, right) => on(term, move |left| order.holds(left, &*right)),
        BytesTest::Starts(prefix) => on(term, move |left| left.starts_with(&prefix)),
        BytesTest::Ends(suffix) => on(term, move |left| left.ends_with(&suffix)),
        BytesTest::In(set) => on(term, move |left| set.contains(left)),
        BytesTest::Matches(regex) => matches(term, regex),
        BytesTest::Wildcard(pattern) => on(term, move |left| pattern.matches(left)),
        BytesTest::Contains(needle) => {
            let finder = Finder::new(&needle).into_owned();
            on(term, move |left| finder.find(left).is_some())
        }
    }
}

/// Runs `test` on the string of `term`, without an intermediate closure for plain fields.
pub(super) fn on(term: BytesTerm, test: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Check {
    match term {
        BytesTerm::Field(field) => {
            let spot = MemoSlot::of(field);
            Box::new(move |context| context.on_field(spot, &test))
        }
        BytesTerm::Element(StringSource::Field { field, name }, index) => {
            Box::new(move |context| {
                let value = context.facts.element(field, name.as_deref(), index);
                value.is_some_and(|value| test(&value))
            })
        }
        BytesTerm::Item => Box::new(move |context| test(context.item)),
        term => {
            let get = get(term);
            Box::new(move |context| get(context).is_some_and(|value| test(&value)))
        }
    }
}

/// Compiles a string.
pub(super) fn get(term: BytesTerm) -> GetBytes {
    match term {
        BytesTerm::Field(field) => Box::new(move |context| context.facts.bytes(field)),
        BytesTerm::Element(source, index) => {
            let list = ListReader::new(source);
            Box::new(move |context| list.element(context, index))
        }
        BytesTerm::Only { field, name } => Box::new(move |context| {
            let value = |index| context.facts.element(field, Some(&*name), index);
            value(0).filter(|_| value(1).is_none())
        }),
        BytesTerm::Item => Box::new(|context| Some(Cow::Borrowed(context.item))),
        BytesTerm::Literal(text) => Box::new(move |_| Some(Cow::Owned(text.to_vec()))),
        BytesTerm::Changed(change, inner) => {
            let get = get(*inner);
            Box::new(move |context| get(context).and_then(|value| change.apply(value)))
        }
        BytesTerm::Text(term) => text(*term),
        BytesTerm::Concat(terms) => concat(terms),
        BytesTerm::Join(source, each, separator) => join(source, *each, separator),
    }
}

/// Compiles `lower(x) eq "y"` and similar tests without a lower-case copy. `None` if the result could
/// differ: a literal that the changed string can never equal, or a test that reads more than the string.
fn folded(case: &TransformCall, inner: &BytesTerm, test: &BytesTest) -> Option<Check> {
    let kept = |text: &[u8]| match case {
        TransformCall::Lower => !text.iter().any(u8::is_ascii_uppercase),
        _ => !text.iter().any(u8::is_ascii_lowercase),
    };
    let inner = inner.clone();
    match test.clone() {
        BytesTest::Eq(right) if kept(&right) => {
            Some(on(inner, move |left| left.eq_ignore_ascii_case(&right)))
        }
        BytesTest::Starts(prefix) if kept(&prefix) => Some(on(inner, move |left| {
            left.get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(&prefix))
        })),
        BytesTest::Contains(needle) if kept(&needle) => {
            // A DFA of a long needle would take megabytes.
            let mut builder = AhoCorasick::builder();
            builder.kind(Some(AhoCorasickKind::ContiguousNFA));
            let finder = builder.ascii_case_insensitive(true).build([needle]);
            let finder = finder.ok()?;
            Some(on(inner, move |left| finder.is_match(left)))
        }
        BytesTest::In(set) => {
            let values = set.few()?.iter().filter(|value| kept(value));
            let values: Vec<_> = values.cloned().collect();
            let same = move |left: &[u8]| values.iter().any(|one| left.eq_ignore_ascii_case(one));
            Some(on(inner, same))
        }
        _ => None,
    }
}

/// Searches for a required byte first: a regex costs ten times as much. Otherwise searches for
/// required strings, because a regex does more work before it searches for them.
fn matches(term: BytesTerm, regex: Regex) -> Check {
    if let Some(byte) = regexes::rare_byte(regex.as_str()) {
        return on(term, move |text| {
            memchr(byte, text).is_some() && regex.is_match(text)
        });
    }
    match regexes::prefixes(regex.as_str()).and_then(Searcher::new) {
        Some(starts) => on(term, move |text| {
            let found = starts.find(text);
            found.is_some_and(|found| regex.is_match_at(text, found.start()))
        }),
        None => on(term, move |text| regex.is_match(text)),
    }
}

/// Compiles any value to its text.
pub(super) fn text(term: CompiledTerm) -> GetBytes {
    if let CompiledTerm::Bytes(term) = term {
        return get(term);
    }
    let get = value(term);
    Box::new(move |context| {
        get(context).map(|value| match value {
            ScalarValue::Bytes(bytes) => bytes,
            ScalarValue::Int(int) => Cow::Owned(int.to_string().into_bytes()),
            ScalarValue::Ip(ip) => Cow::Owned(ip.to_string().into_bytes()),
            ScalarValue::Bool(value) => {
                Cow::Borrowed(if value { b"true".as_slice() } else { b"false" })
            }
        })
    })
}

/// Missing parts are left out, as at Cloudflare. If all parts are missing, the result is missing.
fn concat(terms: Vec<CompiledTerm>) -> GetBytes {
    let parts: Vec<GetBytes> = terms.into_iter().map(text).collect();
    Box::new(move |context| {
        let mut there = parts.iter().filter_map(|part| part(context));
        let first = there.next()?;
        there.try_fold(first, |mut whole, part| {
            let fits = whole.len() + part.len() <= MAX_RESULT;
            whole.to_mut().extend_from_slice(&part);
            fits.then_some(whole)
        })
    })
}

/// Missing values are left out. A result that would be too long is missing: a client could produce
/// megabytes with ten thousand values and a separator.
fn join(source: StringSource, each: CompiledTerm, separator: Box<[u8]>) -> GetBytes {
    let (list, each) = (ListReader::new(source), text(each));
    Box::new(move |context| {
        let mut whole: Option<Vec<u8>> = None;
        let there = list.each(context, &mut |item| {
            if let Some(value) = each(&context.at(item)) {
                match &mut whole {
                    Some(whole) => {
                        whole.extend_from_slice(&separator);
                        whole.extend_from_slice(&value);
                    }
                    None => whole = Some(value.into_owned()),
                }
            }
            if whole.as_ref().is_some_and(|whole| whole.len() > MAX_RESULT) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let whole = whole.unwrap_or_default();
        (there && whole.len() <= MAX_RESULT).then_some(Cow::Owned(whole))
    })
}
