//! Substring search in linear time, with or without ASCII case, prepared once.

use regex::bytes::{Regex, RegexBuilder};

use super::room::MEMORY;

/// A prepared needle.
#[derive(Clone, Debug)]
pub(super) struct Finder(Regex);

// === impl Finder ===

impl Finder {
    /// Prepares `needle`; `None` if it is beyond all bounds.
    // The regex crate turns a pure literal into a vectorised two-way search.
    pub(super) fn new(needle: &[u8], ignore_case: bool) -> Option<Finder> {
        let pattern: String = needle.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let mut builder = RegexBuilder::new(&pattern);
        builder
            .unicode(false)
            .case_insensitive(ignore_case)
            .dfa_size_limit(MEMORY)
            .build()
            .ok()
            .map(Finder)
    }

    /// Whether the needle is anywhere in `text`.
    #[inline]
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// What stands before and after the first needle in `text`.
    pub(super) fn around<'t>(&self, text: &'t [u8]) -> Option<(&'t [u8], &'t [u8])> {
        let found = self.0.find(text)?;
        Some((text.get(..found.start())?, text.get(found.end()..)?))
    }
}
