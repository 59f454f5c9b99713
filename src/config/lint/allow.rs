//! `# lockgate: allow CODE` on the line above silences a warning about a setting.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::LintCode;
use crate::config::Diagnostics;
use crate::config::source::SourceFile;

/// Applies the comments of one file. A comment covers the whole setting below it, even if other
/// comments are between them; an unknown code is an error. A line within a string is not a comment.
pub(in crate::config) fn read_comments(
    root: &DeTable<'_>,
    part: &SourceFile<'_>,
    out: &mut Diagnostics,
) {
    let mut values = Vec::new();
    collect(root, &mut values);
    let mut codes = Vec::new();
    let mut start = 0;
    for line in part.text.split_inclusive('\n') {
        let lines = start..start + line.len();
        let inside = |(string, span): &(bool, Range<usize>)| {
            *string && span.start < lines.start && lines.start < span.end
        };
        let comment = line.trim().strip_prefix('#');
        if let Some(comment) = comment.filter(|_| !values.iter().any(inside)) {
            let at = part.start + start + line.find('#').unwrap_or_default();
            codes.extend(directive(comment.trim(), at..part.start + lines.end, out));
        } else {
            let below = values
                .iter()
                .filter(|(_, span)| lines.contains(&span.start));
            let end = below.map(|(_, span)| span.end).max().unwrap_or_default();
            let covered = part.start + start..part.start + end.max(lines.end);
            for code in codes.drain(..) {
                out.allow(code, covered.clone());
            }
        }
        start = lines.end;
    }
}

/// Returns the codes that a comment allows. Empty for any other comment.
fn directive(comment: &str, span: Range<usize>, out: &mut Diagnostics) -> Vec<LintCode> {
    let Some(rest) = comment.strip_prefix("lockgate:") else {
        return Vec::new();
    };
    let Some(names) = rest.trim().strip_prefix("allow ") else {
        out.error(
            span,
            "expected `allow` and the code of a warning after `lockgate:`",
        )
        .help("for example `# lockgate: allow shared-key`");
        return Vec::new();
    };
    let mut codes = Vec::new();
    for name in names.split(',').map(str::trim) {
        match LintCode::from_name(name) {
            Ok(code) => codes.push(code),
            Err(message) => drop(out.error(span.clone(), message)),
        }
    }
    codes
}

/// Collects the spans of all values that may have several lines, and whether each is a string.
/// Tables below headers have no span here.
fn collect(table: &DeTable<'_>, spans: &mut Vec<(bool, Range<usize>)>) {
    for (_, value) in table.iter() {
        collect_value(value, spans);
    }
}

fn collect_value(value: &toml::Spanned<DeValue<'_>>, spans: &mut Vec<(bool, Range<usize>)>) {
    match value.get_ref() {
        DeValue::String(_) => spans.push((true, value.span())),
        DeValue::Table(table) => collect(table, spans),
        DeValue::Array(items) => {
            let is_value = items.iter().any(|item| !item.get_ref().is_table());
            spans.extend(is_value.then(|| (false, value.span())));
            items.iter().for_each(|item| collect_value(item, spans));
        }
        _ => {}
    }
}
