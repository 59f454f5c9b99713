//! Syntax errors of the TOML parser, one per line, with help for common mistakes.
//!
//! Nothing is repaired: a line with an error is removed, and the rest is read without it.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

use super::Diagnostics;
use super::diagnostics::UnreadableLines;
use super::section::SEVERAL;
use super::source::SourceFile;

/// Reports the syntax errors of a file. Returns its text with the refused lines replaced by spaces,
/// so that they hide no other error.
pub(super) fn readable<'t>(part: &SourceFile<'t>, out: &mut Diagnostics) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(part.text);
    let mut torn: Vec<UnreadableLines> = Vec::new();
    loop {
        let (root, errors) = DeTable::parse_recoverable(&text);
        if errors.is_empty() {
            break;
        }
        if torn.is_empty() && report_other_format(root.get_ref(), part, out) {
            out.tear(UnreadableLines::whole(part));
            return Cow::Borrowed("");
        }
        let known = torn.len();
        report_all(root.get_ref(), errors, part, &mut torn, out);
        let new = torn.get(known..).unwrap_or_default();
        if new.is_empty() {
            break;
        }
        let blanked = new
            .iter()
            .fold(text.to_string(), |text, torn| torn.blank(text, part));
        text = Cow::Owned(blanked);
    }
    // Mark the lines last, because errors about marked lines are not shown.
    torn.into_iter().for_each(|torn| out.tear(torn));
    text
}

/// Reports the first error of each line that is not marked yet.
fn report_all(
    root: &DeTable<'_>,
    mut errors: Vec<Error>,
    part: &SourceFile<'_>,
    torn: &mut Vec<UnreadableLines>,
    out: &mut Diagnostics,
) {
    let mut values = Vec::new();
    collect_values(root, &mut values);
    let syntax = Syntax { values, part };
    errors.sort_by_key(start);
    if let Some(open) = syntax.unclosed(&errors) {
        errors.retain(|error| start(error) < open.start);
        torn.push(syntax.report_unclosed(open, out));
    }
    for error in errors {
        let line = line_at(part.text, start(&error));
        if !torn.iter().any(|torn| torn.covers(part.start + line.start)) {
            syntax.report(&error, out);
            torn.push(UnreadableLines::new(line, part));
        }
    }
}

const TOML: &str = "a configuration file is TOML, for example `[[listeners]]` followed by `address = \
                    \"0.0.0.0:8443\"`; see `lockgate help configuration`";

/// Reports a file of another format, in which the parser could read nothing. Returns `false` if it
/// may be TOML.
fn report_other_format(root: &DeTable<'_>, part: &SourceFile<'_>, out: &mut Diagnostics) -> bool {
    let lines = || {
        let lines = part.text.lines();
        let lines = lines.map(|line| line.trim_matches('\u{feff}').trim());
        lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let Some(first) = lines().next().filter(|_| root.is_empty()) else {
        return false;
    };
    let foreign = |line: &str| line.ends_with([';', '{', ':']) || line.contains(": ");
    let has_header = lines().any(|line| line.starts_with('['));
    let is_foreign = !has_header && (lines().any(foreign) || !part.text.contains('='));
    if !is_foreign && !first.starts_with(['{', '<']) {
        return false;
    }
    let at = part.start + part.text.find(first).unwrap_or_default();
    let error = out.error(at..at + first.len(), "this is not TOML");
    error.help(TOML);
    if first.starts_with('{') {
        error.help(
            "to import a Cloudflare rulesets export, run `lockgate import cloudflare FILE.json`",
        );
    }
    true
}

/// One file with syntax errors.
struct Syntax<'a> {
    /// The values of all `key = value` statements that the parser found.
    values: Vec<Range<usize>>,
    part: &'a SourceFile<'a>,
}

// === impl Syntax ===

impl Syntax<'_> {
    /// Returns the value of the statement before `at`.
    fn value_before(&self, at: usize) -> Option<&Range<usize>> {
        let before = self.values.iter().filter(|value| value.start < at);
        before.max_by_key(|value| value.start)
    }

    /// Returns the value that is still open at the end of the file.
    fn unclosed(&self, errors: &[Error]) -> Option<Range<usize>> {
        let mentions = |words: &'static [&'static str]| {
            errors.iter().find(|error| {
                let message = error.message();
                !message.contains("array table") && words.iter().any(|word| message.contains(word))
            })
        };
        mentions(&["unclosed array", "unclosed inline", "invalid multi-line"])?;
        // The parser reports its first error within the value directly after the start of the value.
        let inside = mentions(&["array", "inline table", "key-value pairs", "multi-line"])?;
        self.value_before(start(inside)).cloned()
    }

    fn report_unclosed(&self, value: Range<usize>, out: &mut Diagnostics) -> UnreadableLines {
        let text = self.part.text;
        let line = line_at(text, value.start);
        let written = text.get(value.start..line.end).unwrap_or_default();
        let (what, end) = match written.chars().next() {
            Some('[') => ("array", "]"),
            Some('{') => ("table", "}"),
            _ => ("string", written.get(..3).unwrap_or("\"\"\"")),
        };
        let span = value.start..value.start + written.trim_end().len();
        out.error(self.source_span(span), format!("this {what} is not closed"))
            .help(format!("close it with `{end}`"));
        UnreadableLines::new(line.start..text.len(), self.part)
    }

    fn report(&self, error: &Error, out: &mut Diagnostics) {
        let text = |range: Range<usize>| self.part.text.get(range).unwrap_or_default();
        let at = start(error);
        let line = line_at(self.part.text, at);
        let (before, rest) = (text(line.start..at), text(at..line.end));
        let word = word_at(self.part.text, at);
        match error.message() {
            "duplicate key" => self.report_duplicate(error, &line, out),
            message if is_bare_word(message) && !word.is_empty() => {
                let written = bare_value(text(word.start..line.end), word.len());
                let span = self.source_span(word.start..word.start + written.len());
                report_bare_value(written, span, out);
            }
            message if message.contains("string, expected") && rest.trim().is_empty() => {
                let value = self.value_before(at).map_or(at, |value| value.start);
                let quote = text(value..at).chars().next();
                out.error(self.source_span(value..at), "this string is not closed")
                    .help(format!("close it with `{}`", quote.unwrap_or('"')));
            }
            message => {
                let (message, help) = in_other_words(message, before, rest.trim());
                let span = self.source_span(error.span().unwrap_or_default());
                let error = out.error(span, message);
                error.help.extend(help.map(str::to_owned));
            }
        }
    }

    /// Reports a setting or a section that is defined twice.
    fn report_duplicate(&self, error: &Error, line: &Range<usize>, out: &mut Diagnostics) {
        let text = self.part.text;
        let key = error.span().unwrap_or_default();
        let header = text.get(line.clone()).unwrap_or_default().trim();
        let Some(name) = header_name(header) else {
            let written = text.get(key.clone()).unwrap_or_default();
            out.error(self.source_span(key), format!("`{written}` is set twice"));
            return;
        };
        let help = if SEVERAL.contains(&name) {
            format!("write `[[{name}]]` above each of them")
        } else {
            format!("write `[{name}]` once, with all its settings below it")
        };
        let span = self.source_span(line.start..line.start + header.len());
        let error = out.error(span, format!("`{header}` is defined twice"));
        error.help(help);
        let earlier = text.get(..line.start).unwrap_or_default();
        let mut headers = earlier.lines().map(str::trim);
        if let Some(first) = headers.find(|line| header_name(line) == Some(name)) {
            let at = earlier.find(first).unwrap_or_default();
            error.related(self.source_span(at..at + first.len()), "first defined here");
        }
    }

    fn source_span(&self, span: Range<usize>) -> Range<usize> {
        span.start + self.part.start..span.end + self.part.start
    }
}

/// Returns whether a message is about an unquoted word: the parser reads `info` as a broken `inf`,
/// `text` as a broken `true` and an address as a number.
fn is_bare_word(message: &str) -> bool {
    let about_value = [
        "invalid float",
        "invalid boolean",
        "invalid integer",
        "invalid mantissa",
        "string values must be",
    ];
    about_value.iter().any(|start| message.starts_with(start))
}

/// Returns the unquoted value at the start of `line`: its first word, or the whole line if more
/// words follow.
fn bare_value(line: &str, word: usize) -> &str {
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    let rest = line.get(word..).unwrap_or_default().trim_start();
    match rest.starts_with([',', ']', '}']) {
        true => line.get(..word).unwrap_or_default(),
        false => line,
    }
}

fn report_bare_value(value: &str, span: Range<usize>, out: &mut Diagnostics) {
    let quoted = if value.contains('"') {
        format!("'{value}'")
    } else {
        format!("\"{value}\"")
    };
    let (message, help) = match value.to_lowercase().as_str() {
        truth @ ("true" | "false") => ("is not a value", format!("write `{truth}`")),
        "yes" | "on" => (
            "is not a value",
            format!("write `true`, or {quoted} for a string"),
        ),
        "no" | "off" => (
            "is not a value",
            format!("write `false`, or {quoted} for a string"),
        ),
        "null" | "nil" => {
            let help = "remove the setting: its default applies";
            ("is not a value", help.to_owned())
        }
        curly if curly.starts_with(['“', '”', '„', '‘', '’', '«', '»']) => {
            ("has curly quotes", "use straight quotes: `\"`".to_owned())
        }
        rate if is_rate(rate) => {
            let help = "write a rate as `limit = 5` and `period = \"1m\"`";
            ("is not a value", help.to_owned())
        }
        _ => ("needs quotes", format!("write {quoted}")),
    };
    out.error(span, format!("`{value}` {message}")).help(help);
}

/// Returns whether `value` is a rate in the syntax of other gateways: `5/min`, `10r/s`.
fn is_rate(value: &str) -> bool {
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let number = |text: &str| text.trim_end_matches(char::is_alphabetic).parse::<u64>();
    value
        .split_once('/')
        .is_some_and(|(count, unit)| is_word(unit) && number(count).is_ok())
}

/// Rewords a message of the parser, which calls a setting a key, and adds help for a common cause.
fn in_other_words<'m>(
    message: &'m str,
    before: &str,
    rest: &str,
) -> (&'m str, Option<&'static str>) {
    let line = format!("{before}{rest}");
    let mut comments = ["//", ";", "/*", "*"].iter();
    let foreign_comment = comments.any(|sign| line.trim_start().starts_with(sign));
    match message.split_once(',').map_or(message, |(what, _)| what) {
        "string values must be quoted" => (
            "the value is missing",
            Some("write it after the `=`, or remove the setting"),
        ),
        "invalid unquoted key" | "key with no value" if foreign_comment => (
            "this comment is not TOML",
            Some("a comment starts with `#`"),
        ),
        "invalid unquoted key" | "key with no value" if rest.starts_with(':') => {
            ("`:` instead of `=`", Some(ASSIGNMENT))
        }
        "key with no value" => ("setting without a value, expected `=`", Some(ASSIGNMENT)),
        "unexpected key or value" if rest.starts_with(',') => (
            "a comma at the end of a line",
            Some("remove the comma: each setting is on its own line"),
        ),
        "unexpected key or value" => {
            let quotes = before.ends_with('"').then_some(QUOTES);
            ("unexpected text after the value", quotes)
        }
        "duplicate key" => ("this setting is set twice", None),
        "invalid key-value pair" => ("expected a setting and its value", None),
        "invalid unquoted key" => (
            "invalid setting name, expected letters, digits, `-` or `_`",
            None,
        ),
        "unquoted keys cannot be empty" => ("the setting name is missing", None),
        "missing key for inline table element" => ("expected a setting name", None),
        "missing value for key" => ("the value is missing", None),
        "missing assignment between key-value pairs" => {
            ("setting without a value, expected `=`", Some(ASSIGNMENT))
        }
        "missing comma between key-value pairs" => ("missing comma between settings", None),
        "extra assignment between key-value pairs" | "extra `=`" => ("unexpected `=`", None),
        "unclosed table" => ("this section header is not closed, expected `]`", None),
        "unclosed array table" => ("this section header is not closed, expected `]]`", None),
        _ => (
            message
                .strip_suffix(", expected nothing")
                .unwrap_or(message),
            None,
        ),
    }
}

const ASSIGNMENT: &str = "write `=` between the setting and its value";
const QUOTES: &str = "write a string that contains `\"` in single quotes: 'http.host eq \"a\"'";

/// Collects the spans of values that follow a key. The table of a header starts before its key.
fn collect_values(table: &DeTable<'_>, values: &mut Vec<Range<usize>>) {
    for (key, value) in table.iter() {
        if key.span().start < value.span().start {
            values.push(value.span());
            continue;
        }
        match value.get_ref() {
            DeValue::Table(table) => collect_values(table, values),
            DeValue::Array(items) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|table| collect_values(table, values));
            }
            _ => {}
        }
    }
}

fn start(error: &Error) -> usize {
    error.span().unwrap_or_default().start
}

/// Returns the line at `at`, without its line break.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let rest = text.get(at..).unwrap_or_default();
    start..at + rest.find('\n').unwrap_or(rest.len())
}

/// Returns the characters around `at` that belong to an unquoted value.
fn word_at(text: &str, at: usize) -> Range<usize> {
    let ends = |c: char| c.is_whitespace() || ",[]{}=#\"'".contains(c);
    let before = text.get(..at).unwrap_or_default();
    let start = before.trim_end_matches(|c| !ends(c)).len();
    let after = text.get(at..).unwrap_or_default();
    start..at + after.find(ends).unwrap_or(after.len())
}

/// Returns the name in a header: `log` in `[log]` and `[[log]]`.
fn header_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix('[')?.split_once(']')?;
    Some(name.trim_start_matches('[').trim())
}
