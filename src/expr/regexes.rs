//! Regexes: a budget for the memory and time of all regexes of an expression, the position of a
//! syntax error, and literals that every match contains.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Literal};
use regex_syntax::hir::{Hir, HirKind, Look};

use super::lex::Span;

/// The compiled size of all regexes of an expression, at most, in bytes.
const TOTAL: usize = 4 << 20;
/// The sizes that a regex can be charged: the smallest that it fits into. The last is the maximum.
const SIZES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// The cache of a regex's lazy DFA, in bytes per thread that uses it. A client can fill it; with
/// the default of 2 MiB, a few hundred rules would take gigabytes.
const MEMORY: usize = 256 << 10;
/// The most characters that counted repetitions may add to those written: about as many as fit into
/// an expression. If a client's text matches all copies at once, each byte costs a step per copy;
/// ten thousand copies took seconds for one header of 32 KiB.
const COPIES: usize = 1024;

/// The remaining budget of an expression.
#[derive(Clone, Debug)]
pub(super) struct RegexBudget {
    bytes: usize,
    copies: usize,
}

/// Why a regex is refused.
#[derive(Debug)]
pub(super) enum RegexError {
    /// Its bytes are not UTF-8.
    Encoding,
    /// The regex alone is too big.
    TooBig,
    /// The regexes of the expression together are too big.
    OverBudget,
    /// The regexes of the expression together repeat too much.
    Repeats,
    /// The report of the regex crate.
    Syntax(String),
}

// === impl RegexBudget ===

impl RegexBudget {
    pub(super) fn new() -> RegexBudget {
        RegexBudget {
            bytes: TOTAL,
            copies: COPIES,
        }
    }

    /// Compiles a regex and charges it.
    pub(super) fn regex(&mut self, pattern: &[u8]) -> Result<Regex, RegexError> {
        let pattern = std::str::from_utf8(pattern).map_err(|_| RegexError::Encoding)?;
        for size in SIZES {
            let mut builder = RegexBuilder::new(pattern);
            match builder.size_limit(size).dfa_size_limit(MEMORY).build() {
                Ok(regex) => return self.charge(size, pattern).map(|()| regex),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(RegexError::Syntax(error.to_string())),
            }
        }
        Err(RegexError::TooBig)
    }

    fn charge(&mut self, size: usize, pattern: &str) -> Result<(), RegexError> {
        self.bytes = self.bytes.checked_sub(size).ok_or(RegexError::OverBudget)?;
        let (written, meant) = parse(pattern).map_or((0, 0), |hir| characters(&hir));
        let copies = meant.saturating_sub(written);
        self.copies = self.copies.checked_sub(copies).ok_or(RegexError::Repeats)?;
        Ok(())
    }
}

// === impl RegexError ===

impl RegexError {
    /// The reason as text.
    pub(super) fn words(&self) -> String {
        match self {
            RegexError::Encoding => "a regex must be UTF-8".into(),
            RegexError::TooBig => "this regex is too large: it compiles to more than 1 MiB".into(),
            RegexError::OverBudget => "the patterns of this expression are too large: together \
                                       they compile to more than 4 MiB"
                .into(),
            RegexError::Repeats => format!(
                "the counted repetitions of this expression expand to more than {COPIES} \
                 characters; use `len(…)` for lengths"
            ),
            RegexError::Syntax(report) => format!("invalid regex: {}", reason(report)),
        }
    }
}

/// The number of characters of a pattern, as written and with its counted repetitions expanded.
fn characters(hir: &Hir) -> (usize, usize) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, 0),
        HirKind::Literal(text) => (text.0.len(), text.0.len()),
        HirKind::Class(_) => (1, 1),
        HirKind::Capture(group) => characters(&group.sub),
        HirKind::Repetition(repeated) => {
            let (written, meant) = characters(&repeated.sub);
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            (written, meant.saturating_mul(times))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(characters).fold((0, 0), |sum, part| {
                (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))
            })
        }
    }
}

/// The last line of a report, without `error: `.
fn reason(report: &str) -> &str {
    let mut lines = report.lines().rev();
    lines
        .find_map(|line| line.strip_prefix("error: "))
        .unwrap_or("it cannot be parsed")
        .trim_end_matches('.')
}

/// The position of a regex error in the source, from the report of the regex crate: the pattern on
/// one line, carets under the error. `body` is the text between the quotes. `None` if the report
/// has no position.
pub(super) fn fault(report: &str, pattern: &[u8], body: &Span) -> Option<Span> {
    let pattern = std::str::from_utf8(pattern).ok()?;
    if body.len() != pattern.len() || pattern.contains('\n') {
        return None;
    }
    let mut lines = report.lines();
    let carets = lines.find(|line| line.trim_start().starts_with('^'))?;
    let from = (carets.len() - carets.trim_start().len()).saturating_sub(4);
    let count = carets.matches('^').count();
    let offset = |chars| {
        let at = pattern.char_indices().nth(chars);
        at.map_or(pattern.len(), |(at, _)| at)
    };
    Some(body.start + offset(from)..body.start + offset(from + count))
}

/// Lists of strings of which a match contains at least one: the possible prefixes, and the possible
/// suffixes. A list is left out if it is not known.
pub(super) fn literals(pattern: &str) -> Vec<Vec<Box<[u8]>>> {
    let Some(hir) = parse(pattern) else {
        return Vec::new();
    };
    let kinds = [ExtractKind::Prefix, ExtractKind::Suffix];
    let lists = kinds.into_iter().filter_map(|kind| extract(&hir, kind));
    lists.collect()
}

/// A byte that every match of a regex contains and that is rare in other texts.
pub(super) fn rare_byte(pattern: &str) -> Option<u8> {
    let rare = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'/' | b' ' | b'-');
    literals(pattern).iter().find_map(|any| {
        let (first, others) = any.split_first()?;
        let everywhere = |byte: &u8| others.iter().all(|text| text.contains(byte));
        let mut common = first.iter().filter(|byte| rare(byte) && everywhere(byte));
        common.next().copied()
    })
}

/// The exact prefixes of all matches of a regex. `None` unless a search for them pays off: the
/// regex is not anchored at the start, and there are several prefixes of at least two bytes.
pub(super) fn prefixes(pattern: &str) -> Option<Vec<Vec<u8>>> {
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

/// Parses a pattern as `regex::bytes` does.
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
    use super::{prefixes, rare_byte};

    #[test]
    fn the_rare_byte_is_in_every_match() {
        assert_eq!(rare_byte(r"/\.(git|env)"), Some(b'.'));
        assert_eq!(rare_byte(r"(?i)\.php$"), Some(b'.'));
        assert_eq!(rare_byte(r"^/a/[0-9]+\.json"), Some(b'.'));
        assert_eq!(rare_byte(r"\.a|b"), None);
        assert_eq!(rare_byte(r"(\.a)?"), None);
        assert_eq!(rare_byte("bot"), None);
        assert_eq!(rare_byte("a/b"), None);
        assert_eq!(rare_byte(r"wp_login|wp_admin"), Some(b'_'));
    }

    #[test]
    fn every_match_begins_with_one_of_the_prefixes() {
        let shown = |pattern| {
            let texts = prefixes(pattern)?;
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
