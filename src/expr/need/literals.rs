//! Strings of which one is in everything that a regular expression matches.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Literal};
use regex_syntax::hir::{Hir, Look};

/// Each is a list of which one must be there: how a match starts, how it ends. Fewer if nothing
/// can be said.
pub(in crate::expr) fn of(pattern: &str) -> Vec<Vec<Box<[u8]>>> {
    let Some(hir) = parse(pattern) else {
        return Vec::new();
    };
    let kinds = [ExtractKind::Prefix, ExtractKind::Suffix];
    let lists = kinds.into_iter().filter_map(|kind| extract(&hir, kind));
    lists.collect()
}

/// A byte that is in everything that a regular expression matches, and not in most other texts.
pub(in crate::expr) fn byte(pattern: &str) -> Option<u8> {
    let rare = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'/' | b' ' | b'-');
    of(pattern).iter().find_map(|any| {
        let (first, others) = any.split_first()?;
        let everywhere = |byte: &u8| others.iter().all(|text| text.contains(byte));
        let mut common = first.iter().filter(|byte| rare(byte) && everywhere(byte));
        common.next().copied()
    })
}

/// How everything begins that a regular expression matches, letter for letter, where there are
/// several ways and a search for them says much: a match may be anywhere, and they are no mere
/// letters.
pub(in crate::expr) fn starts(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let hir = parse(pattern)?;
    if hir.properties().look_set_prefix().contains(Look::Start) {
        return None;
    }
    let mut found = Extractor::new().extract(&hir);
    found.optimize_for_prefix_by_preference();
    let texts = found.literals()?;
    let telling = texts.len() > 1 && texts.iter().all(|text| text.len() > 1);
    telling.then(|| texts.iter().cloned().map(Literal::into_bytes).collect())
}

/// As `regex::bytes` reads it.
fn parse(pattern: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new().utf8(false).build();
    parser.parse(pattern).ok()
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

#[cfg(test)]
mod tests {
    use super::{byte, starts};

    #[test]
    fn a_byte_is_in_every_match() {
        assert_eq!(byte(r"/\.(git|env)"), Some(b'.'));
        assert_eq!(byte(r"(?i)\.php$"), Some(b'.'));
        assert_eq!(byte(r"^/a/[0-9]+\.json"), Some(b'.'));
        assert_eq!(byte(r"\.a|b"), None);
        assert_eq!(byte(r"(\.a)?"), None);
        assert_eq!(byte("bot"), None);
        assert_eq!(byte("a/b"), None);
        assert_eq!(byte(r"wp_login|wp_admin"), Some(b'_'));
    }

    #[test]
    fn every_match_begins_with_one_of_them() {
        let shown = |pattern| {
            let texts = starts(pattern)?;
            let text = |bytes| String::from_utf8(bytes).unwrap();
            Some(texts.into_iter().map(text).collect::<Vec<_>>().join(" "))
        };
        let is = |pattern, expected: &str| assert_eq!(shown(pattern).as_deref(), Some(expected));
        is("curl|wget/1", "curl wget/1");
        is("(?i)go", "GO Go gO go");
        is("(curl|wget)[0-9]+$", "curl wget");
        for none in [
            "curl",
            "a|b",
            "x?",
            "^(curl|wget)",
            "[a-z]+bot",
            "(curl|wget)?",
        ] {
            assert_eq!(shown(none), None, "{none}");
        }
    }
}
