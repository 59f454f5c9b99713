//! Warnings about bans, costs and logs that admit more than they should.

use super::implies::covers;
use super::{LintCode, LintedRule, Warnings};
use crate::config::ExprText;
use crate::config::file::ConfigFile;
use crate::decision::Action;
use crate::expr::{self, ExprOutline};
use crate::facts::fields::{self, FieldPresence};
use crate::limit::{CounterShape, Limiter};
use crate::rules;

/// One second in nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// The bytes that a `sliding_log` stores per unit.
const BYTES_PER_UNIT: u64 = 12;

/// Warns of limits, bans and costs that have no or too little effect.
pub(super) fn warn(
    rule: &LintedRule<'_>,
    all: &[LintedRule<'_>],
    file: &ConfigFile,
    warnings: &mut Warnings<'_>,
) {
    if let Some(limiter) = &rule.rule.limiter {
        short_ban(rule, limiter, warnings);
        free_cost(rule, all, warnings);
        large_log(rule, limiter, file, warnings);
    }
}

/// Warns of a short ban. A ban resets the counter, so a client that waits for its end gets the
/// whole limit again. The last ban of `escalate` is checked, because it repeats.
fn short_ban(rule: &LintedRule<'_>, limiter: &Limiter, warnings: &mut Warnings<'_>) {
    let last = rule.written.escalate.last();
    let ban = last.unwrap_or(&rule.written.duration);
    let per_ban = u128::from(limiter.capacity()) * limiter.period.as_nanos();
    let per_period = u128::from(limiter.limit) * ban.value.as_nanos();
    let stops = !matches!(rule.rule.action, Action::Log | Action::Tag);
    let ends = rule.bans() && !limiter.algorithm.holds_leases();
    if stops && ends && per_ban > per_period {
        let message =
            "a ban resets the counter: one this short lets through more requests than no ban";
        let nanos = per_ban.div_ceil(u128::from(limiter.limit.max(1)));
        let help = format!(
            "use a ban of at least {} s, or no ban",
            nanos.div_ceil(SECOND)
        );
        warnings
            .at(LintCode::ShortBan, &ban.span, message)
            .help(help);
    }
}

fn free_cost(rule: &LintedRule<'_>, all: &[LintedRule<'_>], warnings: &mut Warnings<'_>) {
    let Some(text) = &rule.cost else {
        return;
    };
    let mut reads = expr::reads(&text.value).into_iter();
    let size = reads.find(|(name, _)| fields::find(name) == Some(fields::BODY_SIZE));
    if let Some((_, span)) = size {
        let message = "a request body without `Content-Length` costs 1, regardless of its size";
        warnings
            .within(LintCode::FreeCost, text, span, message)
            .help("block such requests first, or use `http.response.body.size`");
    }
    // A client cannot choose a cost that the origin server sets.
    if matches!(&rule.rule.cost, rules::RuleCost::Computed(scalar) if scalar.reads_response()) {
        return;
    }
    let calls = expr::calls(&text.value).into_iter();
    for (_, span) in calls.filter(|(name, _)| &**name == "lookup_json_integer") {
        let message = "clients can choose this cost";
        warnings
            .within(LintCode::FreeCost, text, span, message)
            .help("let the origin server set it: `cost = { response_header = \"x-cost\" }`");
    }
    if can_be_zero(text) && !all.iter().any(|other| counts_requests(other, rule)) {
        let message = "an empty value costs 0, so such requests are never limited";
        warnings
            .at(LintCode::FreeCost, &text.span, message)
            .help("add a second rule that counts the same requests, without `cost`");
    }
}

/// Returns whether a cost is the length of a value that may be empty. The number of values is never
/// zero: without values, the field is missing.
fn can_be_zero(text: &ExprText) -> bool {
    let Ok(ExprOutline::Leaf(leaf)) = expr::outline(&format!("{} gt 0", text.value)) else {
        return false;
    };
    let subject = leaf.subject;
    let of_values = subject.entry.is_some() && subject.index.is_none();
    let field = subject.field.as_deref().and_then(fields::find);
    let never_empty = |id| fields::by_id(id).presence == FieldPresence::Always;
    if of_values || field.is_some_and(never_empty) {
        return false;
    }
    subject.functions.iter().any(|name| &**name == "len")
}

/// Returns whether `other` counts each request of `rule` with a fixed cost.
fn counts_requests(other: &LintedRule<'_>, rule: &LintedRule<'_>) -> bool {
    let fixed = matches!(other.rule.cost, rules::RuleCost::Fixed(1..));
    let both = other.counts().zip(rule.counts());
    fixed && other.limits() && both.is_some_and(|(wide, narrow)| covers(wide, narrow))
}

fn large_log(rule: &LintedRule<'_>, own: &Limiter, file: &ConfigFile, warnings: &mut Warnings<'_>) {
    let candidate = rule.rule.candidate.as_ref().map(|c| c.limiter);
    let limiters = [Some(*own), candidate].into_iter().flatten();
    let max_bytes = file.store.max_log_bytes.value;
    let mut logs = limiters.filter(|l| l.shape() == CounterShape::Log);
    if logs.any(|log| log.limit.saturating_mul(BYTES_PER_UNIT) > max_bytes) {
        let limit = rule.written.limit.as_ref();
        let span = limit.map_or(rule.written.span.clone(), |limit| limit.span.clone());
        let message = "with this limit, one key can use all of `store.max_log_bytes`";
        warnings
            .at(LintCode::LargeLog, &span, message)
            .help("use `sliding_window` with `slices = 60`, which is nearly as exact");
    }
}
