//! What the TOML parser refuses, in words for whoever wrote it.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::config::section::SEVERAL;
use crate::config::source::Part;
use crate::config::{Diagnostics, Source};

/// More are not told at once: each takes a look at the whole text.
const MOST: usize = 32;

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

/// The header of a section: `[name]`, or `[[name]]` for one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header<'t> {
    name: &'t str,
    several: bool,
    /// Where in the source it is.
    span: Range<usize>,
}

/// The text of a file as far as it is TOML: each statement with a mistake is told and becomes blank,
/// so that it hides no other. What is after too many is left as it is.
pub(super) fn mended<'t>(
    source: &Source,
    part: &Part<'t>,
    diagnostics: &mut Diagnostics,
) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(part.text);
    let file = part.start..part.start + part.text.len();
    let mut torn = Vec::new();
    for _ in 0..MOST {
        let (_, errors) = DeTable::parse_recoverable(&text);
        let Some(mistake) = Mistake::first(&text, &errors) else {
            break;
        };
        mistake.report(source, part, diagnostics);
        let lines = mistake.lines;
        text = Cow::Owned(blank(&text, &lines));
        torn.push(lines.start + part.start..lines.end + part.start);
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
        let open = errors.iter().find_map(|error| match error.message() {
            message if message.starts_with("unclosed array,") => Some("array"),
            message if message.starts_with("unclosed inline table,") => Some("table"),
            _ => None,
        });
        let statements = statements(text);
        let at = statements.partition_point(|line| *line <= span.start);
        let own = at.saturating_sub(1);
        let unclosed = open.filter(|_| is_inside(first.message()));
        // What is open reaches over the statements that follow.
        let begins = |line: &usize| {
            text.get(*line..span.start)
                .is_some_and(|t| t.trim().is_empty())
        };
        let inner = is_inside(first.message()) && statements.get(own).is_some_and(begins);
        let over = unclosed.is_some() && inner;
        let string = unclosed_string(first.message(), &statements, text);
        let own = string.unwrap_or(own.saturating_sub(usize::from(over)));
        let from = statements.get(own).copied().unwrap_or_default();
        let next = |at: usize| {
            statements
                .get(at)
                .map_or(text.len(), |next| next.saturating_sub(1))
        };
        // Whose keys those below a header are is not known, nor what is in a string and what not.
        let whole = string.is_some() || Header::is_one(text.get(from..).unwrap_or_default());
        let to = match (whole, inner && !over) {
            (true, _) => next(next_header(text, &statements, own)),
            // What closes the brackets around it stays.
            (false, true) => end_of_line(text, from),
            (false, false) => next(own + 1),
        };
        let kind = match (unclosed, string) {
            (Some(what), _) if over => Kind::Unclosed(what),
            (_, Some(_)) => Kind::Unclosed("string"),
            _ if is_open_string(text, first.message(), span.start) => Kind::OpenString,
            _ => Kind::Said(first.message().to_owned()),
        };
        let lines = from..to.max(from);
        Some(Self { kind, span, lines })
    }

    fn report(&self, source: &Source, part: &Part<'_>, diagnostics: &mut Diagnostics) {
        let span = self.span.start + part.start..self.span.end + part.start;
        let message = match &self.kind {
            Kind::Unclosed(what) => return self.unclosed(what, part, diagnostics),
            Kind::OpenString => return self.open_string(part, diagnostics),
            Kind::Said(message) => message.as_str(),
        };
        let word = word(part.text, self.span.start);
        let written = part.text.get(word.clone()).unwrap_or_default();
        match message {
            "duplicate key" => twice(source, part, span, diagnostics),
            message if is_bare_word(message, written) => {
                diagnostics
                    .error(
                        word.start + part.start..word.end + part.start,
                        format!("`{written}` needs quotes"),
                    )
                    .help(format!("write \"{written}\""));
            }
            message => {
                let quoted = part.text.get(..self.span.start);
                let quoted = quoted.is_some_and(|before| before.ends_with('"'));
                let error = diagnostics.error(span, message);
                if message.starts_with("key with no value") {
                    error.help("a key and its value have `=` between them");
                } else if message.starts_with("unexpected key or value") && quoted {
                    error.help("a text with `\"` in it stands between `'`: 'http.host eq \"a\"'");
                }
            }
        }
    }

    fn open_string(&self, part: &Part<'_>, diagnostics: &mut Diagnostics) {
        let before = part.text.get(..self.span.start).unwrap_or_default();
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let written = before.get(line..).unwrap_or_default();
        let value = written.find('=').map_or(0, |at| at + 1);
        let quote = written.get(value..).and_then(|text| text.find(['"', '\'']));
        let start = line + value + quote.unwrap_or_default();
        let mark = before.get(start..).and_then(|text| text.chars().next());
        let span = part.start + start..part.start + before.len();
        diagnostics
            .error(span, "this string has no end")
            .help(format!("close it with `{}`", mark.unwrap_or('"')));
    }

    /// Told where it opens: where the parser noticed is of no help.
    fn unclosed(&self, what: &str, part: &Part<'_>, diagnostics: &mut Diagnostics) {
        let text = part.text.get(self.lines.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let value = line.find('=').map_or(0, |at| at + 1);
        let value = line.get(value..).unwrap_or_default();
        let end = part.start + self.lines.start + line.trim_end().len();
        let start = part.start + self.lines.start + line.len() - value.trim_start().len();
        let quotes = value.trim_start().get(..3).unwrap_or_default();
        let end_mark = match what {
            "array" => "]",
            "table" => "}",
            _ => quotes,
        };
        diagnostics
            .error(start..end.max(start), format!("this {what} has no end"))
            .help(format!("close it with `{end_mark}`"));
    }
}

/// Whether the parser came to the end of a line within a string.
fn is_open_string(text: &str, message: &str, at: usize) -> bool {
    let of_one_line = ["invalid basic string", "invalid literal string"];
    of_one_line.iter().any(|start| message.starts_with(start))
        && text
            .get(at..end_of_line(text, at))
            .is_some_and(|rest| rest.trim().is_empty())
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
    let key = |c: char| c.is_alphanumeric() || "_-.\"' ".contains(c);
    let line = line.trim();
    match line.split_once('=') {
        Some((before, _)) if !before.is_empty() && before.chars().all(key) => true,
        _ => Header::is_one(line) || line.starts_with(|c: char| c.is_alphabetic()),
    }
}

/// What stands around `at`, up to what ends a bare value.
fn word(text: &str, at: usize) -> Range<usize> {
    let ends = |c: char| c.is_whitespace() || ",[]{}=#\"'".contains(c);
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind(ends).map_or(0, |last| {
        last + before
            .get(last..)
            .and_then(|rest| rest.chars().next())
            .map_or(1, char::len_utf8)
    });
    let after = text.get(at..).unwrap_or_default();
    start..at + after.find(ends).unwrap_or(after.len())
}

/// The parser takes `info` for a broken `inf`, `text` for a broken `true` and an address for a
/// number.
fn is_bare_word(message: &str, written: &str) -> bool {
    let about_value = [
        "invalid float",
        "invalid boolean",
        "invalid integer",
        "invalid mantissa",
        "string values must be",
    ];
    let no_number = written.contains(|c: char| c.is_alphabetic() || ":/".contains(c))
        || written.matches('.').count() > 1;
    about_value.iter().any(|start| message.starts_with(start)) && no_number
}

/// A key or a section that was there before.
fn twice(source: &Source, part: &Part<'_>, span: Range<usize>, diagnostics: &mut Diagnostics) {
    let headers = headers(part);
    let own = headers.iter().position(|header| holds(&header.span, &span));
    let Some((own, earlier)) = own
        .and_then(|at| headers.split_at_checked(at))
        .and_then(|(before, from)| Some((from.first()?, before)))
    else {
        let written = source.slice(span.clone());
        diagnostics.error(span, format!("`{written}` is given twice"));
        return;
    };
    let Some(first) = earlier.iter().find(|header| header.name == own.name) else {
        let message = format!("`{}` is given twice", own.shown());
        diagnostics.error(own.span.clone(), message);
        return;
    };
    let message = match first.several == own.several {
        true => format!("`{}` is given twice", own.shown()),
        false => format!(
            "`{}` and `{}` do not go together",
            first.shown(),
            own.shown()
        ),
    };
    let name = own.name;
    let help = match SEVERAL.contains(&name) {
        true => format!("write `[[{name}]]`, once for each"),
        false => format!("write `[{name}]` once, and all its keys below it"),
    };
    diagnostics
        .error(own.span.clone(), message)
        .related(first.span.clone(), "the first one")
        .help(help);
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The headers of a file, one a line. A line of a string that looks like one is taken for one: it
/// is only asked for what the parser says.
fn headers<'t>(part: &Part<'t>) -> Vec<Header<'t>> {
    let mut start = part.start;
    let mut found = Vec::new();
    for line in part.text.split_inclusive('\n') {
        found.extend(Header::of(line, start));
        start += line.len();
    }
    found
}

// === impl Header ===

impl<'t> Header<'t> {
    /// Whether a line looks like one, complete or not. An element of an array does not: it is a
    /// value.
    fn is_one(line: &str) -> bool {
        let name = line.trim_start().strip_prefix('[');
        let name = name.map(|name| name.strip_prefix('[').unwrap_or(name).trim_start());
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    }

    /// The header on a line that begins at `start`.
    fn of(line: &'t str, start: usize) -> Option<Self> {
        let text = line.trim_start();
        let at = start + line.len() - text.len();
        let open = text.len() - text.trim_start_matches('[').len();
        let several = match open {
            1 => false,
            2 => true,
            _ => return None,
        };
        let (name, rest) = text.get(open..)?.split_once(']')?;
        let close = if several {
            rest.strip_prefix(']')?;
            2
        } else {
            1
        };
        Some(Self {
            name: name.trim(),
            several,
            span: at..at + open + name.len() + close,
        })
    }

    fn shown(&self) -> String {
        match self.several {
            true => format!("[[{}]]", self.name),
            false => format!("[{}]", self.name),
        }
    }
}
