//! The tables of `lockgate top`: rules, keys, bans and servers. They scroll so that the selected row is visible.

use ratatui::text::Line;
use serde_json::Value;

use super::TopStyle;
use crate::cli::records::{clean, duration, parse_time, rate};
use crate::cli::top::model::{ListedRow, TopModel, TopScreen};
use crate::cli::top::rule_row::{RuleRow, SPARKS};

/// A column: its header, its width, and whether it is aligned to the right.
type Column = (&'static str, usize, bool);

/// Returns the table of a screen with its header, at most `height` lines.
pub(super) fn body(
    model: &TopModel,
    style: TopStyle,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let (header, rows) = match &model.screen {
        TopScreen::Overview => rules(model, style, width),
        TopScreen::Rule(name) => (format!(" {}: hottest keys", clean(name)), keys(model)),
        TopScreen::Bans { .. } => (" Bans".to_owned(), bans(model)),
        TopScreen::Upstreams => (" Upstreams".to_owned(), servers(model)),
        TopScreen::Help => return Vec::new(),
    };
    let selected = model.selected_index();
    let visible = height.saturating_sub(1).max(1);
    let first = (selected + 1).saturating_sub(visible);
    let mut lines = vec![Line::raw(tail(&header, width))];
    let rows = rows.into_iter().enumerate().skip(first).take(visible);
    lines.extend(rows.map(|(index, row)| {
        let sign = if index == selected {
            style.text("▶")
        } else {
            " ".to_owned()
        };
        let line = Line::raw(tail(&format!("{sign}{row}"), width));
        if index == selected {
            line.style(style.selected())
        } else {
            line
        }
    }));
    lines
}

/// Cuts a line at the width of the screen.
pub(super) fn tail(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Returns the header and the rows of the rules. On a narrow screen, columns disappear: keys, sparkline, limit.
fn rules(model: &TopModel, style: TopStyle, width: usize) -> (String, Vec<String>) {
    let is_shown = |header: &str| match header {
        "KEYS" => width >= 100,
        "15 MIN, MITIGATED" => width >= 92,
        "LIMIT" => width >= 72,
        "ACTION" | "MATCHED/S" | "BANS" => width >= 60,
        _ => true,
    };
    const COLUMNS: [Column; 8] = [
        ("RULE", 18, false),
        ("LIMIT", 12, false),
        ("ACTION", 10, false),
        ("15 MIN, MITIGATED", SPARKS, false),
        ("MATCHED/S", 9, true),
        ("MITIGATED/S", 11, true),
        ("KEYS", 7, true),
        ("BANS", 5, true),
    ];
    let line = |cells: [String; 8]| {
        let cells = COLUMNS
            .iter()
            .zip(cells)
            .filter(|((header, ..), _)| is_shown(header));
        let cells = cells.map(|((_, width, is_right), cell)| {
            let cell = tail(&cell, *width);
            if *is_right {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    let header = format!(" {}", line(COLUMNS.map(|(header, ..)| header.to_owned())));
    let rows = model.rules.iter().map(|row| line(rule_cells(row, style)));
    (header, rows.collect())
}

fn rule_cells(row: &RuleRow, style: TopStyle) -> [String; 8] {
    let count =
        |number: Option<u64>| number.map_or_else(|| style.text("–"), |number| number.to_string());
    let mitigated = if row.is_dry_run() {
        format!("({})", rate(row.would_mitigate_per_s))
    } else {
        rate(row.mitigated_per_s)
    };
    [
        clean(&row.name),
        row.limit(),
        row.action(),
        sparkline(&row.sparks, style),
        rate(row.matched_per_s),
        mitigated,
        count(row.keys),
        count(row.bans),
    ]
}

/// Draws values as blocks of eight heights, or with `--ascii`, as `-`, `=` and `#`.
fn sparkline(values: &[f64], style: TopStyle) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 3] = ['-', '=', '#'];
    let signs: &[char] = if style.is_ascii { &ASCII } else { &BLOCKS };
    let largest = values.iter().copied().fold(1.0, f64::max);
    let sign = |value: &f64| {
        let height = (value / largest * signs.len() as f64) as usize;
        signs
            .get(height.min(signs.len() - 1))
            .copied()
            .unwrap_or(' ')
    };
    values.iter().map(sign).collect()
}

fn keys(model: &TopModel) -> Vec<String> {
    let row = |row: &ListedRow| {
        let number = |name: &str| {
            row.object
                .get(name)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        let (count, limit) = (number("count"), number("limit"));
        let used = match left(model, &row.object, "banned_until") {
            Some(left) => format!("banned {left}"),
            None => format!("{count} of {limit}"),
        };
        let note = row
            .object
            .get("note")
            .and_then(Value::as_str)
            .unwrap_or_default();
        format!(
            "{:<44} {used:<18} {}",
            tail(&clean(&row.key), 44),
            clean(note)
        )
    };
    model.rows.iter().map(row).collect()
}

fn bans(model: &TopModel) -> Vec<String> {
    let row = |row: &ListedRow| {
        let text = |name: &str| {
            let text = row.object.get(name).and_then(Value::as_str);
            clean(text.unwrap_or("-"))
        };
        let mitigated = row
            .object
            .get("mitigated")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let left = left(model, &row.object, "until").unwrap_or_else(|| "-".to_owned());
        let (rule, key) = (tail(&clean(&row.rule), 20), tail(&clean(&row.key), 40));
        format!(
            "{rule:<20} {key:<40} {:<9} {left:<8} {mitigated:>7}  {}",
            text("action"),
            text("cause")
        )
    };
    model.rows.iter().map(row).collect()
}

fn servers(model: &TopModel) -> Vec<String> {
    let row = |row: &ListedRow| {
        let text = |name: &str| {
            let text = row.object.get(name).and_then(Value::as_str);
            clean(text.unwrap_or_default())
        };
        let number = |name: &str| {
            row.object
                .get(name)
                .and_then(Value::as_f64)
                .unwrap_or_default()
        };
        let (requests, in_flight) = (rate(number("requests_per_s")), number("in_flight"));
        let errors = number("error_ratio") * 100.0;
        let (name, address) = (tail(&clean(&row.rule), 16), tail(&clean(&row.key), 24));
        format!(
            "{name:<16} {address:<24} {:<6} {:<10} {requests:>7}/s {errors:>5.1} % errors {in_flight:>5} in flight  {}",
            text("state"),
            text("health"),
            text("reason")
        )
    };
    model.rows.iter().map(row).collect()
}

/// The time until a time in an object. `None` without one.
fn left(model: &TopModel, object: &Value, name: &str) -> Option<String> {
    let time = parse_time(object.get(name)?.as_str()?)?;
    Some(duration(time.since(model.now)))
}
