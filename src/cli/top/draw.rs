//! Turns the state of `lockgate top` into lines. Text of clients is escaped. Colour never carries a meaning alone.

mod table;

use std::time::Duration;

use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use serde_json::Value;

use self::table::{body, tail};
use super::model::{ConfirmedAction, TopModel, TopPrompt, TopScreen};
use crate::cli::records::{clean, duration, rate};
use crate::clock::Rfc3339;

/// The key help of each screen.
const OVERVIEW_HELP: &str = "q quit  ↑↓ select  enter open  / find  b bans  o upstreams  s sort  p pause  r reload  ? more keys";
const KEYS_HELP: &str =
    "esc back  ↑↓ select  ←→ rules  u unban  B ban  z undo  / find  p pause  ? more keys";

/// All keys.
const ALL_KEYS: &str = "\
q          quit; in a rule, go back. Ctrl-C always quits
↑ ↓ j k    select a row; pgup and pgdn by ten
← →        previous or next rule
enter      open the selected rule or the rule of a ban
esc        go back
/          find a rule, or the bans that contain a text
u          unban the selected key; asks first
z          undo the last unban
B          ban the selected key by hand; asks for a duration
b f o      bans, likely false positives, upstreams
p          pause
s S        sort, reverse
+ -        refresh every 1, 2, 5 or 10 s
r          reload the configuration; asks first";

/// How the terminal may be used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopStyle {
    pub(super) has_color: bool,
    pub(super) is_ascii: bool,
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, style: TopStyle) {
    let area = frame.area();
    let lines = lines(model, style, area.width.into(), area.height.into());
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns the lines of a screen with this size.
fn lines(model: &TopModel, style: TopStyle, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::raw(head(model, style, width)), style.rule(width)];
    let footer = footer(model, style, width);
    let room = height.saturating_sub(lines.len() + footer.len());
    let mut content = match model.screen {
        TopScreen::Overview => summary(model, style),
        _ => Vec::new(),
    };
    content.truncate(room.saturating_sub(2));
    let left = room.saturating_sub(content.len());
    content.extend(match &model.screen {
        TopScreen::Help => ALL_KEYS
            .lines()
            .map(|line| Line::raw(style.text(line)))
            .collect(),
        _ => body(model, style, width, left),
    });
    content.resize(room, Line::default());
    if model.lost_for().is_some() {
        content = content
            .into_iter()
            .map(|line| line.style(style.dim()))
            .collect();
    }
    lines.extend(content);
    lines.extend(footer);
    lines
}

fn head(model: &TopModel, style: TopStyle, width: usize) -> String {
    let text = |name: &str| {
        model
            .status
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("-")
    };
    let uptime = model
        .status
        .get("uptime_s")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let uptime = duration(Duration::from_secs(uptime));
    let left = format!(
        "lockgate {}  {}  up {uptime}",
        clean(text("version")),
        clean(text("instance"))
    );
    let time = Rfc3339(model.now).to_string();
    let time = time.get(11..19).unwrap_or_default().to_owned();
    let state = match (model.lost_for(), model.paused_for()) {
        (Some(silence), _) => format!("○ lost, last update {} ago, retrying", duration(silence)),
        (None, Some(pause)) => format!("paused, {} s", pause.as_secs()),
        (None, None) => format!("● live, every {} s", model.refresh_interval().as_secs()),
    };
    let right = style.text(&format!("{time} UTC  {state}"));
    let gap = width
        .saturating_sub(left.chars().count() + right.chars().count())
        .max(2);
    format!("{left}{}{right}", " ".repeat(gap))
}

/// The figures of the overview and the entries that need attention.
fn summary(model: &TopModel, style: TopStyle) -> Vec<Line<'static>> {
    let number = |pointer: &str| model.tick.pointer(pointer).and_then(Value::as_f64);
    let action = |names: &[&str]| {
        let rates = names
            .iter()
            .filter_map(|name| number(&format!("/actions_per_s/{name}")));
        rate(rates.sum())
    };
    let shown = |pointer: &str| number(pointer).map_or_else(|| "-".to_owned(), rate);
    let mut lines = vec![
        Line::raw(format!(
            "{} requests/s   forwarded {}  delayed {}  shadowed {}  blocked {}  challenged {}  other {}",
            shown("/requests_per_s"),
            action(&["forward", "allow", "tag", "log"]),
            action(&["delay", "tarpit"]),
            action(&["shadow", "divert"]),
            action(&["block", "close"]),
            action(&["challenge"]),
            action(&["own"]),
        )),
        Line::raw(format!(
            "p50 {} ms  p99 {} ms   {} connections   store {} {}   rules {}",
            shown("/latency_ms/p50"),
            shown("/latency_ms/p99"),
            shown("/connections"),
            status_text(model, "/store/kind"),
            status_text(model, "/store/state"),
            model.sort_name(),
        )),
        Line::default(),
    ];
    let entries = model.status.get("attention").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().take(5);
    lines.extend(entries.map(|entry| attention(entry, style)));
    lines.push(Line::default());
    lines
}

fn status_text(model: &TopModel, pointer: &str) -> String {
    let text = model.status.pointer(pointer).and_then(Value::as_str);
    clean(text.unwrap_or("-"))
}

fn attention(entry: &Value, style: TopStyle) -> Line<'static> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let (sign, color) = match text("level") {
        "crit" => ("▲", Color::Red),
        "warn" => ("◆", Color::Yellow),
        _ => ("○", Color::Reset),
    };
    let line = format!(
        "{} {}. {}",
        style.text(sign),
        clean(text("text")),
        clean(text("detail"))
    );
    Line::styled(line, style.colored(color))
}

fn footer(model: &TopModel, style: TopStyle, width: usize) -> Vec<Line<'static>> {
    let asked = model.prompt.as_ref().map(|prompt| match prompt {
        TopPrompt::Confirm(ConfirmedAction::Unban(rule, key)) => {
            format!("Unban {} from {}?  y  n", clean(key), clean(rule))
        }
        TopPrompt::Confirm(ConfirmedAction::Reload) => "Reload the configuration?  y  n".to_owned(),
        TopPrompt::Duration {
            target: (rule, key),
            text,
        } => {
            format!(
                "Ban {} in {} for: {}_  enter  esc",
                clean(key),
                clean(rule),
                clean(text)
            )
        }
        TopPrompt::Find(text) => format!("Find: {}_  enter  esc", clean(text)),
    });
    let notice = asked
        .or_else(|| model.notice().map(clean))
        .unwrap_or_default();
    let help = match model.screen {
        TopScreen::Overview => OVERVIEW_HELP,
        _ => KEYS_HELP,
    };
    let help = style.text(help);
    vec![
        Line::raw(tail(&notice, width)),
        style.rule(width),
        Line::raw(tail(&help, width)),
    ]
}

// === impl TopStyle ===

impl TopStyle {
    fn rule(self, width: usize) -> Line<'static> {
        Line::raw(if self.is_ascii { "-" } else { "─" }.repeat(width))
    }

    /// Replaces signs that fonts may lack.
    fn text(self, text: &str) -> String {
        if !self.is_ascii {
            return text.to_owned();
        }
        let ascii = |c: char| match c {
            '▲' => "!".to_owned(),
            '◆' => "*".to_owned(),
            '●' | '○' => "o".to_owned(),
            '▶' => ">".to_owned(),
            '↑' => "up".to_owned(),
            '↓' => "down".to_owned(),
            '←' => "left ".to_owned(),
            '→' => "right".to_owned(),
            '–' => "-".to_owned(),
            c => c.to_string(),
        };
        text.chars().map(ascii).collect()
    }

    fn colored(self, color: Color) -> Style {
        if self.has_color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

#[cfg(test)]
mod tests;
