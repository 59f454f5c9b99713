//! The live feed of decisions.

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::DrawArea;
use super::layout::{
    clock_text, cut, grouped, left, origin, plural, request_text, right, shown, wrapped,
};
use super::list::list;
use crate::cli::records::clean;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::{StreamFilter, key_name};

const TIME: usize = 8;
const CLIENT: usize = 15;
const RULE: usize = 16;
const ACTION: usize = 13;
const REPEAT: usize = 6;

/// The widths of the columns that depend on the width of the screen.
#[derive(Clone, Copy)]
struct DecisionColumns {
    request: usize,
    has_rule: bool,
    has_repeat: bool,
}

/// Returns the lines of the decisions, newest first, with the facts of the selected one.
pub(super) fn decisions(
    model: &TopModel,
    filter: &StreamFilter,
    area: DrawArea,
) -> Vec<Line<'static>> {
    let feed = &model.decisions;
    let title = cut(&title(model, filter), area.width);
    let mut lines = vec![
        Line::styled(title, area.style.bold()),
        Line::raw(cut(&note(model), area.width)),
    ];
    if feed.rows.is_empty() {
        let text = if feed.shows_forwarded || filter.rule.is_some() {
            "No decision has arrived yet."
        } else {
            "No request is mitigated. Press a to see forwarded requests too."
        };
        lines.push(Line::raw(cut(text, area.width)));
        return lines;
    }
    let facts = model.selected_row().map(|row| facts(&row.object));
    let facts = facts.map(|text| wrapped("Selected    ", &text, area.width, 2));
    let facts: Vec<_> = facts.into_iter().flatten().map(Line::raw).collect();
    let height = area.height.saturating_sub(lines.len() + facts.len() + 1);
    let columns = DecisionColumns::new(area.width);
    let selected = model.selected_index();
    let table = list(
        columns.header(),
        feed.rows.len(),
        selected,
        height,
        area.style,
        |index| {
            let row = feed.rows.get(index);
            row.map_or_else(Line::default, |row| columns.row(&row.object, area))
        },
    );
    lines.extend(table);
    lines.resize(area.height.saturating_sub(facts.len()), Line::default());
    lines.extend(facts);
    lines
}

fn title(model: &TopModel, filter: &StreamFilter) -> String {
    let rule = filter.rule.as_deref();
    let rule = rule.map_or_else(String::new, |rule| format!(" of {}", clean(rule)));
    let ip = filter.ip.as_deref();
    let ip = ip.map_or_else(String::new, |ip| format!(" about {}", clean(ip)));
    let is_all = model.decisions.shows_forwarded || filter.rule.is_some();
    let which = if is_all {
        ""
    } else {
        ", mitigated requests only"
    };
    format!("Decisions{rule}{ip}{which}")
}

/// Says whether the list is a sample.
fn note(model: &TopModel) -> String {
    let feed = &model.decisions;
    if model.paused_for().is_some() {
        return format!(
            "Paused; {} since then.",
            plural(feed.missed, "more decision")
        );
    }
    match feed.skipped {
        0 => "All decisions that match.".to_owned(),
        skipped => format!(
            "A sample: {} of the last second are counted but not shown.",
            plural(skipped, "decision")
        ),
    }
}

/// What does not fit a row: the key, the counter, the network and the user agent.
pub(super) fn facts(decision: &Value) -> String {
    let usage = match (decision.flag("banned"), decision.count("limit")) {
        (true, _) => "banned".to_owned(),
        (false, 0) => String::new(),
        (false, limit) => format!("{} of {}", grouped(decision.count("count")), grouped(limit)),
    };
    let key = if decision.text("rule").is_empty() {
        String::new()
    } else {
        format!("key {}", clean(key_name(decision.text("key"))))
    };
    let status = decision.number("status");
    let status = status.map_or_else(String::new, |status| format!("status {status}"));
    let id = shown(decision, "id");
    let parts = [
        shown(decision, "client_ip"),
        request_text(decision),
        key,
        usage,
        status,
        origin(decision),
        shown(decision, "host"),
        shown(decision, "user_agent"),
        format!("request {id}"),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

// === impl DecisionColumns ===

impl DecisionColumns {
    fn new(width: usize) -> Self {
        let fixed = 1 + TIME + 1 + CLIENT + 1 + ACTION + 1;
        let mut free = width.saturating_sub(fixed);
        let mut take = |wanted: usize, needed: usize| {
            let is_enough = free >= needed;
            if is_enough {
                free -= wanted + 1;
            }
            is_enough
        };
        let has_rule = take(RULE, RULE + 12);
        let has_repeat = take(REPEAT, REPEAT + 12);
        Self {
            request: free,
            has_rule,
            has_repeat,
        }
    }

    fn header(&self) -> Line<'static> {
        let mut cells = vec![
            left("TIME", TIME),
            left("CLIENT", CLIENT),
            left("REQUEST", self.request),
        ];
        cells.extend(self.has_rule.then(|| left("RULE", RULE)));
        cells.push(left("ACTION", ACTION));
        cells.extend(self.has_repeat.then(|| right("TIMES", REPEAT)));
        Line::raw(format!(" {}", cells.join(" ")))
    }

    fn row(&self, decision: &Value, area: DrawArea) -> Line<'static> {
        let time = decision.time("ts").map(clock_text).unwrap_or_default();
        let mut action = area
            .style
            .action(decision.text("action"), decision.flag("dry_run"));
        action.content = left(&action.content, ACTION).into();
        let mut cells = vec![
            Span::raw(left(&time, TIME)),
            Span::raw(left(&shown(decision, "client_ip"), CLIENT)),
            Span::raw(left(&request_text(decision), self.request)),
        ];
        if self.has_rule {
            let rule = decision.object("rule").as_str();
            let rule = rule.map_or_else(|| "–".to_owned(), clean);
            cells.push(Span::raw(left(&rule, RULE)));
        }
        cells.push(action);
        if self.has_repeat {
            let times = match decision.count("repeat") {
                0 | 1 => String::new(),
                repeat => format!("×{}", grouped(repeat)),
            };
            cells.push(Span::raw(right(&times, REPEAT)));
        }
        let mut spans = Vec::new();
        for cell in cells {
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            spans.push(cell);
        }
        Line::from(spans)
    }
}

/// Returns a row of a decision for another list.
pub(super) fn decision_row(decision: &Value, area: DrawArea) -> Line<'static> {
    DecisionColumns::new(area.width).row(decision, area)
}
