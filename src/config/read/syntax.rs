//! What the TOML parser refuses: each mistake once, and the text without it.

mod bare;
mod header;
mod other;
mod report;

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::config::source::Part;
use crate::config::{Diagnostics, Source};
use header::Header;

/// More are not told at once: each takes a look at the whole text.
const MOST: usize = 32;

/// Nobody looks further up for what opens a bracket: each line takes a look at those below it.
const FURTHEST: usize = 64;

/// A mistake, in bytes of the file's text.
struct Mistake {
    kind: Kind,
    span: Range<usize>,
    /// The statement that it spoils, without the last line break.
    lines: Range<usize>,
}

/// What is wrong.
enum Kind {
    /// What the parser says.
    Said(String),
    /// What has no end.
    Unclosed(&'static str),
    /// A string that has no end on its line.
    OpenString,
}

/// The text of a file as far as it is TOML: each statement with a mistake is told and becomes blank,
/// so that it hides no other. Of very many, the first are told, and that there are more.
pub(super) fn mended<'t>(
    source: &Source,
    part: &Part<'t>,
    diagnostics: &mut Diagnostics,
) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(part.text);
    let file = part.start..part.start + part.text.len();
    let mut torn = Vec::new();
    if DeTable::parse(part.text).is_err() && other::report(part, diagnostics) {
        diagnostics.tear(file.clone(), file);
        return Cow::Borrowed("");
    }
    loop {
        let (_, errors) = DeTable::parse_recoverable(&text);
        let Some(mistake) = Mistake::first(&text, &errors) else {
            break;
        };
        if torn.len() == MOST {
            mistake.report_more(part, diagnostics);
            break;
        }
        mistake.report(source, part, diagnostics);
        let lines = mistake.lines;
        let rest = blank(&text, &lines);
        // The parser would only say the same again.
        let said_all = rest == text;
        text = Cow::Owned(rest);
        torn.push(lines.start + part.start..lines.end + part.start);
        if said_all {
            break;
        }
    }
    // Only now: these were no echoes.
    for lines in torn {
        diagnostics.tear(lines, file.clone());
    }
    text
}

/// The same text with nothing in these lines; every other byte keeps its place.
fn blank(text: &str, lines: &Range<usize>) -> String {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let kept = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    let nothing: String = part(lines.clone()).bytes().map(kept).collect();
    [part(0..lines.start), &nothing, part(lines.end..text.len())].concat()
}

// === impl Mistake ===

impl Mistake {
    /// The one that stands first: what the parser says later may be its echo.
    fn first(text: &str, errors: &[Error]) -> Option<Self> {
        let first = errors.iter().min_by_key(|error| start(error))?;
        let span = first.span().unwrap_or_default();
        let open = unclosed(errors).is_some();
        let statements = statements(text);
        if let Some(lines) = stray(text, &statements, first.message(), span.start) {
            let kind = Kind::of(text, first);
            return Some(Self { kind, span, lines });
        }
        let at = statements.partition_point(|line| *line <= span.start);
        let line = at.saturating_sub(1);
        let begins = statements.get(line).and_then(|line| {
            let rest = text.get(*line..)?;
            let blank = text.get(*line..span.start)?.trim().is_empty();
            blank.then_some(rest)
        });
        let inside = is_inside(first.message());
        // What is open reaches over the statements that follow.
        let noticed = open && begins.is_some_and(|rest| inside || is_pair(rest));
        let over = noticed.then(|| opener(text, &statements, line, span.start));
        let over = over.flatten();
        let inner = inside && begins.is_some() && over.is_none();
        let string = unclosed_string(first.message(), &statements, text);
        let own = string.or(over.map(|(own, _)| own)).unwrap_or(line);
        // Above the first statement there is none of its own.
        let from = statements
            .get(own)
            .copied()
            .filter(|from| *from <= span.start);
        let from = from.unwrap_or_default();
        let next = |at: usize| {
            statements
                .get(at)
                .map_or(text.len(), |next| next.saturating_sub(1))
        };
        // Whose keys those below a header are is not known, nor what is in a string and what not.
        let whole = string.is_some() || Header::is_one(text.get(from..).unwrap_or_default());
        let to = match (whole, inner) {
            (true, _) => next(next_header(text, &statements, own)),
            // What closes the brackets around it stays.
            (false, true) => end_of_line(text, from),
            (false, false) if over.is_none() && ends_there(text, from, span.start) => {
                end_of_line(text, from)
            }
            (false, false) => next(line.max(own + 1)),
        };
        let kind = match (over, string) {
            (_, Some(_)) => Kind::Unclosed("string"),
            (Some((_, what)), _) => Kind::Unclosed(what),
            _ => Kind::of(text, first),
        };
        let lines = from..to.max(from);
        Some(Self { kind, span, lines })
    }
}

// === impl Kind ===

impl Kind {
    /// What is wrong on a line that opens nothing.
    fn of(text: &str, error: &Error) -> Self {
        match is_open_string(text, error.message(), start(error)) {
            true => Self::OpenString,
            false => Self::Said(error.message().to_owned()),
        }
    }
}

/// The line at `at`, if it is no part of what stands above it: that is complete.
fn stray(text: &str, statements: &[usize], message: &str, at: usize) -> Option<Range<usize>> {
    let line = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let above = statements.partition_point(|start| *start <= at);
    let above = above.checked_sub(1).and_then(|own| statements.get(own));
    let above = above.copied();
    let open = is_inside(message) || message.starts_with("invalid multi-line");
    if open || above == Some(line) {
        return None;
    }
    let (_, errors) = DeTable::parse_recoverable(text.get(above.unwrap_or(0)..line)?);
    errors.is_empty().then(|| line..end_of_line(text, at))
}

/// Whether the parser came to the end of a line within a string.
fn is_open_string(text: &str, message: &str, at: usize) -> bool {
    let of_one_line = ["invalid basic string", "invalid literal string"];
    of_one_line.iter().any(|start| message.starts_with(start))
        && text
            .get(at..end_of_line(text, at))
            .is_some_and(|rest| rest.trim().is_empty())
}

/// Whether a statement with a mistake at `at` ends on its first line: nothing is left open there.
fn ends_there(text: &str, from: usize, at: usize) -> bool {
    let end = end_of_line(text, from);
    let line = text.get(from..end).unwrap_or_default();
    let count = |signs: [char; 2]| line.matches(signs).count();
    let open = count(['[', '{']) > count([']', '}']);
    at <= end && !open && !line.contains("\"\"\"") && !line.contains("'''")
}

fn end_of_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find('\n').unwrap_or(rest.len())
}

/// The first header after the statement `own`.
fn next_header(text: &str, statements: &[usize], own: usize) -> usize {
    let mut later = own + 1..statements.len();
    let header = later.find(|at| {
        let line = statements.get(*at).and_then(|line| text.get(*line..));
        line.is_some_and(Header::is_one)
    });
    header.unwrap_or(statements.len())
}

/// What has no end, if the parser says so.
fn unclosed(errors: &[Error]) -> Option<&'static str> {
    errors.iter().find_map(|error| match error.message() {
        message if message.starts_with("unclosed array,") => Some("array"),
        message if message.starts_with("unclosed inline table,") => Some("table"),
        _ => None,
    })
}

/// The statement before `line` that is still open at `at`, and what it opens.
fn opener(
    text: &str,
    statements: &[usize],
    line: usize,
    at: usize,
) -> Option<(usize, &'static str)> {
    let before = (0..line).rev().take(FURTHEST);
    let mut open = before.filter_map(|own| {
        let written = text.get(*statements.get(own)?..at)?;
        let (_, errors) = DeTable::parse_recoverable(written);
        Some((own, unclosed(&errors)?))
    });
    open.next()
}

fn start(error: &Error) -> usize {
    error.span().unwrap_or_default().start
}

/// Whether the parser was inside brackets.
fn is_inside(message: &str) -> bool {
    ["array", "inline table", "key-value pairs"]
        .iter()
        .any(|inside| message.contains(inside))
        && !message.contains("array table")
}

/// The statement with a string of several lines that swallows all the rest: the last that opens one.
fn unclosed_string(message: &str, statements: &[usize], text: &str) -> Option<usize> {
    if !message.starts_with("invalid multi-line") {
        return None;
    }
    statements.iter().rposition(|line| {
        let line = text.get(*line..).and_then(|rest| rest.lines().next());
        let line = line.unwrap_or_default();
        line.contains("\"\"\"") || line.contains("'''")
    })
}

/// Where lines begin that look like a key with its value, or like a header.
fn statements(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_statement(line) {
            found.push(start);
        }
        start += line.len();
    }
    found
}

fn is_statement(line: &str) -> bool {
    let line = line.trim();
    is_pair(line) || Header::is_one(line) || line.starts_with(|c: char| c.is_alphabetic())
}

/// Whether a text begins with a key and `=`.
fn is_pair(text: &str) -> bool {
    let key = |c: char| c.is_alphanumeric() || "_-.\"' ".contains(c);
    let before = text.split_once('=').map(|(before, _)| before.trim());
    before.is_some_and(|before| !before.is_empty() && before.chars().all(key))
}
