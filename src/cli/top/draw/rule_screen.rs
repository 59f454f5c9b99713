//! A rule: its expressions, its last 15 minutes, its hottest keys, and what its bans have in common.

use ratatui::style::Color;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::DrawArea;
use super::ban_screens::{ban_facts, common_part};
use super::chart::{bar, named_sparkline};
use super::layout::{
    cut, grouped, grouped_rate, left, packed, request_text, shown, spread, styled, time_left,
    width_of, wrapped,
};
use super::list::list;
use super::style::action_words;
use crate::cli::records::clean;
use crate::cli::top::action_layer::ActionLayer;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::rule_row::{RuleRow, limit_text};
use crate::cli::top::screen::{ListedRow, RowKind, key_name};

/// A screen of at least this height has blank lines between its parts, and one of at least the second height has
/// sparklines.
const SPACIOUS: usize = 24;
const CHARTED: usize = 16;
/// The minimum number of lines for the keys, with their header.
const MIN_KEYS: usize = 4;
/// The share of the limit from which a bar is yellow.
const NEAR_LIMIT: f64 = 0.8;
const LABEL: usize = 12;
const USED: usize = 10;
const BANNED: usize = 8;

/// Returns the lines of the screen of a rule.
pub(super) fn rule(model: &TopModel, name: &str, area: DrawArea) -> Vec<Line<'static>> {
    let Some(row) = model.rules.iter().find(|row| row.name == name) else {
        let text = format!("There is no rule {}.", clean(name));
        return vec![Line::raw(cut(&text, area.width))];
    };
    let blank = (area.height >= SPACIOUS).then(Line::default);
    let mut lines = settings(row, model.rules.len(), area);
    if area.height >= CHARTED && area.width >= 60 {
        lines.extend(blank.clone());
        lines.extend(charts(row, area));
    }
    let mut below: Vec<_> = blank.clone().into_iter().collect();
    below.extend(distribution(model, area));
    below.extend(common(model, name, area));
    below.extend(candidate(model, row, area));
    below.extend(selected(model, area));
    lines.extend(blank);
    lines.truncate(area.height.saturating_sub(MIN_KEYS));
    let free = area.height.saturating_sub(lines.len());
    below.truncate(free.saturating_sub(MIN_KEYS));
    let height = free.saturating_sub(below.len());
    let mut keys = keys(model, row, DrawArea { height, ..area });
    keys.truncate(height);
    keys.resize(height, Line::default());
    lines.extend(keys);
    lines.extend(below);
    lines
}

/// Name, expressions, key, limit and action.
fn settings(row: &RuleRow, count: usize, area: DrawArea) -> Vec<Line<'static>> {
    let object = &row.object;
    let place = format!("rule {} of {count}   ← → other rules", row.order + 1);
    let free = area.width.saturating_sub(width_of(&place) + 1);
    let signs = row.signs();
    let name = format!("{}  {signs}", clean(&row.name));
    let name = styled(cut(name.trim_end(), free), area.style.bold());
    let mut lines = vec![spread(name, place.into(), area.width)];
    for (label, member) in [("counts     ", "count"), ("mitigates  ", "mitigate")] {
        let text = shown(object, member);
        if !text.is_empty() {
            let text = wrapped(label, &text, area.width, 2);
            lines.extend(text.into_iter().map(Line::raw));
        }
    }
    let key: Vec<_> = object
        .list("key")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let key = match &*key {
        [] => "all requests".to_owned(),
        parts => clean(&parts.join(" + ")),
    };
    let mut limit = vec![row.limit()];
    limit.extend(object.number("burst").map(|burst| format!("burst {burst}")));
    limit.push(shown(object, "algorithm"));
    limit.retain(|part| !part.is_empty());
    let parts = vec![
        Span::raw(cut(&format!("key        {key}"), area.width)),
        Span::raw(format!("limit {}", limit.join(", "))),
        Span::raw(action(row)),
    ];
    lines.extend(packed(parts, 4, area.width));
    lines
}

/// The action with the length of its bans.
fn action(row: &RuleRow) -> String {
    let object = &row.object;
    let escalate = object.list("escalate").iter().filter_map(Value::as_str);
    let escalate = escalate.collect::<Vec<_>>().join(", ");
    let duration = match (object.text("duration"), &*escalate) {
        ("", "") => return row.action(),
        (_, escalate) if !escalate.is_empty() => clean(escalate),
        (duration, _) => clean(duration),
    };
    format!("{}, ban {duration}", row.action())
}

fn charts(row: &RuleRow, area: DrawArea) -> Vec<Line<'static>> {
    let action = row.object.text("action");
    let name = if row.is_dry_run() {
        "would act".to_owned()
    } else {
        action_words(action).1
    };
    let (width, style, layer) = (area.width, area.style, ActionLayer::of(action));
    let chart = |name, series, now, layer| named_sparkline(name, series, now, layer, width, style);
    vec![
        chart(
            "matched",
            &row.matched,
            row.matched_per_s,
            ActionLayer::Forwarded,
        ),
        chart(&name, &row.mitigated, row.acting_per_s(), layer),
    ]
}

fn keys(model: &TopModel, rule: &RuleRow, area: DrawArea) -> Vec<Line<'static>> {
    let rows = model.figures.rows.as_deref().unwrap_or_default();
    if rows.is_empty() {
        let text = match (&model.figures.rows, rule.keys) {
            (None, _) => "Reading the hottest keys.",
            (_, None) => "This rule has no counter: it acts on every match.",
            _ => "No key has a count above 0.",
        };
        return vec![Line::raw(cut(text, area.width))];
    }
    let columns = KeyColumns::new(area.width);
    let limit = rows.first().map_or(0, |row| row.object.count("limit"));
    let mut header = vec![
        left(" Hottest keys", columns.key + 1),
        left(
            &format!("used of {}", grouped(limit)),
            columns.bar + 1 + USED,
        ),
        left("banned", BANNED),
        left("note", columns.note),
    ];
    header.truncate(if columns.note > 0 { 4 } else { 3 });
    let header = Line::styled(header.join(" "), area.style.bold());
    let selected = model.selected_index();
    list(
        header,
        rows.len(),
        selected,
        area.height,
        area.style,
        |index| {
            let row = rows.get(index);
            row.map_or_else(Line::default, |row| {
                key_row(row, rule, &columns, model, area)
            })
        },
    )
}

/// The widths of the columns that depend on the width of the screen.
struct KeyColumns {
    key: usize,
    bar: usize,
    /// 0 if it is hidden.
    note: usize,
}

// === impl KeyColumns ===

impl KeyColumns {
    fn new(width: usize) -> Self {
        let bar = match width {
            0..60 => 4,
            60..90 => 8,
            _ => 12,
        };
        let free = width.saturating_sub(1 + 1 + bar + 1 + USED + 1 + BANNED);
        let note = if width < 60 { 0 } else { free / 3 };
        Self {
            key: free.saturating_sub(note + usize::from(note > 0)),
            bar,
            note,
        }
    }
}

fn key_row(
    row: &ListedRow,
    rule: &RuleRow,
    columns: &KeyColumns,
    model: &TopModel,
    area: DrawArea,
) -> Line<'static> {
    let (count, limit) = (row.object.count("count"), row.object.count("limit"));
    let banned = time_left(&row.object, "banned_until", model.gateway_now());
    let share = match (&banned, limit) {
        (Some(_), _) => 2.0,
        (None, 0) => 0.0,
        (None, limit) => count as f64 / limit as f64,
    };
    let used = if banned.is_some() {
        format!("over {}", grouped(limit))
    } else {
        format!("{} of {}", grouped(count), grouped(limit))
    };
    let color = if share > 1.0 {
        area.style
            .layer(ActionLayer::of(rule.object.text("action")))
    } else if share >= NEAR_LIMIT {
        area.style.colored(Color::Yellow)
    } else {
        area.style.colored(Color::Reset)
    };
    let mut spans = vec![
        Span::raw(left(&clean(key_name(&row.key)), columns.key) + " "),
        styled(bar(share, columns.bar), color),
        Span::raw(" "),
        Span::raw(left(&used, USED) + " "),
        Span::raw(left(banned.as_deref().unwrap_or("–"), BANNED)),
    ];
    if columns.note > 0 {
        let note = shown(&row.object, "note");
        let note = note.replace(" requests/", "/").replace(" request/", "/");
        spans.push(Span::raw(" ".to_owned() + &left(&note, columns.note)));
    }
    Line::from(spans)
}

fn labelled(label: &str, text: &str, area: DrawArea, most: usize) -> Vec<Line<'static>> {
    let label = left(label, LABEL);
    let lines = wrapped(&label, text, area.width, most);
    lines.into_iter().map(Line::raw).collect()
}

/// How many keys use which share of the limit.
fn distribution(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let about = model.figures.about.as_ref();
    let rule = about.map_or(&Value::Null, |about| about.object("rule"));
    let distribution = rule.object("distribution");
    let labels = distribution.list("labels").iter().filter_map(Value::as_str);
    let keys = distribution.list("keys").iter().filter_map(Value::as_u64);
    let mut parts = vec![Span::raw(left("All keys", LABEL - 2))];
    parts.extend(
        labels
            .zip(keys)
            .map(|(label, keys)| Span::raw(format!("{}  {}", clean(label), grouped(keys)))),
    );
    if parts.len() == 1 {
        return Vec::new();
    }
    packed(parts, 2, area.width)
}

/// What the bans of the rule have in common.
fn common(model: &TopModel, name: &str, area: DrawArea) -> Vec<Line<'static>> {
    let about = model.figures.about.as_ref();
    let bans = about.map_or(&Value::Null, |about| about.object("bans"));
    let common = bans.list("common").iter();
    let mut own = common.filter(|part| part.text("rule") == name);
    let Some(part) = own.next() else {
        return Vec::new();
    };
    let rule = model.rules.iter().find(|row| row.name == name);
    let count = rule.and_then(|row| row.bans);
    labelled("In common", &common_part(part, count), area, 1)
}

/// What the candidate would do differently.
fn candidate(model: &TopModel, row: &RuleRow, area: DrawArea) -> Vec<Line<'static>> {
    let candidate = row.object.object("candidate");
    if !candidate.is_object() {
        return Vec::new();
    }
    let (stricter, laxer) = row.candidate_per_s.unwrap_or_default();
    let about = model.figures.about.as_ref();
    let details = about.map_or(&Value::Null, |about| about.object("rule"));
    let differing = details.object("candidate").number("differing_keys");
    let differing = differing.map_or_else(String::new, |keys| {
        format!(", differs on {keys} of the hottest keys")
    });
    let text = format!(
        "{} {}: also refuses {}/s, would admit {}/s{differing}",
        shown(candidate, "algorithm"),
        limit_text(candidate),
        grouped_rate(stricter),
        grouped_rate(laxer),
    );
    labelled("Candidate", &text, area, 2)
}

/// Why the selected key is banned, or its newest request.
fn selected(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let Some(row) = model.selected_row() else {
        return Vec::new();
    };
    let about = model.figures.about.as_ref();
    let bans = about.map_or(&Value::Null, |about| about.object("bans"));
    let mut bans = bans.list("items").iter();
    let ban = bans.find(|ban| ban.text("key") == row.key);
    let sample = row.object.object("sample");
    let text = match ban {
        Some(ban) if row.is_banned() => {
            ban_facts(&ListedRow::of(RowKind::Ban, ban), model.gateway_now())
        }
        _ if sample.is_object() => newest_request(sample),
        _ => "no request with this key is known".to_owned(),
    };
    labelled("Selected", &text, area, 2)
}

fn newest_request(sample: &Value) -> String {
    let url = shown(sample, "url");
    let request = format!("{}{url}", request_text(sample));
    let status = sample.number("status");
    let status = status.map_or_else(String::new, |status| format!(", origin status {status}"));
    let agent = sample.object("headers").text("user-agent");
    let agent = if agent.is_empty() {
        String::new()
    } else {
        format!(", {}", clean(agent))
    };
    format!("newest request {request}{status}{agent}")
}
