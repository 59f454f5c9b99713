//! A value without quotes: what was meant by it.

use std::ops::Range;

use crate::config::scalar::{rate, with_unit};
use crate::config::{Diagnostics, Source};

/// A value as it stands in the source.
pub(super) struct Bare<'t> {
    /// The key of its line; empty for an element of an array.
    key: &'t str,
    /// All of it: with blanks, if it is alone behind its key.
    text: &'t str,
    span: Range<usize>,
}

// === impl Bare ===

impl<'t> Bare<'t> {
    /// The one that `word` of the source is in.
    pub(super) fn around(source: &'t Source, word: Range<usize>) -> Self {
        let text = source.text.as_str();
        let line = text.get(..word.start).unwrap_or_default();
        let line = line.rfind('\n').map_or(0, |end| end + 1);
        let before = text.get(line..word.start).unwrap_or_default();
        let key = before.trim_end().strip_suffix('=').map(str::trim);
        let key = key.filter(|key| !key.contains(['=', '{', '[']));
        let rest = text.get(word.start..).and_then(|rest| rest.lines().next());
        let rest = rest.unwrap_or_default();
        let rest = rest.split_once(" #").map_or(rest, |(value, _)| value);
        let end = match key {
            Some(_) => word.start + rest.trim_end().len(),
            None => word.end,
        };
        Self {
            key: key.unwrap_or_default(),
            text: text.get(word.start..end).unwrap_or_default(),
            span: word.start..end,
        }
    }

    /// Tells what is wrong with it.
    pub(super) fn report(&self, diagnostics: &mut Diagnostics) {
        let (message, help) = self.meant();
        diagnostics.error(self.span.clone(), message).help(help);
    }

    fn meant(&self) -> (String, String) {
        let (key, text) = (self.key, self.text);
        let lower = text.to_lowercase();
        if let "true" | "false" = lower.as_str() {
            return (format!("`{text}` is no value"), format!("write `{lower}`"));
        }
        if let "null" | "nil" | "undefined" = lower.as_str() {
            let help = "remove the key: what is not there has its default";
            return (format!("`{text}` is no value"), help.to_owned());
        }
        if text.starts_with(CURLY) {
            let inner = text.trim_matches(CURLY);
            let message = "curly quotes are no quotes".to_owned();
            return (message, format!("write straight ones: {}", quoted(inner)));
        }
        if let Some((number, period)) = rate(text) {
            let number_key = if key.is_empty() { "limit" } else { key };
            let help = format!("write `{number_key} = {number}` and `period = \"{period}\"`");
            return (format!("`{text}` is not a number"), help);
        }
        let right = with_unit(text).unwrap_or_else(|| text.to_owned());
        let help = format!("write {}", quoted(&right));
        (format!("`{text}` needs quotes"), help)
    }
}

/// What word processors make of quotes.
const CURLY: [char; 8] = ['“', '”', '„', '‟', '‘', '’', '«', '»'];

/// Between the quotes that it does not hold itself.
fn quoted(text: &str) -> String {
    match text.contains('"') {
        true => format!("'{text}'"),
        false => format!("\"{text}\""),
    }
}
