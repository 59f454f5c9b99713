//! What is known about a client: every ban that applies, and its newest decisions.

use ratatui::style::Color;
use ratatui::text::Line;
use serde_json::Value;

use super::DrawArea;
use super::ban_screens::{ban_facts, ban_row};
use super::decision_screen::{decision_row, facts};
use super::layout::{cut, grouped, origin, plural, shown, time_left, time_text, wrapped};
use super::list::list;
use crate::cli::records::clean;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::RowKind;

/// Returns the lines of the screen of a client.
pub(super) fn client(model: &TopModel, id: &str, area: DrawArea) -> Vec<Line<'static>> {
    let title = cut(&format!("Client {}", clean(id)), area.width);
    let mut lines = vec![Line::styled(title, area.style.bold())];
    let Some(client) = &model.figures.about else {
        lines.push(Line::raw("Looking for the client."));
        return lines;
    };
    let about = wrapped("", &describe(model, client), area.width, 3);
    lines.extend(about.into_iter().map(Line::raw));
    lines.extend(exemption(model, client, area));
    lines.push(Line::default());
    let rows = model.figures.rows.as_deref().unwrap_or_default();
    if rows.is_empty() {
        let text = "enter lists the bans that contain this text";
        lines.push(Line::raw(cut(text, area.width)));
        return lines;
    }
    let facts = selected_facts(model, area);
    let height = area.height.saturating_sub(lines.len() + facts.len() + 1);
    let bans = client.list("bans").len();
    let header = format!(
        " {}, then the newest {}",
        plural(bans as u64, "ban"),
        plural((rows.len() - bans.min(rows.len())) as u64, "decision")
    );
    let is_narrow = area.width < 70;
    let key = area.width.saturating_sub(if is_narrow { 29 } else { 53 });
    let (selected, now) = (model.selected_index(), model.gateway_now());
    let header = Line::raw(cut(&header, area.width));
    let table = list(
        header,
        rows.len(),
        selected,
        height,
        area.style,
        |index| match rows.get(index) {
            Some(row) if row.kind == RowKind::Ban => ban_row(row, key, is_narrow, now, area),
            Some(row) => decision_row(&row.object, area),
            None => Line::default(),
        },
    );
    lines.extend(table);
    lines.resize(area.height.saturating_sub(facts.len()), Line::default());
    lines.extend(facts);
    lines
}

/// Where the client is, how many bans apply, and what this gateway did with it.
fn describe(model: &TopModel, client: &Value) -> String {
    if let Some(why) = client.object("unknown").as_str() {
        return format!("{}.", clean(why));
    }
    let place = [
        shown(client, "ip"),
        origin(client),
        shown(client, "as_name"),
    ];
    let place = place.into_iter().filter(|part| !part.is_empty());
    let place = place.collect::<Vec<_>>().join(", ");
    let bans = match client.list("bans").len() {
        0 => "No ban applies".to_owned(),
        1 => "1 ban applies".to_owned(),
        count => format!("{count} bans apply"),
    };
    let mut sentences = vec![place, bans];
    if let Some(start) = time_text(client, "window_start", model.gateway_now()) {
        let is_fleet = model.status.object("store").text("kind") == "redis";
        let node = if is_fleet { " on this node" } else { "" };
        let forwarded = client.number("forwarded");
        let forwarded = forwarded.map_or_else(String::new, |count| {
            format!("{} forwarded, ", grouped(count as u64))
        });
        let mitigated = grouped(client.count("mitigated"));
        sentences.push(format!(
            "Since {start}{node}: {forwarded}{mitigated} mitigated"
        ));
    }
    let sentences = sentences.into_iter().filter(|text| !text.is_empty());
    sentences
        .map(|text| text + ".")
        .collect::<Vec<_>>()
        .join(" ")
}

fn exemption(model: &TopModel, client: &Value, area: DrawArea) -> Option<Line<'static>> {
    let left = time_left(client, "exempt_until", model.gateway_now())?;
    let text = format!("○ Exempt for another {left}: no rule acts on this address.");
    let style = area.style.colored(Color::Yellow);
    Some(Line::styled(cut(&text, area.width), style))
}

fn selected_facts(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let Some(row) = model.selected_row() else {
        return Vec::new();
    };
    let text = match row.kind {
        RowKind::Ban => ban_facts(row, model.gateway_now()),
        _ => facts(&row.object),
    };
    let lines = wrapped("Selected    ", &text, area.width, 2);
    lines.into_iter().map(Line::raw).collect()
}
