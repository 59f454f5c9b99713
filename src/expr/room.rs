//! How much memory the regexes of one expression may take together.

use regex::bytes::{Regex, RegexBuilder};

/// What all regexes of an expression may take, in bytes, compiled.
const TOTAL: usize = 4 << 20;
/// What one regex is charged: the first of these that it fits into. The last is the most.
const SIZES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// What a part of a wildcard pattern is charged.
const PART: usize = 16 << 10;

/// What is left.
#[derive(Clone, Debug)]
pub(super) struct Room(usize);

/// Why a regex is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its bytes are not UTF-8.
    Encoding,
    /// It alone is too big.
    TooBig,
    /// With the others of the expression it is too big.
    NoRoom,
    /// The report of the regex crate.
    Syntax(String),
}

// === impl Room ===

impl Room {
    pub(super) fn new() -> Room {
        Room(TOTAL)
    }

    /// Compiles a regex and charges it.
    pub(super) fn regex(&mut self, pattern: &[u8]) -> Result<Regex, Refused> {
        let pattern = std::str::from_utf8(pattern).map_err(|_| Refused::Encoding)?;
        for size in SIZES {
            match RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(regex) => return self.charge(size).map(|()| regex),
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
        self.0 = self.0.checked_sub(size).ok_or(Refused::NoRoom)?;
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
            Refused::Syntax(report) => format!("bad regex: {}", reason(report)),
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
