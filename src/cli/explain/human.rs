//! A report as text: the decision first, then every rule with its reason and its expressions.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use http::header::RETRY_AFTER;

use super::{ExplainOutput, ExplainedRequest};
use crate::pipeline::simulate::{SimulatedOutcome, SimulationReport};
use crate::rules::trace::{RuleTrace, TraceVerdict, TracedCondition};

/// Renders the whole report.
pub fn human(output: &ExplainOutput) -> String {
    let last = &output.last;
    let mut text = String::new();
    if output.lines.len() > 1 {
        repeats(output, &mut text);
    }
    let _ = writeln!(text, "{}", decision(last));
    let route = match &last.route {
        Some(template) => format!(", route {template}"),
        None => String::new(),
    };
    let _ = writeln!(text, "  {} from {}{route}", output.request, last.client);
    for note in &output.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if last.rules.is_empty() {
        text.push_str("\nthe configuration has no rules\n");
    }
    for trace in &last.rules {
        text.push('\n');
        rule(trace, &mut text);
    }
    text
}

/// Renders the outcome of one request and the counters of its rules.
pub fn line(report: &SimulationReport) -> String {
    let counts: Vec<String> = report.rules.iter().filter_map(count).collect();
    if counts.is_empty() {
        decision(report)
    } else {
        format!("{} ({})", decision(report), counts.join(", "))
    }
}

fn repeats(output: &ExplainOutput, text: &mut String) {
    let width = output.lines.len().to_string().len();
    let times: Vec<String> = output.lines.iter().map(|line| seconds(line.at)).collect();
    let widest = times.iter().map(String::len).max().unwrap_or(0);
    for ((number, line), at) in (1..).zip(&output.lines).zip(times) {
        let _ = writeln!(text, "{number:>width$}  {at:>widest$}  {}", line.text);
    }
    let what = |line: &ExplainedRequest| (line.outcome, line.decided_by.clone());
    let pairs = output.lines.iter().zip(output.lines.iter().skip(1));
    let changed = (2..)
        .zip(pairs)
        .find(|(_, (before, after))| what(before) != what(after));
    let _ = match changed {
        Some((number, _)) => writeln!(text, "\nThe decision first changed at request {number}."),
        None => writeln!(text, "\nThe decision never changed."),
    };
    let _ = writeln!(text, "Request {} in detail:\n", output.lines.len());
}

fn count(trace: &RuleTrace) -> Option<String> {
    let touched = matches!(
        trace.verdict,
        TraceVerdict::Counted | TraceVerdict::Acted(_) | TraceVerdict::Would(_)
    );
    let used = used(trace).filter(|_| touched)?;
    Some(format!("{}: {used}", trace.name))
}

fn decision(report: &SimulationReport) -> String {
    let what = what(report);
    if report.held.is_zero() {
        what
    } else {
        format!("held for {}, then {what}", seconds(report.held))
    }
}

fn what(report: &SimulationReport) -> String {
    let status = status(report);
    let rule = report.decided_by.as_ref().map_or("", |(rule, _)| rule);
    let did = report.decided_by.as_ref().map_or("", |(_, action)| action);
    match report.outcome {
        SimulatedOutcome::Block | SimulatedOutcome::Tarpit | SimulatedOutcome::Challenge => {
            let challenged = report.outcome == SimulatedOutcome::Challenge;
            let what = if challenged { "challenge " } else { "" };
            match header(report, RETRY_AFTER.as_str()) {
                Some(seconds) => format!("{what}{status} by rule {rule}, Retry-After {seconds}"),
                None => format!("{what}{status} by rule {rule}"),
            }
        }
        SimulatedOutcome::Close => format!("closed without a response by rule {rule}"),
        SimulatedOutcome::Divert => format!("diverted by rule {rule}: {}", forwarded(report)),
        SimulatedOutcome::Shadow => format!("shadow {status} by rule {rule}"),
        SimulatedOutcome::Refuse(reason) => format!("refused with {status}: {reason}"),
        SimulatedOutcome::Allow => format!("allowed by rule {rule}: {}", forwarded(report)),
        SimulatedOutcome::Forward | SimulatedOutcome::Delay | SimulatedOutcome::Tag
            if rule.is_empty() =>
        {
            forwarded(report)
        }
        SimulatedOutcome::Forward | SimulatedOutcome::Delay | SimulatedOutcome::Tag => {
            format!("{}; rule {rule}: {did}", forwarded(report))
        }
    }
}

/// Renders the HTTP status, and the gRPC status if there is one.
fn status(report: &SimulationReport) -> String {
    let status = report.response.as_ref().map_or(0, |r| r.status().as_u16());
    match header(report, "grpc-status") {
        Some(own) => format!("{status} (grpc-status {own})"),
        None => status.to_string(),
    }
}

fn header<'a>(report: &'a SimulationReport, name: &str) -> Option<Cow<'a, str>> {
    let value = report.response.as_ref()?.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

fn forwarded(report: &SimulationReport) -> String {
    let status = status(report);
    match (&report.upstream, report.to) {
        (Some(name), _) if report.tags.is_empty() => format!("forwarded to upstream {name}"),
        (Some(name), _) => {
            let tags = report.tags.join(", ");
            format!("forwarded to upstream {name}, tagged {tags}")
        }
        (None, Some("redirect")) => format!("{status} redirect from the route"),
        _ => format!("{status} from the route"),
    }
}

fn rule(trace: &RuleTrace, text: &mut String) {
    let _ = writeln!(text, "{}: {}", trace.name, trace.verdict.name());
    let _ = writeln!(text, "  why       {}", trace.why);
    let Some(mitigate) = trace.mitigate else {
        return;
    };
    let counts = match (trace.count, trace.counts_response) {
        (Some(truth), true) => format!("{}, in the response phase", word(truth).trim_end()),
        (None, _) => "in the response phase; this response never counts".to_owned(),
        (Some(truth), false) => word(truth).trim_end().to_owned(),
    };
    let _ = writeln!(text, "  count     {counts}");
    let _ = writeln!(text, "  mitigate  {}", word(mitigate).trim_end());
    if trace.key.is_some() {
        let _ = writeln!(text, "  key       {}", key(trace));
    }
    counter(trace, text);
    for (label, part) in &trace.conditions {
        let label = match *label {
            "both" => "count and mitigate",
            label => label,
        };
        let _ = writeln!(text, "  {label}:");
        condition(part, 4, text);
    }
}

/// Appends the cost of the request and the state of the rule's counter.
fn counter(trace: &RuleTrace, text: &mut String) {
    if let Some(cost) = trace.cost.filter(|cost| *cost != 1) {
        let _ = writeln!(text, "  cost      {cost}");
    }
    if let Some(used) = used(trace) {
        let _ = writeln!(text, "  used      {used}");
    }
    if let (Some(limit), Some(near)) = (trace.limit, trace.drawn_from) {
        let _ = writeln!(
            text,
            "  limit     {limit} for this key, from {near} by jitter"
        );
    }
    if let Some(held) = trace.held_for {
        let _ = writeln!(text, "  held      for {}", seconds(held));
    }
    if let Some(tried) = &trace.candidate {
        let share = tried.share.map(|share| share.to_string());
        let used = share.or_else(|| usage(tried.value, Some(tried.capacity), tried.banned_for));
        let used = used.map_or(String::new(), |used| format!(", {used}"));
        let _ = writeln!(text, "  candidate {}{used}", tried.verdict.name());
    }
}

fn key(trace: &RuleTrace) -> String {
    let parts = trace.key_parts.iter().map(|(part, value)| match value {
        Some(value) => format!("{part} is {value}"),
        None => format!("{part} is missing"),
    });
    if trace.key_parts.is_empty() {
        "none; one counter for all requests".to_owned()
    } else {
        parts.collect::<Vec<_>>().join(", ")
    }
}

fn used(trace: &RuleTrace) -> Option<String> {
    match trace.share {
        Some(share) => Some(share.to_string()),
        None => usage(trace.value, trace.capacity, trace.banned_for),
    }
}

fn usage(
    value: Option<u64>,
    capacity: Option<u64>,
    banned_for: Option<Duration>,
) -> Option<String> {
    match (value, banned_for) {
        (_, Some(left)) => Some(format!("banned for {}s", left.as_millis().div_ceil(1000))),
        (Some(value), None) => Some(format!("{value} of {}", capacity?)),
        (None, None) => None,
    }
}

fn condition(part: &TracedCondition, indent: usize, text: &mut String) {
    let _ = writeln!(text, "{:indent$}{} {}", "", word(part.holds), part.text);
    for seen in &part.reads {
        let _ = writeln!(
            text,
            "{:indent$}      {} is {}",
            "",
            seen.label,
            seen.show()
        );
    }
    for inner in &part.parts {
        condition(inner, indent + 4, text);
    }
}

const fn word(truth: bool) -> &'static str {
    if truth { "yes" } else { "no " }
}

fn seconds(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis % 1000 {
        0 => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}
