//! Strings of which one is in everything that a regular expression matches.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::{ExtractKind, Extractor};

/// Each is a list of which one must be there: how a match starts, how it ends. Fewer if nothing
/// can be said.
pub(super) fn of(pattern: &str) -> Vec<Vec<Box<[u8]>>> {
    // As `regex::bytes` reads it.
    let Ok(hir) = ParserBuilder::new().utf8(false).build().parse(pattern) else {
        return Vec::new();
    };
    let kinds = [ExtractKind::Prefix, ExtractKind::Suffix];
    let lists = kinds.into_iter().filter_map(|kind| extract(&hir, kind));
    lists.collect()
}

fn extract(hir: &Hir, kind: ExtractKind) -> Option<Vec<Box<[u8]>>> {
    let found = Extractor::new().kind(kind).extract(hir);
    let texts = found.literals()?.iter();
    let mut texts: Vec<Box<[u8]>> = texts
        .map(|text| text.as_bytes().to_ascii_lowercase().into())
        .collect();
    texts.sort_unstable();
    texts.dedup();
    texts.iter().all(|text| !text.is_empty()).then_some(texts)
}
