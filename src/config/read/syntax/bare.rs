//! A value without quotes: what was meant by it.

use std::ops::Range;

use crate::config::scalar::{rate, with_unit};
use crate::config::schema::{self, Shape, Table};
use crate::config::{Diagnostics, Source};

/// A value as it stands in the source.
pub(super) struct Bare<'t> {
    /// The key of its line; empty for an element of an array.
    key: &'t str,
    /// The key that it belongs to, in a table on one line too.
    name: &'t str,
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
        let name = key.and_then(|key| key.rsplit(['{', ',', '=']).next());
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
            name: name.unwrap_or_default().trim(),
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
        if let Some(truth) = truth(&lower).filter(|_| may_be_boolean(self.name)) {
            return (format!("`{text}` is no value"), format!("write `{truth}`"));
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

/// What other formats call true and false.
fn truth(word: &str) -> Option<bool> {
    match word {
        "yes" | "on" | "y" | "enable" | "enabled" => Some(true),
        "no" | "off" | "n" | "disable" | "disabled" => Some(false),
        _ => None,
    }
}

/// Whether a key of this name is true or false, and none is a text. One that is no key may be
/// anything.
fn may_be_boolean(name: &str) -> bool {
    let mut shapes = Vec::new();
    collect(name, &schema::root(), &mut shapes);
    let flat = shapes.iter().flat_map(|shape| match shape {
        Shape::Either(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    });
    let mut values = flat.filter(|shape| !matches!(shape, Shape::Table(_)));
    !name.is_empty() && values.all(|shape| matches!(shape, Shape::Boolean))
}

/// What the keys of this name may be.
fn collect(name: &str, table: &Table, shapes: &mut Vec<Shape>) {
    for key in &table.keys {
        if key.name == name {
            shapes.push(key.shape.clone());
        }
        within(name, &key.shape, shapes);
    }
    let names = table.names.iter().flat_map(|names| &names.shapes);
    names.for_each(|shape| within(name, shape, shapes));
}

fn within(name: &str, shape: &Shape, shapes: &mut Vec<Shape>) {
    match shape {
        Shape::Table(table) => collect(name, table, shapes),
        Shape::List { item, .. } => within(name, item, shapes),
        Shape::Either(all) => all.iter().for_each(|one| within(name, one, shapes)),
        _ => {}
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
