//! `wildcard` patterns, compiled once.
//!
//! A pattern matches the whole value: `*` is any sequence, `\*` a star, `\\` a backslash. Each
//! literal part is searched once, leftmost first, so a match takes linear time.

use std::borrow::Cow;

use memchr::memmem::Finder;

/// A prepared pattern.
#[derive(Clone, Debug)]
pub(super) struct WildcardPattern {
    /// The literal before the first star; the whole pattern if there is none.
    head: Box<[u8]>,
    /// The pattern from the first star on. `None` if there is no star.
    rest: Option<WildcardRest>,
    ignore_case: bool,
}

#[derive(Clone, Debug)]
struct WildcardRest {
    /// The literals between two stars; in lower case if the pattern ignores case.
    middle: Box<[Finder<'static>]>,
    /// The literal after the last star.
    tail: Box<[u8]>,
}

// === impl WildcardPattern ===

impl WildcardPattern {
    /// Compiles `pattern`; the error is the reason why it is invalid.
    pub(super) fn new(pattern: &[u8], ignore_case: bool) -> Result<WildcardPattern, &'static str> {
        let mut parts = split(pattern)?.into_iter();
        let head = parts.next().unwrap_or_default().into();
        let tail = parts.next_back();
        let finder = |mut part: Vec<u8>| {
            if ignore_case {
                part.make_ascii_lowercase();
            }
            Finder::new(&part).into_owned()
        };
        let middle = parts.filter(|part| !part.is_empty()).map(finder);
        let rest = tail.map(|tail| WildcardRest {
            middle: middle.collect(),
            tail: tail.into(),
        });
        Ok(WildcardPattern {
            head,
            rest,
            ignore_case,
        })
    }

    /// The number of stars; adjacent stars count as one.
    pub(super) fn stars(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.middle.len() + 1)
    }

    /// The literal before the first star.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The longest literal between two stars; empty if there is none.
    pub(super) fn middle(&self) -> &[u8] {
        let parts = self.rest.iter().flat_map(|rest| &rest.middle);
        let longest = parts.map(Finder::needle).max_by_key(|part| part.len());
        longest.unwrap_or_default()
    }

    /// The literal after the last star.
    pub(super) fn tail(&self) -> &[u8] {
        self.rest.as_ref().map_or(&[], |rest| &rest.tail)
    }

    /// Whether the whole of `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.walk(text, |_| {}).is_some()
    }

    /// The text of each star, as short as possible, in order. `None` if there is no match.
    pub(super) fn captures<'t>(&self, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        let mut taken = Vec::with_capacity(self.stars());
        self.walk(text, |part| taken.push(part))?;
        Some(taken)
    }

    /// Compares both ends, then finds each middle literal after the previous one. Calls `taken`
    /// with the text of each star. `None` if there is no match.
    fn walk<'t>(&self, text: &'t [u8], mut taken: impl FnMut(&'t [u8])) -> Option<()> {
        let Some(rest) = &self.rest else {
            return self.same(text, &self.head).then_some(());
        };
        let (head, text) = text.split_at_checked(self.head.len())?;
        let (text, tail) = text.split_at_checked(text.len().checked_sub(rest.tail.len())?)?;
        if !self.same(head, &self.head) || !self.same(tail, &rest.tail) {
            return None;
        }
        let searched = if self.ignore_case && !rest.middle.is_empty() {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
        let mut at = 0;
        for part in &rest.middle {
            let found = at + part.find(searched.get(at..)?)?;
            taken(text.get(at..found)?);
            at = found + part.needle().len();
        }
        taken(text.get(at..)?);
        Some(())
    }

    fn same(&self, text: &[u8], part: &[u8]) -> bool {
        if self.ignore_case {
            text.eq_ignore_ascii_case(part)
        } else {
            text == part
        }
    }
}

/// Splits a pattern at its stars and decodes the escapes.
fn split(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' => parts.push(std::mem::take(&mut part)),
            b'\\' => match bytes.next() {
                Some(next @ (b'*' | b'\\')) => part.push(next),
                _ => return Err("in a wildcard, a backslash must be followed by `*` or `\\`"),
            },
            byte => part.push(byte),
        }
    }
    parts.push(part);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_needle_is_found(
            needle in "[abA]{1,3}|[ab]{60,70}",
            (before, after) in ("[abA.]{0,9}", "[abA.]{0,9}"),
            there in any::<bool>(),
            ignore_case in any::<bool>(),
        ) {
            let upper = needle.to_ascii_uppercase();
            let text = format!("{before}{}{after}", if there { &upper } else { "" });
            let pattern = WildcardPattern::new(format!("*{needle}*").as_bytes(), ignore_case).unwrap();
            let expected = if ignore_case { text.to_ascii_lowercase().find(&needle.to_ascii_lowercase()) } else { text.find(&needle) };
            let expected = expected.map(|at| vec![
                &text.as_bytes()[..at],
                &text.as_bytes()[at + needle.len()..],
            ]);
            prop_assert_eq!(pattern.matches(text.as_bytes()), expected.is_some());
            prop_assert_eq!(pattern.captures(text.as_bytes()), expected);
        }
    }
}
