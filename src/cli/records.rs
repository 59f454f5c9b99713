//! Prints records: separated by tabs in a pipe, and aligned with a header on a terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use serde_json::Value;

use crate::clock::{Clock, Timestamp};

/// What takes the place of an unknown value.
const UNKNOWN: &str = "-";

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStyle {
    /// One record per line, separated by tabs. Times are absolute.
    Tabs,
    /// Aligned columns. Times are relative to this time.
    Aligned(Timestamp),
}

/// One value of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordCell {
    /// Text, which may come from a client.
    Text(String),
    /// A time as the admin API writes it.
    Time(String),
    /// A number of seconds.
    Seconds(u64),
}

/// The values of a line.
pub type Record = Vec<RecordCell>;

// === impl RecordStyle ===

impl RecordStyle {
    /// Returns the style for the standard output.
    pub fn of_stdout() -> Self {
        if stdout().is_terminal() {
            Self::Aligned(Clock::System.now())
        } else {
            Self::Tabs
        }
    }

    /// Renders records. Only aligned columns have the header.
    pub fn render(self, header: &[&str], records: &[Record]) -> String {
        let rows = records.iter().map(|record| self.row(record));
        match self {
            Self::Tabs => rows.fold(String::new(), |text, row| text + &row.join("\t") + "\n"),
            Self::Aligned(_) => {
                let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
                let header = Some(header).filter(|header| !header.is_empty());
                align(&header.into_iter().chain(rows).collect::<Vec<_>>())
            }
        }
    }

    fn row(self, record: &Record) -> Vec<String> {
        record.iter().map(|cell| self.cell(cell)).collect()
    }

    fn cell(self, cell: &RecordCell) -> String {
        match (cell, self) {
            (RecordCell::Text(text), _) => clean(text),
            (RecordCell::Seconds(seconds), Self::Tabs) => seconds.to_string(),
            (RecordCell::Seconds(seconds), _) => duration(Duration::from_secs(*seconds)),
            (RecordCell::Time(time), Self::Tabs) => clean(time),
            (RecordCell::Time(time), Self::Aligned(now)) => {
                let parsed = parse_time(time);
                parsed.map_or_else(|| clean(time), |time| relative(time, now))
            }
        }
    }
}

// === impl RecordCell ===

impl RecordCell {
    /// The text of a JSON value. `-` for null.
    pub fn of(value: &Value) -> Self {
        Self::Text(match value {
            Value::Null => UNKNOWN.to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// A time. `-` for null.
    pub fn time(value: &Value) -> Self {
        match value.as_str() {
            Some(time) => Self::Time(time.to_owned()),
            None => Self::Text(UNKNOWN.to_owned()),
        }
    }

    /// A rate: one decimal below 9.95, none above, 0 below 0.05. `-` for null.
    pub fn rate(value: &Value) -> Self {
        Self::Text(value.as_f64().map_or_else(|| UNKNOWN.to_owned(), rate))
    }
}

impl From<&str> for RecordCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Formats a rate: one decimal below 9.95, none above, 0 below 0.05.
pub fn rate(value: f64) -> String {
    match value {
        value if value < 0.05 => "0".to_owned(),
        value if value < 9.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Escapes control characters and characters that reorder or hide text, so that text from clients moves no cursor and
/// starts no record.
pub fn clean(text: &str) -> String {
    let escape = |c: char| match c {
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => c.escape_unicode().to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a time as the duration to or since it.
fn relative(time: Timestamp, now: Timestamp) -> String {
    if time >= now {
        duration(time.since(now))
    } else {
        format!("{} ago", duration(now.since(time)))
    }
}

/// Formats a duration by its two largest units, such as `7m 12s`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = units.iter().position(|(size, _)| seconds >= *size);
    let Some(shown) = first.and_then(|first| units.get(first..)) else {
        return "0s".to_owned();
    };
    let mut left = seconds;
    let mut words = Vec::new();
    for (size, unit) in shown.iter().take(2) {
        let count = left / size;
        left %= size;
        if count > 0 || words.is_empty() {
            words.push(format!("{count}{unit}"));
        }
    }
    words.join(" ")
}

/// Parses a time as the admin API writes it.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    if text.len() != 24 || !text.ends_with('Z') {
        return None;
    }
    let date = [number(0..4)?, number(5..7)?, number(8..10)?];
    let time = [number(11..13)?, number(14..16)?, number(17..19)?];
    let millis = Duration::from_millis(number(20..23)?);
    Some(Timestamp::from_utc(date, time)?.plus(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_tabs_and_a_terminal_gets_columns() {
        let until = "2026-11-18T03:21:21.480Z";
        let records = vec![
            vec!["login".into(), RecordCell::Time(until.into())],
            vec!["a\tb\u{1b}[2J".into(), RecordCell::of(&Value::Null)],
        ];
        let header = ["RULE", "LEFT"];
        let tabs = RecordStyle::Tabs.render(&header, &records);
        assert_eq!(tabs, format!("login\t{until}\na\\tb\\u{{1b}}[2J\t-\n"));
        let now = parse_time("2026-11-18T03:14:09.480Z").unwrap();
        let aligned = RecordStyle::Aligned(now).render(&header, &records);
        assert_eq!(
            aligned,
            "RULE           LEFT\nlogin          7m 12s\na\\tb\\u{1b}[2J  -\n"
        );
    }

    #[test]
    fn durations_have_two_units() {
        let text = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!(text(0), "0s");
        assert_eq!(text(59), "59s");
        assert_eq!(text(432), "7m 12s");
        assert_eq!(text(3_600), "1h");
        assert_eq!(text(1_044_140), "12d 2h");
    }

    #[test]
    fn rates_are_short() {
        for (value, text) in [
            (0.04, "0"),
            (0.1, "0.1"),
            (9.94, "9.9"),
            (9.95, "10"),
            (1140.2, "1140"),
        ] {
            assert_eq!(rate(value), text);
        }
    }

    #[test]
    fn only_complete_times_are_parsed() {
        let time = parse_time("1970-01-01T00:00:01.500Z").unwrap();
        assert_eq!(time, Timestamp::from_millis(1_500));
        for wrong in [
            "",
            "1970-01-01T00:00:01Z",
            "1970-13-01T00:00:01.500Z",
            "ä970-01-01T00:00:01.50Z",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
