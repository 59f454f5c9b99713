//! The head of each screen, the line for questions and results, and the key help.

use std::time::Duration;

use ratatui::style::Color;
use ratatui::text::Line;

use super::DrawArea;
use super::key_help::key_help;
use super::layout::{clock_text, cut, packed, seconds_text, shown, spread, styled, width_of};
use crate::cli::records::{clean, duration};
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::command::TopPrompt;
use crate::cli::top::model::TopModel;
use crate::cli::top::screen::key_name;
/// The gateway, the time and the state of the stream. A narrow screen has less about the gateway.
pub(super) fn head(model: &TopModel, width: usize) -> Line<'static> {
    let status = &model.status;
    let uptime = duration(Duration::from_secs(status.count("uptime_s")));
    let is_fleet = status.object("store").text("kind") == "redis";
    let node = if is_fleet { ", this node" } else { "" };
    let instance = format!("{}{node}", shown(status, "instance"));
    let mut about = vec![format!("lockgate {}", shown(status, "version")), instance];
    if status.text("state") == "draining" {
        about.push("draining".to_owned());
    }
    about.push(format!("up {uptime}"));
    if status.is_null() {
        about = vec!["lockgate".to_owned()];
    }
    let mut right = format!("{} UTC  {}", clock_text(model.gateway_now()), state(model));
    if width_of(&right) > width {
        right = state(model);
    }
    let free = width.saturating_sub(width_of(&right) + 2);
    while about.len() > 1 && width_of(&about.join("  ")) > free {
        about.pop();
    }
    let left = cut(&about.join("  "), free);
    spread(left.into(), right.into(), width)
}

fn state(model: &TopModel) -> String {
    if let Some(lost) = model.lost() {
        let silence = seconds_text(lost.silence);
        let retry = match lost.retry_in {
            Some(left) => format!(
                "retrying in {}",
                seconds_text(left + Duration::from_millis(999))
            ),
            None => "retrying".to_owned(),
        };
        return format!("○ lost, last update {silence} ago, {retry}");
    }
    match model.paused_for() {
        Some(pause) => format!("paused, {}", seconds_text(pause)),
        None => format!("● live, every {} s", model.refresh_interval().as_secs()),
    }
}

pub(super) fn ruler(width: usize) -> Line<'static> {
    Line::raw("─".repeat(width))
}

/// Why something cannot be shown.
pub(super) fn error(text: &str, area: DrawArea) -> Line<'static> {
    let text = cut(&format!("◆ {}.", clean(text)), area.width);
    Line::styled(text, area.style.colored(Color::Yellow))
}

/// The question or the result, and the key help. A low screen has only a question or a result.
pub(super) fn footer(model: &TopModel, area: DrawArea, is_framed: bool) -> Vec<Line<'static>> {
    let width = area.width;
    let text = match &model.prompt {
        Some(prompt) => question(prompt, width),
        None => {
            let lost = model.lost().map(|lost| clean(lost.reason));
            let result = model.notice().map(clean).or(lost);
            cut(&result.unwrap_or_default(), width)
        }
    };
    let line = styled(text.clone(), area.style.bold());
    if !is_framed {
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![line.into()]
        };
    }
    let (items, more) = key_help(&model.screen);
    let free = width.saturating_sub(width_of(more) + 2);
    let items = items.split("  ").map(Into::into).collect();
    let shown = packed(items, 2, free)
        .into_iter()
        .next()
        .unwrap_or_default();
    let help = if width_of(&shown.to_string()) <= free {
        format!("{shown}  {more}")
    } else {
        cut(more, width)
    };
    vec![line.into(), ruler(width), Line::raw(help)]
}

/// Returns a question with the keys that it takes. A long one loses the end of its text, and an input its start.
fn question(prompt: &TopPrompt, width: usize) -> String {
    let (text, typed) = match prompt {
        TopPrompt::Confirm { question, .. } => {
            let keys = "  y  n";
            return cut(&clean(question), width.saturating_sub(keys.len())) + keys;
        }
        TopPrompt::Duration { target, text } => {
            let (rule, key) = (clean(&target.rule), clean(key_name(&target.key)));
            (format!("Ban {key} in {rule} for: "), text)
        }
        TopPrompt::Find(text) => {
            let asked = "Find an address, a key, a request id or a rule: ";
            (asked.to_owned(), text)
        }
    };
    let typed = format!("{}_  enter  esc", clean(typed));
    let typed = cut_start(&typed, width);
    cut(&text, width.saturating_sub(width_of(&typed))) + &typed
}

fn cut_start(text: &str, width: usize) -> String {
    let mut kept = text.chars();
    while width_of(kept.as_str()) > width {
        kept.next();
    }
    kept.as_str().to_owned()
}
