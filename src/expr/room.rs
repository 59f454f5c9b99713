//! How much memory and time the regexes of one expression may take together.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

/// What all regexes of an expression may take, in bytes, compiled.
const TOTAL: usize = 4 << 20;
/// What one regex is charged: the first of these that it fits into. The last is the most.
const SIZES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// What a part of a wildcard pattern is charged.
const PART: usize = 16 << 10;
/// What a regex may remember of its way through texts, in bytes and for each thread that uses it. A
/// client can fill it; the default of 2 MiB would make gigabytes of a few hundred rules.
pub(super) const MEMORY: usize = 256 << 10;
/// How many more characters counted repetitions may stand for than are written: about as many as
/// an expression has room to write out. Where a client makes the text fit them all at once, each
/// byte of it costs a step for each; ten thousand took seconds for one header of 32 KiB.
const COPIES: usize = 1024;

/// What is left.
#[derive(Clone, Debug)]
pub(super) struct Room {
    bytes: usize,
    copies: usize,
}

/// Why a regex is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its bytes are not UTF-8.
    Encoding,
    /// It alone is too big.
    TooBig,
    /// With the others of the expression it is too big.
    NoRoom,
    /// With the others of the expression it repeats too much.
    Repeats,
    /// The report of the regex crate.
    Syntax(String),
}

// === impl Room ===

impl Room {
    pub(super) fn new() -> Room {
        Room {
            bytes: TOTAL,
            copies: COPIES,
        }
    }

    /// Compiles a regex and charges it.
    pub(super) fn regex(&mut self, pattern: &[u8]) -> Result<Regex, Refused> {
        let pattern = std::str::from_utf8(pattern).map_err(|_| Refused::Encoding)?;
        for size in SIZES {
            let mut builder = RegexBuilder::new(pattern);
            match builder.size_limit(size).dfa_size_limit(MEMORY).build() {
                Ok(regex) => {
                    self.charge(size)?;
                    return self.charge_copies(pattern).map(|()| regex);
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(Refused::Syntax(error.to_string())),
            }
        }
        Err(Refused::TooBig)
    }

    /// Charges the search for `parts` strings.
    pub(super) fn parts(&mut self, parts: usize) -> Result<(), Refused> {
        self.charge(parts.saturating_mul(PART))
    }

    fn charge(&mut self, size: usize) -> Result<(), Refused> {
        self.bytes = self.bytes.checked_sub(size).ok_or(Refused::NoRoom)?;
        Ok(())
    }

    fn charge_copies(&mut self, pattern: &str) -> Result<(), Refused> {
        let parsed = ParserBuilder::new().utf8(false).build().parse(pattern);
        let copies = parsed.map_or(0, |hir| copies(&hir));
        self.copies = self.copies.checked_sub(copies).ok_or(Refused::Repeats)?;
        Ok(())
    }
}

// === impl Refused ===

impl Refused {
    /// The reason in words.
    pub(super) fn words(&self) -> String {
        match self {
            Refused::Encoding => "a regex must be UTF-8".into(),
            Refused::TooBig => "this regex is too big: compiled, it passes 1 MiB".into(),
            Refused::NoRoom => "the patterns of this expression are too big together: \
                compiled, they pass 4 MiB"
                .into(),
            Refused::Repeats => format!(
                "the counted repetitions of this expression stand for more than {COPIES} characters; \
                 use `len(…)` for lengths"
            ),
            Refused::Syntax(report) => format!("bad regex: {}", reason(report)),
        }
    }
}

/// How many more characters a pattern has once its counted repetitions are written out.
fn copies(hir: &Hir) -> usize {
    let (written, meant) = characters(hir);
    meant.saturating_sub(written)
}

/// How many characters a pattern has, as it is written and written out.
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
pub(super) fn reason(report: &str) -> &str {
    let mut lines = report.lines().rev();
    lines
        .find_map(|line| line.strip_prefix("error: "))
        .unwrap_or("it cannot be read")
        .trim_end_matches('.')
}
