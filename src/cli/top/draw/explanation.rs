//! What the rules would do with a request: the decision, then each rule with its verdict and the reason.

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::DrawArea;
use super::layout::{cut, grouped, left, shown, width_of, wrapped};
use super::list::scrolled;
use super::style::action_words;
use crate::cli::records::clean;
use crate::cli::top::api_fields::ApiFields as _;
use crate::cli::top::model::TopModel;

const RULE: usize = 18;
const VERDICT: usize = 17;

/// Returns the lines of an explanation.
pub(super) fn explanation(model: &TopModel, area: DrawArea) -> Vec<Line<'static>> {
    let title = Line::styled("What the rules would do now", area.style.bold());
    let mut lines = vec![title];
    let Some(result) = &model.figures.about else {
        if model.figures.error.is_none() {
            lines.push(Line::raw("Asking the gateway."));
        }
        return lines;
    };
    let request = wrapped("request   ", &shown(result, "request"), area.width, 4);
    lines.extend(request.into_iter().map(Line::raw));
    lines.push(decision(result, area));
    for text in load(result) {
        lines.push(Line::raw(cut(&format!("          {text}"), area.width)));
    }
    for note in result.list("notes").iter().filter_map(Value::as_str) {
        let note = wrapped("note      ", &clean(note), area.width, 3);
        lines.extend(note.into_iter().map(Line::raw));
    }
    lines.push(Line::default());
    let header = format!("{} {} WHY", left("RULE", RULE), left("VERDICT", VERDICT));
    lines.push(Line::raw(cut(&header, area.width)));
    for rule in result.list("rules") {
        lines.extend(explained_rule(rule, area));
    }
    scrolled(lines, model.selected_index(), area.height)
}

/// Says in one line what the client gets.
fn decision(result: &Value, area: DrawArea) -> Line<'static> {
    let name = result.text("decision");
    let cause = match (result.text("rule"), name) {
        ("", "refuse" | "own") => format!(" {}", shown(result, "reason")),
        ("", _) => ": no rule mitigates it".to_owned(),
        _ => format!(" by {}", shown(result, "rule")),
    };
    let status = result.object("response").number("status");
    let status = status.map_or_else(String::new, |status| {
        format!("; the client receives {status}")
    });
    let mut action = area.style.action(name, false);
    action = action.patch_style(area.style.bold());
    let free = area.width.saturating_sub(10 + width_of(&action.content));
    let text = cut(&format!("{cause}{status}"), free);
    Line::from(vec![Span::raw("decision  "), action, Span::raw(text)])
}

/// The class of the request, and how busy its upstream is.
fn load(result: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if !result.text("class").is_empty() {
        lines.push(format!("class {}", shown(result, "class")));
    }
    let admission = result.object("admission");
    if !admission.text("upstream").is_empty() {
        let limit = admission.number("limit");
        let limit = limit.map_or_else(String::new, |limit| format!(" of {limit} slots"));
        lines.push(format!(
            "upstream {}: {}{limit} in flight",
            shown(admission, "upstream"),
            grouped(admission.count("in_flight"))
        ));
    }
    lines
}

fn explained_rule(rule: &Value, area: DrawArea) -> Vec<Line<'static>> {
    let verdict = rule.text("verdict");
    let action = verdict.strip_prefix("would_").unwrap_or(verdict);
    let is_acting = action_words(action).0 != "·";
    let verdict = if is_acting {
        area.style.action(action, action != verdict)
    } else {
        Span::raw(shown(rule, "verdict").replace('_', " "))
    };
    let used = rule.number("limit").filter(|limit| *limit > 0.0);
    let used = used.zip(rule.number("value"));
    let used = used.map(|(limit, value)| format!("{value} of {limit}"));
    let key = Some(shown(rule, "key")).filter(|key| !key.is_empty());
    let key = key.map(|key| format!("key {key}"));
    let facts = [used, key].into_iter().flatten().collect::<Vec<_>>();
    let mut why = shown(rule, "why");
    if !facts.is_empty() {
        why = format!("{why} ({})", facts.join(", "));
    }
    let is_narrow = area.width < 60;
    let indent = if is_narrow { 2 } else { RULE + 1 + VERDICT + 1 };
    let mut why = wrapped(&" ".repeat(indent), &why, area.width, 4).into_iter();
    let mut head = vec![
        Span::raw(left(&shown(rule, "name"), RULE) + " "),
        verdict.clone().content(left(&verdict.content, VERDICT)),
    ];
    let mut lines = Vec::new();
    if !is_narrow {
        let first = why.next().unwrap_or_default();
        let first: String = first.chars().skip(indent).collect();
        head.push(Span::raw(" ".to_owned() + &first));
    }
    lines.push(Line::from(head));
    lines.extend(why.map(Line::raw));
    lines
}
