//! What is said of a mistake.

use std::ops::Range;

use super::bare::Bare;
use super::header::headers;
use super::{Kind, MOST, Mistake};
use crate::config::section::SEVERAL;
use crate::config::source::Part;
use crate::config::{Diagnostics, Source};

// === impl Mistake ===

impl Mistake {
    /// Tells it, in words for whoever wrote it.
    pub(super) fn report(&self, source: &Source, part: &Part<'_>, diagnostics: &mut Diagnostics) {
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
                let word = word.start + part.start..word.end + part.start;
                Bare::around(source, word).report(diagnostics);
            }
            message => self.said(message, part, diagnostics),
        }
    }

    /// Tells what the parser says, in other words where they help more.
    fn said(&self, message: &str, part: &Part<'_>, diagnostics: &mut Diagnostics) {
        let span = self.span.start + part.start..self.span.end + part.start;
        let (before, rest) = part
            .text
            .split_at_checked(self.span.start)
            .unwrap_or_default();
        let before = before.rsplit('\n').next().unwrap_or_default();
        let rest = rest.lines().next().unwrap_or_default().trim();
        let colon = rest.strip_prefix(':').map(str::trim);
        let (words, help) = match (message.split_once(',').map_or(message, |m| m.0), colon) {
            ("string values must be quoted", _) if rest.is_empty() || rest.starts_with('#') => (
                "the value is missing",
                "write it behind the `=`, or remove the key".to_owned(),
            ),
            ("invalid unquoted key" | "key with no value", Some(value)) => (
                "`:` instead of `=`",
                format!("write `{} = {value}`", before.trim()),
            ),
            ("invalid unquoted key", _) if is_comment(before, rest) => {
                (message, "a comment begins with `#`".to_owned())
            }
            ("key with no value", _) => (
                message,
                "a key and its value have `=` between them".to_owned(),
            ),
            ("unexpected key or value", _) if rest == "," || rest.starts_with(", #") => (
                "a comma at the end of a line",
                "remove the comma: each key stands on a line of its own".to_owned(),
            ),
            ("unexpected key or value", _) if before.ends_with('"') => (
                message,
                "a text with `\"` in it stands between `'`: 'http.host eq \"a\"'".to_owned(),
            ),
            _ => (message, String::new()),
        };
        let error = diagnostics.error(span, words);
        if !help.is_empty() {
            error.help(help);
        }
    }

    /// Tells that it is one too many.
    pub(super) fn report_more(&self, part: &Part<'_>, diagnostics: &mut Diagnostics) {
        let span = self.span.start + part.start..self.span.end + part.start;
        diagnostics
            .error(span, "… and more")
            .help(format!("correct the first {MOST} lines that are no TOML"));
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

/// Whether a line begins as comments do elsewhere.
fn is_comment(before: &str, rest: &str) -> bool {
    before.trim().is_empty()
        && ["//", ";", "/*", "*"]
            .iter()
            .any(|sign| rest.starts_with(sign))
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
