//! Fits text to columns, and formats numbers and times.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use crate::cli::records::{clean, duration, rate};
use crate::cli::top::api_fields::ApiFields as _;
use crate::clock::{Rfc3339, Timestamp};

/// The number of columns that a text takes.
pub(super) fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// Cuts a text that is wider than `width`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += width_of(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Cuts or pads a text to exactly `width` columns.
pub(super) fn left(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let gap = width.saturating_sub(width_of(&text));
    text + &" ".repeat(gap)
}

/// The same, aligned to the right.
pub(super) fn right(text: &str, width: usize) -> String {
    let text = cut(text, width);
    " ".repeat(width.saturating_sub(width_of(&text))) + &text
}

/// Puts parts on as few lines as possible, with `gap` spaces between them.
pub(super) fn packed(parts: Vec<Span<'static>>, gap: usize, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.width() + gap + part.width() <= width => {
                line.push_span(Span::raw(" ".repeat(gap)));
                line.push_span(part);
            }
            _ => lines.push(Line::from(part)),
        }
    }
    lines
}

/// Breaks a text after a label into at most `most` lines, at spaces where possible.
pub(super) fn wrapped(label: &str, text: &str, width: usize, most: usize) -> Vec<String> {
    let indent = width_of(label);
    let free = width.saturating_sub(indent).max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| width_of(line));
        let needed = line + usize::from(line > 0) + width_of(word);
        if needed > free && line > 0 && lines.len() < most {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if line > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    let indented = |(index, line): (usize, &String)| {
        let before = if index == 0 {
            label
        } else {
            &" ".repeat(indent)
        };
        format!("{before}{}", cut(line, free))
    };
    lines.iter().enumerate().map(indented).collect()
}

/// Puts one text at the left edge and another one at the right.
pub(super) fn spread(one: Span<'static>, other: Span<'static>, width: usize) -> Line<'static> {
    let gap = width.saturating_sub(one.width() + other.width()).max(1);
    Line::from(vec![one, Span::raw(" ".repeat(gap)), other])
}

/// A text in one style.
pub(super) fn styled(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// A text of an object, escaped.
pub(super) fn shown(object: &Value, name: &str) -> String {
    clean(object.text(name))
}

/// A whole number with separators, such as `1,897`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate: one decimal below 9.95, none above, 0 below 0.05.
pub(super) fn grouped_rate(value: f64) -> String {
    let text = rate(value);
    text.parse().map_or(text, grouped)
}

/// A share of 1 in percent.
pub(super) fn percent(share: f64) -> String {
    match share {
        share if share >= 0.0995 => format!("{:.0} %", share * 100.0),
        share if share >= 0.0005 => format!("{:.1} %", share * 100.0),
        _ => "0 %".to_owned(),
    }
}

/// A number with its noun, such as `1 ban` or `2 bans`.
pub(super) fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// The time of day in UTC.
pub(super) fn clock_text(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    text.get(11..19).unwrap_or_default().to_owned()
}

/// A time of an object, as the time of day, with the date if it is on another day.
pub(super) fn time_text(object: &Value, name: &str, now: Timestamp) -> Option<String> {
    let text = Rfc3339(object.time(name)?).to_string();
    let today = Rfc3339(now).to_string();
    if text.get(..10) == today.get(..10) {
        return text.get(11..19).map(str::to_owned);
    }
    let shown = text.get(..16)?;
    Some(shown.replace('T', " "))
}

/// The time until a time in an object. `None` without one.
pub(super) fn time_left(object: &Value, name: &str, now: Timestamp) -> Option<String> {
    Some(duration(object.time(name)?.since(now)))
}

/// The time since a time in an object. `None` without one.
pub(super) fn age(object: &Value, name: &str, now: Timestamp) -> Option<String> {
    Some(duration(now.since(object.time(name)?)))
}

/// A duration in a sentence: `12 s`, or longer ones as `2m 3s`.
pub(super) fn seconds_text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => duration(time),
    }
}

/// Country and network, as far as they are known.
pub(super) fn origin(object: &Value) -> String {
    let asn = object.object("asn").as_u64();
    let parts = [
        Some(shown(object, "country")).filter(|text| !text.is_empty()),
        asn.map(|asn| format!("AS{asn}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Method and path of a decision, with its query.
pub(super) fn request_text(decision: &Value) -> String {
    let (method, path) = (shown(decision, "method"), shown(decision, "path"));
    match decision.text("query") {
        "" => format!("{method} {path}"),
        query => format!("{method} {path}?{}", clean(query)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns_and_not_by_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("語語語", 4), "語…");
        assert_eq!(left("語", 4), "語  ");
        assert_eq!(right("7", 3), "  7");
        assert_eq!(cut("ab", 0), "");
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        let lines = wrapped("key  ", "one two three four", 13, 2);
        assert_eq!(lines, ["key  one two", "     three f…"]);
        assert_eq!(wrapped("", "", 10, 3), [""]);
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_897), "1,897");
        assert_eq!(grouped(1_000_000), "1,000,000");
        assert_eq!(grouped_rate(9.5), "9.5");
        assert_eq!(grouped_rate(1_140.2), "1,140");
        assert_eq!(percent(0.6), "60 %");
        assert_eq!(percent(0.009), "0.9 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(plural(1, "ban"), "1 ban");
    }
}
