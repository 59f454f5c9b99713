//! The first screen: traffic, what needs attention, and the rules.

use ratatui::style::Color;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::DrawArea;
use super::chart::{named_sparkline, split_bar, time_axis};
use super::layout::{age, cut, grouped, grouped_rate, left, packed, percent, shown, styled};
use super::rule_table::rule_table;
use super::style::layer_char;
use crate::cli::top::action_layer::ActionLayer;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;

/// A screen of at least this height has blank lines between its parts, and one of at least the second height has
/// sparklines.
const SPACIOUS: usize = 24;
const CHARTED: usize = 14;
/// The minimum number of lines for the rules.
const MIN_RULES: usize = 6;
/// The maximum number of entries that need attention.
const MAX_ENTRIES: usize = 5;

/// Returns the lines of the overview.
pub(super) fn overview(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let mut lines = traffic(model, area);
    let blank = (area.height >= SPACIOUS).then(Line::default);
    if area.height >= CHARTED && area.width >= 60 {
        lines.extend(blank.clone());
        lines.extend(charts(model, area));
    }
    lines.extend(blank.clone());
    let free = area.height.saturating_sub(lines.len() + MIN_RULES);
    let entries = attention(model, area, free.min(MAX_ENTRIES));
    if !entries.is_empty() {
        lines.extend(entries);
        lines.extend(blank);
    }
    lines.truncate(area.height.saturating_sub(MIN_RULES));
    let height = area.height.saturating_sub(lines.len());
    lines.extend(rule_table(model, DrawArea { height, ..area }));
    lines
}

/// The rates of the layers in the newest tick.
fn layer_rates(model: &TopModel) -> Vec<(ActionLayer, f64)> {
    let actions = model.tick.object("actions_per_s").as_object();
    let rate = |layer| {
        let own = actions.into_iter().flatten();
        let own = own.filter(|(action, _)| ActionLayer::of(action) == layer);
        own.filter_map(|(_, rate)| rate.as_f64()).sum()
    };
    ActionLayer::ALL.map(|layer| (layer, rate(layer))).to_vec()
}

/// Rates and shares, the split bar, and the state of the process.
fn traffic(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let style = area.style;
    let rates = layer_rates(model);
    let total: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let share = |rate: f64| if total > 0.0 { rate / total } else { 0.0 };
    let requests = model.tick.number("requests_per_s");
    let requests = requests.map_or_else(|| "–".to_owned(), grouped_rate);
    let mut parts = vec![styled(left(&format!("{requests} req/s"), 11), style.bold())];
    for (layer, rate) in &rates {
        if *layer == ActionLayer::Challenged && *rate == 0.0 && !has_challenge(model) {
            continue;
        }
        let shown = left(&percent(share(*rate)), 5);
        let text = format!("{} {} {shown}", layer_char(*layer), layer.name());
        parts.push(styled(text, style.layer(*layer)));
    }
    let mut lines = packed(parts, 2, area.width);
    let shares: Vec<_> = rates
        .iter()
        .map(|(layer, rate)| (*layer, share(*rate)))
        .collect();
    lines.push(split_bar(&shares, area.width, style));
    lines.extend(packed(health(model, area), 4, area.width));
    lines
}

fn has_challenge(model: &TopModel) -> bool {
    let mut rules = model.rules.iter();
    rules.any(|rule| rule.object.text("action") == "challenge")
}

fn health(model: &TopModel, area: DrawArea) -> Vec<Span<'static>> {
    let (tick, status) = (&model.tick, &model.status);
    let latency = |name: &str| {
        let millis = tick.object("latency_ms").number(name);
        millis.map_or_else(
            || "–".to_owned(),
            |millis| format!("{} ms", grouped_rate(millis)),
        )
    };
    let of = |now: u64, max: u64| format!("{} of {}", grouped(now), grouped(max));
    let (connections, held) = (status.object("connections"), status.object("held"));
    let mut parts = vec![
        Span::raw(format!("p50 {}  p99 {}", latency("p50"), latency("p99"))),
        Span::raw(format!(
            "connections {}",
            of(tick.count("connections"), connections.count("max"))
        )),
        Span::raw(format!("held {}", of(held.count("now"), held.count("max")))),
    ];
    parts.extend(certificate(model, area));
    parts
}

/// The certificate that expires first.
fn certificate(model: &TopModel, area: DrawArea) -> Option<Span<'static>> {
    let certificates = model.status.list("certificates").iter();
    let first = certificates.filter_map(|own| own.time("not_after")).min()?;
    let days = first.since(model.gateway_now()).as_secs() / 86_400;
    let text = match days {
        0 => "certificate under 1 day".to_owned(),
        1 => "certificate 1 day".to_owned(),
        days => format!("certificate {} days", grouped(days)),
    };
    let color = match days {
        0..7 => Color::Red,
        7..21 => Color::Yellow,
        _ => Color::Reset,
    };
    Some(styled(text, area.style.colored(color)))
}

fn charts(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let (width, style, history) = (area.width, area.style, &model.history);
    let rates = layer_rates(model);
    let sum = |is_mitigated: bool| -> f64 {
        let own = rates.iter().filter(|(layer, _)| {
            *layer != ActionLayer::Other && layer.is_mitigated() == is_mitigated
        });
        own.map(|(_, rate)| rate).sum()
    };
    let chart = |name, series, now, layer| named_sparkline(name, series, now, layer, width, style);
    vec![
        chart(
            "mitigated",
            &history.mitigated,
            sum(true),
            ActionLayer::Blocked,
        ),
        chart(
            "forwarded",
            &history.forwarded,
            sum(false),
            ActionLayer::Forwarded,
        ),
        time_axis(history, width),
    ]
}

/// What needs attention, most urgent first, in at most `most` lines.
fn attention(model: &TopModel, area: DrawArea, most: usize) -> Vec<Line<'static>> {
    let entries = model.status.list("attention");
    let hidden = entries.len().saturating_sub(most);
    // The last line says how many entries are hidden.
    let count = if hidden > 0 {
        most.saturating_sub(1)
    } else {
        most
    };
    let mut lines: Vec<_> = entries
        .iter()
        .take(count)
        .map(|entry| attention_entry(entry, model, area))
        .collect();
    if hidden > 0 && most > 0 {
        let hidden = entries.len() - count;
        lines.push(Line::raw(format!(
            "  and {hidden} more: see lockgate status"
        )));
    }
    lines
}

fn attention_entry(entry: &Value, model: &TopModel, area: DrawArea) -> Line<'static> {
    let (sign, color) = match entry.text("level") {
        "crit" => ("▲", Color::Red),
        "warn" => ("◆", Color::Yellow),
        _ => ("○", Color::Reset),
    };
    let age = age(entry, "since", model.gateway_now()).unwrap_or_default();
    let mut text = format!("{} {}", left(&age, 7), shown(entry, "text"));
    if entry.text("link") == "bans:likely_false_positives" {
        text.push_str(": f shows them");
    }
    if !entry.text("detail").is_empty() {
        text = format!("{text}. {}", shown(entry, "detail"));
    }
    let text = cut(&text, area.width.saturating_sub(2));
    Line::from(vec![
        styled(format!("{sign} "), area.style.colored(color)),
        Span::raw(text),
    ])
}
