//! The active bans, and one ban.

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::DrawArea;
use super::layout::{
    age, cut, grouped, left, packed, percent, plural, right, shown, styled, time_left, time_text,
    wrapped,
};
use super::list::list;
use crate::cli::records::clean;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::{BanSearch, ListedRow, key_name};
use crate::clock::Timestamp;

const RULE: usize = 18;
const ACTION: usize = 13;
const LEFT: usize = 8;
const MITIGATED: usize = 9;
/// The gateway counts addresses up to this number.
const MAX_ADDRESSES: u64 = 64;

/// Returns the lines of the list of bans, with the facts of the selected one.
pub(super) fn bans(model: &TopModel, search: &BanSearch, area: DrawArea) -> Vec<Line<'static>> {
    let mut lines = title(model, search, area);
    let rows = model.figures.rows.as_deref();
    let Some(rows) = rows.filter(|rows| !rows.is_empty()) else {
        let text = match (rows, search) {
            (None, _) => "Reading the bans.",
            (_, search) if search.text.is_some() => "No ban contains this text.",
            (_, search) if search.is_likely_false => "No ban is a likely false positive.",
            _ => "No active bans.",
        };
        lines.push(Line::raw(cut(text, area.width)));
        return lines;
    };
    let facts = selected_facts(model, area);
    let used = lines.len() + facts.len() + 1;
    let height = area.height.saturating_sub(used);
    let key = area.width.saturating_sub(1 + RULE + 1 + 1 + LEFT);
    let is_narrow = area.width < 70;
    let key = if is_narrow {
        key
    } else {
        key.saturating_sub(ACTION + 1 + MITIGATED + 1)
    };
    let header = if is_narrow {
        format!(
            " {} {} {}",
            left("RULE", RULE),
            left("KEY", key),
            right("LEFT", LEFT)
        )
    } else {
        format!(
            " {} {} {} {} {}",
            left("RULE", RULE),
            left("KEY", key),
            left("ACTION", ACTION),
            right("LEFT", LEFT),
            right("MITIGATED", MITIGATED)
        )
    };
    let selected = model.selected_index();
    let now = model.gateway_now();
    let table = list(
        Line::raw(header),
        rows.len(),
        selected,
        height,
        area.style,
        |index| {
            let row = rows.get(index);
            row.map_or_else(Line::default, |row| ban_row(row, key, is_narrow, now, area))
        },
    );
    lines.extend(table);
    lines.resize(area.height.saturating_sub(facts.len()), Line::default());
    lines.extend(facts);
    lines
}

/// Which bans are listed, how many there are, and what most of a rule share.
fn title(model: &TopModel, search: &BanSearch, area: DrawArea) -> Vec<Line<'static>> {
    let page = model.figures.about.as_ref().unwrap_or(&Value::Null);
    let view = if search.is_likely_false {
        "Likely false positives"
    } else {
        "Bans"
    };
    let rule = search.rule.as_deref();
    let rule = rule.map_or_else(String::new, |rule| format!(" of {}", clean(rule)));
    let text = search.text.as_deref();
    let text = text.map_or_else(String::new, |text| format!(" with \"{}\"", clean(text)));
    let counts = if page.is_null() {
        String::new()
    } else {
        format!(
            ": {}; all {}, likely false positives {}, by hand {}",
            grouped(page.count("total")),
            grouped(page.count("all")),
            grouped(page.count("likely_false_positives")),
            grouped(page.count("manual"))
        )
    };
    let title = cut(&format!("{view}{rule}{text}{counts}"), area.width);
    let mut lines = vec![Line::styled(title, area.style.bold())];
    let parts = page.list("common").iter();
    let parts =
        parts.filter(|part| rule.is_empty() || Some(part.text("rule")) == search.rule.as_deref());
    lines.extend(parts.take(2).map(|part| {
        let text = format!("{}: {}", shown(part, "rule"), common_part(part, None));
        Line::raw(cut(&text, area.width))
    }));
    lines
}

/// The key part that most bans of a rule share.
pub(super) fn common_part(part: &Value, bans: Option<u64>) -> String {
    let share = percent(part.number("share_ratio").unwrap_or_default());
    let bans = bans.map_or_else(
        || "bans".to_owned(),
        |bans| format!("{} bans", grouped(bans)),
    );
    format!(
        "{share} of the {bans}: {} {}",
        shown(part, "field"),
        shown(part, "value")
    )
}

pub(super) fn ban_row(
    row: &ListedRow,
    key: usize,
    is_narrow: bool,
    now: Timestamp,
    area: DrawArea,
) -> Line<'static> {
    let object = &row.object;
    let time = time_left(object, "until", now).unwrap_or_default();
    let mut action = area
        .style
        .action(object.text("action"), object.flag("dry_run"));
    action.content = left(&action.content, ACTION).into();
    let mut spans = vec![
        Span::raw(left(&clean(&row.rule), RULE) + " "),
        Span::raw(left(&clean(key_name(&row.key)), key) + " "),
    ];
    if !is_narrow {
        spans.extend([action, Span::raw(" ")]);
    }
    spans.push(Span::raw(right(&time, LEFT)));
    if !is_narrow {
        let mitigated = grouped(object.count("mitigated"));
        spans.push(Span::raw(" ".to_owned() + &right(&mitigated, MITIGATED)));
    }
    Line::from(spans)
}

fn selected_facts(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let Some(row) = model.selected_row() else {
        return Vec::new();
    };
    let facts = ban_facts(row, model.gateway_now());
    let lines = wrapped("Selected    ", &facts, area.width, 2);
    lines.into_iter().map(Line::raw).collect()
}

/// Why a ban exists and what it does, in one line.
pub(super) fn ban_facts(row: &ListedRow, now: Timestamp) -> String {
    let ban = &row.object;
    let mitigated = match age(ban, "last_seen", now) {
        Some(age) => format!(
            "{} mitigated, last {age} ago",
            grouped(ban.count("mitigated"))
        ),
        None => format!("{} mitigated", grouped(ban.count("mitigated"))),
    };
    let mut facts = vec![
        Some(shown(ban, "cause")).filter(|cause| !cause.is_empty()),
        Some(mitigated),
        Some(format!("offence {}", ban.count("offence"))),
        addresses(ban),
    ];
    if ban.flag("dry_run") {
        facts.push(Some("dry run, mitigates nothing".to_owned()));
    }
    if ban.text("scope") == "node" {
        facts.push(Some("on this gateway only".to_owned()));
    }
    facts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// How many addresses share the key. `None` for one.
fn addresses(ban: &Value) -> Option<String> {
    match ban.count("addresses") {
        0 | 1 => None,
        count if count >= MAX_ADDRESSES => Some(format!("{count} or more addresses")),
        count => Some(format!("{count} addresses")),
    }
}

/// Returns the lines of the screen of one ban.
pub(super) fn ban(model: &TopModel, rule: &str, key: &str, area: DrawArea) -> Vec<Line<'static>> {
    let title = format!("Ban of {} by {}", clean(key_name(key)), clean(rule));
    let mut lines: Vec<_> = wrapped("", &title, area.width, 3)
        .into_iter()
        .map(|line| Line::styled(line, area.style.bold()))
        .collect();
    lines.push(Line::default());
    let Some(row) = model.selected_row() else {
        let is_read = model.figures.rows.is_some();
        lines.push(Line::raw(if is_read {
            "The ban has ended."
        } else {
            "Reading the ban."
        }));
        return lines;
    };
    let (object, now) = (&row.object, model.gateway_now());
    let ends = time_left(object, "until", now).unwrap_or_default();
    let until = time_text(object, "until", now).unwrap_or_default();
    let mut facts = vec![
        ("ends in", format!("{ends}, at {until} UTC")),
        ("cause", shown(object, "cause")),
        ("offence", object.count("offence").to_string()),
        ("mitigated", plural(object.count("mitigated"), "request")),
        ("by", shown(object, "by")),
    ];
    facts.extend(age(object, "since", now).map(|age| ("started", format!("{age} ago"))));
    facts.extend(age(object, "last_seen", now).map(|age| ("last request", format!("{age} ago"))));
    facts.extend(addresses(object).map(|text| ("shared by", text)));
    if model.status.object("store").text("kind") == "redis" {
        let scope = match object.text("scope") {
            "node" => "this gateway only",
            _ => "every gateway of the fleet",
        };
        facts.push(("applies to", scope.to_owned()));
    }
    let action = area
        .style
        .action(object.text("action"), object.flag("dry_run"));
    lines.extend(packed(
        vec![styled(left("action", 14), area.style.bold()), action],
        0,
        area.width,
    ));
    for (label, text) in facts {
        let text = if text.is_empty() { "not known" } else { &text };
        let text = wrapped(&left(label, 14), text, area.width, 3);
        lines.extend(text.into_iter().map(Line::raw));
    }
    lines
}
