//! Substring search in linear time, with or without ASCII case, prepared once.

use std::ops::Range;

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::room::MEMORY;

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
