//! Environment variables in strings: `${NAME}` and `${NAME:-default}`.
//!
//! A reference is replaced once, when the file is read; `$${` stands for `${`. Any other `$` is an ordinary character.
//! Messages show the reference instead of the value, which may be a secret.

use std::env::{self, VarError};
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::source::SourceFile;
use super::{Diagnostic, Diagnostics};

/// A reference that was replaced by a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledReference {
    /// The reference as written, such as `${NAME}`.
    pub reference: String,
    /// The value.
    pub value: String,
    /// The span of the literal that contains it.
    literal: Range<usize>,
}

/// The shortest value that is replaced in messages about other literals: a shorter one could be a part of any word.
const SHORTEST_ELSEWHERE: usize = 4;

/// The shortest part of a value that is replaced in messages about its own literal.
const SHORTEST_PART: usize = 3;

/// Replaces the references in all strings of a file. Reports variables that are not set.
pub(super) fn fill(root: &mut DeTable<'_>, part: &SourceFile<'_>, out: &mut Diagnostics) {
    let mut filler = VariableFiller { part, out };
    filler.table(root);
}

/// Returns a text with its references replaced. Ignores errors, which [`fill`] reports.
pub(super) fn filled(text: &str) -> String {
    let pieces = pieces(text).into_iter();
    let value = |piece| match piece {
        TextPiece::Text(text) => text.to_owned(),
        TextPiece::Reference {
            written,
            name,
            default,
        } => lookup(name, default).unwrap_or_else(|_| written.to_owned()),
    };
    pieces.map(value).collect()
}

/// Returns whether a text contains a reference or an escaped one.
pub(super) fn has_reference(text: &str) -> bool {
    text.contains("${")
        && (text.contains("$${") || pieces(text).iter().any(TextPiece::is_reference))
}

/// Replaces values by their references in a text that becomes a string of a configuration file.
pub fn restored(text: &str, filled: &[FilledReference]) -> String {
    let mut text = if has_reference(text) {
        text.replace("${", "$${")
    } else {
        text.to_owned()
    };
    for one in filled
        .iter()
        .filter(|one| one.value.len() >= SHORTEST_ELSEWHERE)
    {
        text = text.replace(&one.value, &one.reference);
    }
    text
}

/// Fills the strings of one file.
struct VariableFiller<'a> {
    part: &'a SourceFile<'a>,
    out: &'a mut Diagnostics,
}

/// A part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPiece<'t> {
    Text(&'t str),
    Reference {
        /// The whole reference.
        written: &'t str,
        name: &'t str,
        default: Option<&'t str>,
    },
}

// === impl VariableFiller ===

impl VariableFiller<'_> {
    fn table(&mut self, table: &mut DeTable<'_>) {
        for (_, value) in table.iter_mut() {
            let span = value.span();
            self.value(value.get_mut(), span);
        }
    }

    fn value(&mut self, value: &mut DeValue<'_>, span: Range<usize>) {
        match value {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(items) => {
                for item in items.iter_mut() {
                    let span = item.span();
                    self.value(item.get_mut(), span);
                }
            }
            DeValue::String(text) if has_reference(text) => {
                let filled = self.string(text, span);
                *value = DeValue::String(filled.into());
            }
            _ => {}
        }
    }

    fn string(&mut self, text: &str, span: Range<usize>) -> String {
        let literal = self.part.start + span.start..self.part.start + span.end;
        let mut filled = String::with_capacity(text.len());
        let mut is_broken = false;
        for piece in pieces(text) {
            let (written, name, default) = match piece {
                TextPiece::Text(text) => {
                    filled.push_str(text);
                    continue;
                }
                TextPiece::Reference {
                    written,
                    name,
                    default,
                } => (written, name, default),
            };
            match lookup(name, default) {
                Ok(value) => {
                    filled.push_str(&value);
                    self.out.note_filled(FilledReference {
                        reference: written.to_owned(),
                        value,
                        literal: literal.clone(),
                    });
                }
                Err(message) => {
                    let at = self.position(written, &literal);
                    let error = self.out.error(at, message);
                    error.help(format!(
                        "set it, or write a default: `${{{name}:-…}}`; `$${{` is a literal `${{`"
                    ));
                    is_broken = true;
                }
            }
        }
        if is_broken {
            self.out.tear_value(literal);
        }
        filled
    }

    /// Returns the span of a reference in its literal. The whole literal if the reference contains an escape.
    fn position(&self, written: &str, literal: &Range<usize>) -> Range<usize> {
        let start = self.part.start;
        let text = self
            .part
            .text
            .get(literal.start - start..literal.end - start);
        let at = text.and_then(|text| text.find(written));
        at.map_or(literal.clone(), |at| {
            literal.start + at..literal.start + at + written.len()
        })
    }
}

// === impl TextPiece ===

impl TextPiece<'_> {
    fn is_reference(&self) -> bool {
        matches!(self, TextPiece::Reference { .. })
    }
}

/// Returns the value of a variable. The default also replaces an empty value, as in a shell. The error is a message.
fn lookup(name: &str, default: Option<&str>) -> Result<String, String> {
    match (env::var(name), default) {
        (Ok(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Ok(value), _) => Ok(value),
        (Err(VarError::NotPresent), Some(default)) => Ok(default.to_owned()),
        (Err(VarError::NotPresent), None) => {
            Err(format!("the environment variable `{name}` is not set"))
        }
        (Err(VarError::NotUnicode(_)), _) => {
            Err(format!("the environment variable `{name}` is not UTF-8"))
        }
    }
}

/// Splits a text into references and the text between them.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    let between = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("${")) {
        let start = at + found;
        if between(from, start).ends_with('$') {
            // The first `$` is left out.
            pieces.push(TextPiece::Text(between(from, start - 1)));
            (from, at) = (start, start + 2);
            continue;
        }
        match reference(text.get(start..).unwrap_or_default()) {
            Some((piece, length)) => {
                pieces.push(TextPiece::Text(between(from, start)));
                pieces.push(piece);
                (from, at) = (start + length, start + length);
            }
            None => at = start + 2,
        }
    }
    pieces.push(TextPiece::Text(between(from, text.len())));
    pieces
}

/// Reads the reference at the start of a text. Returns its length too. `None` if it is not one.
fn reference(text: &str) -> Option<(TextPiece<'_>, usize)> {
    let inside = text.strip_prefix("${")?;
    let (inside, _) = inside.split_once('}')?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name =
        name.starts_with(starts) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let length = inside.len() + 3;
    let written = text.get(..length).filter(|_| is_name)?;
    let piece = TextPiece::Reference {
        written,
        name,
        default,
    };
    Some((piece, length))
}

// === impl FilledReference ===

impl FilledReference {
    /// Replaces the value by its reference in the texts of a diagnostic.
    pub(super) fn hide(&self, diagnostic: &mut Diagnostic) {
        let overlaps = |span: &Range<usize>| {
            span.start < self.literal.end.max(self.literal.start + 1)
                && self.literal.start < span.end.max(span.start + 1)
        };
        let mut spans = diagnostic.related.iter().map(|one| &one.span);
        let is_own = overlaps(&diagnostic.span) || spans.any(overlaps);
        let labels = diagnostic.related.iter_mut().map(|one| &mut one.label);
        let texts = [&mut diagnostic.message].into_iter();
        for text in texts.chain(&mut diagnostic.help).chain(labels) {
            *text = self.hidden(text, is_own);
        }
    }

    fn hidden(&self, text: &str, is_own: bool) -> String {
        let least = if is_own { 1 } else { SHORTEST_ELSEWHERE };
        if self.value.len() < least {
            return text.to_owned();
        }
        let text = text.replace(&self.value, &self.reference);
        if !is_own {
            return text;
        }
        // Messages quote what they are about, such as a part of an address.
        let quoted = text.split('`').enumerate().map(|(number, word)| {
            let is_part = word.len() >= SHORTEST_PART && self.value.contains(word);
            if number % 2 == 1 && is_part {
                "…"
            } else {
                word
            }
        });
        quoted.collect::<Vec<_>>().join("`")
    }
}

#[cfg(test)]
mod tests {
    use super::{FilledReference, filled, has_reference, restored};

    /// Cargo sets this variable for tests.
    const NAME: &str = env!("CARGO_PKG_NAME");

    #[test]
    fn references_are_replaced_and_other_dollars_stay() {
        for (text, expected) in [
            ("${CARGO_PKG_NAME}", NAME.to_owned()),
            (
                "a${CARGO_PKG_NAME}-${CARGO_PKG_NAME}b",
                format!("a{NAME}-{NAME}b"),
            ),
            ("${LOCKGATE_TEST_UNSET:-x y}", "x y".to_owned()),
            ("${LOCKGATE_TEST_UNSET:-}", String::new()),
            ("${CARGO_PKG_NAME:-x}", NAME.to_owned()),
            ("$${CARGO_PKG_NAME}", "${CARGO_PKG_NAME}".to_owned()),
            ("$$${CARGO_PKG_NAME}", "$${CARGO_PKG_NAME}".to_owned()),
        ] {
            assert!(has_reference(text), "{text}");
            assert_eq!(filled(text), expected, "{text}");
        }
        for text in [
            "", "$", "$office", "^a${2}$", "${", "${}", "${1A}", "${a.b}", "${A-b}", "${A:b}",
            "{{uuid}}", "a$b{c}", "${A", "$ {A}",
        ] {
            assert!(!has_reference(text), "{text}");
            assert_eq!(filled(text), text);
        }
    }

    #[test]
    fn a_value_is_shown_as_its_reference() {
        let one = FilledReference {
            reference: "${URL}".to_owned(),
            value: "redis://:hunter2@host".to_owned(),
            literal: 10..20,
        };
        assert_eq!(
            one.hidden("`redis://:hunter2@host` is wrong", false),
            "`${URL}` is wrong"
        );
        assert_eq!(
            one.hidden("the port `hunter2@host` is wrong", true),
            "the port `…` is wrong"
        );
        assert_eq!(one.hidden("`port` of `host`", false), "`port` of `host`");
        let text = "x redis://:hunter2@host ${A}";
        assert_eq!(restored(text, &[one]), "x ${URL} $${A}");
    }
}
