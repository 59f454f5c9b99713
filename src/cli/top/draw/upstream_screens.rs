//! The servers of all upstreams, and one server.

use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::DrawArea;
use super::layout::{
    age, cut, grouped, grouped_rate, left, percent, right, shown, styled, wrapped,
};
use super::list::list;
use crate::cli::records::clean;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::ListedRow;

const UPSTREAM: usize = 14;
const STATE: usize = 11;
const RATE: usize = 8;
const ERRORS: usize = 7;
const IN_FLIGHT: usize = 9;
const LATENCY: usize = 8;
/// State, rate and errors, with the sign of the selection and the spaces between columns.
const FIXED: usize = 1 + UPSTREAM + 1 + STATE + 1 + RATE + 1 + ERRORS + 1;

/// Returns the lines of the list of servers.
pub(super) fn upstreams(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let rows = model.figures.rows.as_deref();
    let Some(rows) = rows.filter(|rows| !rows.is_empty()) else {
        let text = if rows.is_some() {
            "There are no upstreams."
        } else {
            "Reading the upstreams."
        };
        return vec![Line::raw(text)];
    };
    let has_more = area.width >= FIXED + IN_FLIGHT + LATENCY + 2 + 20;
    let used = if has_more { IN_FLIGHT + LATENCY + 2 } else { 0 };
    let address = area.width.saturating_sub(FIXED + used);
    let mut header = format!(
        " {} {} {} {} {}",
        left("UPSTREAM", UPSTREAM),
        left("SERVER", address),
        left("STATE", STATE),
        right("REQ/S", RATE),
        right("ERRORS", ERRORS)
    );
    if has_more {
        let more = [right("IN FLIGHT", IN_FLIGHT), right("P99", LATENCY)];
        header = format!("{header} {}", more.join(" "));
    }
    let selected = model.selected_index();
    list(
        Line::raw(header),
        rows.len(),
        selected,
        area.height,
        area.style,
        |index| {
            let row = rows.get(index);
            row.map_or_else(Line::default, |row| {
                server_row(row, address, has_more, area)
            })
        },
    )
}

fn server_row(row: &ListedRow, address: usize, has_more: bool, area: DrawArea) -> Line<'static> {
    let server = &row.object;
    let number = |name: &str| server.number(name).unwrap_or_default();
    let (state, color) = state(row);
    let rates = [
        right(&grouped_rate(number("requests_per_s")), RATE),
        right(&percent(number("error_ratio")), ERRORS),
    ];
    let mut spans = vec![
        Span::raw(left(&clean(&row.rule), UPSTREAM) + " "),
        Span::raw(left(&clean(&row.key), address) + " "),
        styled(left(state, STATE), area.style.colored(color)),
        Span::raw(format!(" {}", rates.join(" "))),
    ];
    if has_more {
        let more = [
            right(&grouped(server.count("in_flight")), IN_FLIGHT),
            right(&latency(row), LATENCY),
        ];
        spans.push(Span::raw(format!(" {}", more.join(" "))));
    }
    Line::from(spans)
}

fn state(row: &ListedRow) -> (&'static str, Color) {
    match (row.object.text("state"), row.object.text("health")) {
        (_, "unhealthy") => ("◆ unhealthy", Color::Yellow),
        ("drain", _) => ("○ drained", Color::Reset),
        _ => ("healthy", Color::Reset),
    }
}

fn latency(row: &ListedRow) -> String {
    let millis = row.object.number("p99_ms");
    millis.map_or_else(
        || "–".to_owned(),
        |millis| format!("{} ms", grouped_rate(millis)),
    )
}

/// Returns the lines of the screen of one server.
pub(super) fn server(
    model: &TopModel,
    upstream: &str,
    address: &str,
    area: DrawArea,
) -> Vec<Line<'static>> {
    let title = cut(
        &format!("{} of {}", clean(address), clean(upstream)),
        area.width,
    );
    let mut lines = vec![Line::styled(title, area.style.bold()), Line::default()];
    let Some(row) = model.selected_row() else {
        let is_read = model.figures.rows.is_some();
        let text = if is_read {
            "The configuration has no such server."
        } else {
            "Reading the server."
        };
        lines.push(Line::raw(text));
        return lines;
    };
    let server = &row.object;
    let number = |name: &str| server.number(name).unwrap_or_default();
    let since = age(server, "since", model.gateway_now());
    let since = since.map_or_else(String::new, |age| format!(" for {age}"));
    let reason = match shown(server, "reason") {
        reason if reason.is_empty() => reason,
        reason => format!(": {reason}"),
    };
    let kind = if server.flag("backup") {
        "backup"
    } else {
        "main"
    };
    let facts = [
        (
            "health",
            format!("{}{since}{reason}", shown(server, "health")),
        ),
        ("state", shown(server, "state")),
        (
            "weight",
            format!("{}, {kind} server", server.count("weight")),
        ),
        (
            "requests",
            format!("{}/s", grouped_rate(number("requests_per_s"))),
        ),
        ("errors", percent(number("error_ratio"))),
        ("in flight", grouped(server.count("in_flight"))),
        ("p99", latency(row)),
    ];
    for (label, text) in facts {
        let text = wrapped(&left(label, 14), &text, area.width, 3);
        lines.extend(text.into_iter().map(Line::raw));
    }
    lines
}
