//! Searches that are prepared once: for a substring, with or without ASCII case, and for a
//! `wildcard` pattern. All take linear time.
//!
//! A wildcard pattern stands for the whole value, `*` for any sequence, `\*` for a star, `\\` for a
//! backslash. Each literal part is searched once, leftmost first.

use std::ops::Range;

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::regexes::MEMORY;

/// A prepared pattern.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    /// Before the first star; the whole pattern if there is none.
    head: Box<[u8]>,
    /// From the first star on.
    rest: Option<Rest>,
    ignore_case: bool,
}

#[derive(Clone, Debug)]
struct Rest {
    /// Between two stars each.
    middle: Box<[Finder]>,
    /// The longest of them.
    longest: Box<[u8]>,
    /// After the last star.
    tail: Box<[u8]>,
}

// === impl Wildcard ===

impl Wildcard {
    /// Prepares `pattern`; the error is the reason why it cannot be one.
    pub(super) fn new(pattern: &[u8], ignore_case: bool) -> Result<Wildcard, &'static str> {
        let mut parts = split(pattern)?.into_iter();
        let head = parts.next().unwrap_or_default().into();
        let tail = parts.next_back();
        let middle: Vec<Vec<u8>> = parts.filter(|part| !part.is_empty()).collect();
        let longest = middle.iter().max_by_key(|part| part.len()).cloned();
        let finder = |part: &Vec<u8>| Finder::new(part, ignore_case);
        let rest = tail.map(|tail| Rest {
            middle: middle.iter().map(finder).collect(),
            longest: longest.unwrap_or_default().into(),
            tail: tail.into(),
        });
        Ok(Wildcard {
            head,
            rest,
            ignore_case,
        })
    }

    /// Whether upper and lower case are the same to it.
    pub(super) fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// How many stars it has; two in a row are one.
    pub(super) fn stars(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.middle.len() + 1)
    }

    /// Whether it has no star.
    pub(super) fn is_plain(&self) -> bool {
        self.rest.is_none()
    }

    /// What stands before the first star.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The longest part between two stars; empty if there is none.
    pub(super) fn middle(&self) -> &[u8] {
        self.rest.as_ref().map_or(&[], |rest| &rest.longest)
    }

    /// What stands after the last star.
    pub(super) fn tail(&self) -> &[u8] {
        self.rest.as_ref().map_or(&[], |rest| &rest.tail)
    }

    /// Whether the whole of `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        match &self.rest {
            None => self.same(text, &self.head),
            Some(rest) => self.walk(text, rest, |_| {}).is_some(),
        }
    }

    /// What each star took, as little as it can, the first one first; `None`: no match.
    pub(super) fn captures<'t>(&self, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        let Some(rest) = &self.rest else {
            return self.same(text, &self.head).then(Vec::new);
        };
        let mut taken = Vec::with_capacity(rest.middle.len() + 1);
        let last = self.walk(text, rest, |part| taken.push(part))?;
        taken.push(last);
        Some(taken)
    }

    /// Takes off both ends, then each middle part at its first place; what is left is the last
    /// star's.
    fn walk<'t>(
        &self,
        text: &'t [u8],
        rest: &Rest,
        mut taken: impl FnMut(&'t [u8]),
    ) -> Option<&'t [u8]> {
        let (head, text) = text.split_at_checked(self.head.len())?;
        let (middle, tail) = text.split_at_checked(text.len().checked_sub(rest.tail.len())?)?;
        if !self.same(head, &self.head) || !self.same(tail, &rest.tail) {
            return None;
        }
        rest.middle.iter().try_fold(middle, |text, part| {
            let (before, after) = part.around(text)?;
            taken(before);
            Some(after)
        })
    }

    fn same(&self, text: &[u8], part: &[u8]) -> bool {
        match self.ignore_case {
            true => text.eq_ignore_ascii_case(part),
            false => text == part,
        }
    }
}

/// The literal parts between the stars, escapes undone.
fn split(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => parts.push(std::mem::take(&mut part)),
            b'\\' => match bytes.next() {
                Some(next @ (b'*' | b'\\')) => part.push(next),
                _ => return Err("a backslash stands only before `*` or `\\` in a wildcard"),
            },
            byte => part.push(byte),
        }
    }
    parts.push(part);
    Ok(parts)
}

/// A prepared needle.
#[derive(Clone, Debug)]
pub(super) enum Finder {
    /// With case.
    Exact(memmem::Finder<'static>),
    /// Without case: fast on what clients send, and needs no copy.
    Folded(Regex),
    /// Without case, in a lowered copy. A regex for a long needle has too many states to remember.
    Lowered(memmem::Finder<'static>),
}

/// The longest needle that is worth a regex.
const SHORT: usize = 64;

// === impl Finder ===

impl Finder {
    /// Prepares `needle`.
    pub(super) fn new(needle: &[u8], ignore_case: bool) -> Finder {
        if !ignore_case {
            return Finder::Exact(memmem::Finder::new(needle).into_owned());
        }
        match folded(needle) {
            Some(regex) => Finder::Folded(regex),
            None => {
                let lower = needle.to_ascii_lowercase();
                Finder::Lowered(memmem::Finder::new(&lower).into_owned())
            }
        }
    }

    /// Whether the needle is anywhere in `text`.
    #[inline]
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        match self {
            Finder::Exact(finder) => finder.find(text).is_some(),
            Finder::Folded(regex) => regex.is_match(text),
            Finder::Lowered(finder) => finder.find(&text.to_ascii_lowercase()).is_some(),
        }
    }

    /// What stands before and after the first needle in `text`.
    pub(super) fn around<'t>(&self, text: &'t [u8]) -> Option<(&'t [u8], &'t [u8])> {
        let found = self.find(text)?;
        Some((text.get(..found.start)?, text.get(found.end..)?))
    }

    fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        let (at, finder) = match self {
            Finder::Exact(finder) => (finder.find(text)?, finder),
            Finder::Folded(regex) => return Some(regex.find(text)?.range()),
            Finder::Lowered(finder) => (finder.find(&text.to_ascii_lowercase())?, finder),
        };
        Some(at..at + finder.needle().len())
    }
}

fn folded(needle: &[u8]) -> Option<Regex> {
    if needle.len() > SHORT {
        return None;
    }
    let pattern: String = needle.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    let mut builder = RegexBuilder::new(&pattern);
    builder.unicode(false).case_insensitive(true);
    builder.dfa_size_limit(MEMORY).build().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_needle_is_found(
            needle in "[abA]{0,3}|[ab]{60,70}",
            (before, after) in ("[abA.]{0,9}", "[abA.]{0,9}"),
            there in any::<bool>(),
            ignore_case in any::<bool>(),
        ) {
            let upper = needle.to_ascii_uppercase();
            let text = format!("{before}{}{after}", if there { &upper } else { "" });
            let finder = Finder::new(needle.as_bytes(), ignore_case);
            let found = finder.around(text.as_bytes()).map(|(before, after)| (before.len(), after.len()));
            let expected = match ignore_case {
                true => text.to_ascii_lowercase().find(&needle.to_ascii_lowercase()),
                false => text.find(&needle),
            };
            let expected = expected.map(|at| (at, text.len() - at - needle.len()));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(finder.is_in(text.as_bytes()), expected.is_some());
        }
    }
}
