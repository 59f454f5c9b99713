//! Limits whose numbers do not go together.

use std::time::Duration;

use super::logic::covers;
use super::{Case, Warnings};
use crate::config::Text;
use crate::config::file::{Cost, File};
use crate::config::limiter::{self, most};
use crate::decision::Action;
use crate::expr::{self, Outline, Scheme as _};
use crate::facts::fields::Fields;
use crate::limit::{Algorithm, Limiter};
use crate::rules::{self, Jitter};

/// What every request has.
const NEVER_EMPTY: [&str; 5] = [
    "http.request.uri",
    "http.request.uri.path",
    "http.request.full_uri",
    "http.host",
    "http.request.method",
];

/// In nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// What a `sliding_log` keeps of each unit.
const BYTES_OF_A_MOMENT: u64 = 12;

/// Warns of limits, bans and costs that cannot do what they say.
pub(super) fn warn(case: &Case<'_>, all: &[Case<'_>], file: &File, warnings: &mut Warnings<'_>) {
    let Some(own) = &case.rule.limiter else {
        return;
    };
    falling_bans(case, warnings);
    short_ban(case, own, warnings);
    idle_jitter(case, own, warnings);
    cost_and_jitter(case, own, warnings);
    free_cost(case, all, warnings);
    queue_and_wait(case, own, warnings);
    large_log(case, own, file, warnings);
    same_candidate(case, own, warnings);
}

fn falling_bans(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let bans = case.written.escalate.iter();
    let mut pairs = bans.clone().zip(bans.skip(1));
    if let Some((longer, shorter)) = pairs.find(|(a, b)| b.value < a.value) {
        warnings
            .at(
                shorter.span.clone(),
                "a later offence is banned for a shorter time",
            )
            .related(longer.span.clone(), "than the one before")
            .help("put the shortest ban first");
    }
}

/// A ban clears the counter: who sits it out has all of the limit again. Of several the last one
/// counts, which repeats.
fn short_ban(case: &Case<'_>, limiter: &Limiter, warnings: &mut Warnings<'_>) {
    let ban = case
        .written
        .escalate
        .last()
        .unwrap_or(&case.written.duration);
    let per_ban = u128::from(limiter.capacity()) * limiter.period.as_nanos();
    let per_period = u128::from(limiter.limit) * ban.value.as_nanos();
    let stops = !matches!(case.rule.action, Action::Log | Action::Tag);
    let ends = case.bans() && limiter.algorithm != Algorithm::Concurrency;
    if stops && ends && per_ban > per_period {
        let message =
            "a ban clears the counter: with one as short as this more gets through than without";
        let nanos = per_ban.div_ceil(u128::from(limiter.limit.max(1)));
        let help = format!("use one of at least {} s, or none", nanos.div_ceil(SECOND));
        warnings.at(ban.span.clone(), message).help(help);
    }
}

/// A limit is a whole number: of 3, a tenth more or less is still 3.
fn idle_jitter(case: &Case<'_>, limiter: &Limiter, warnings: &mut Warnings<'_>) {
    let Jitter(share) = case.rule.jitter;
    let largest = limiter.limit.max(limiter.burst);
    if share == 0 || largest.saturating_mul(share.into()) >= 1_000_000 {
        return;
    }
    let message = format!("this jitter is less than one request: the limit stays {largest}");
    warnings
        .at(case.written.jitter.span.clone(), message)
        .help("use a larger part, or remove it");
}

fn cost_and_jitter(case: &Case<'_>, limiter: &Limiter, warnings: &mut Warnings<'_>) {
    let (rules::Cost::Fixed(cost), Jitter(share)) = (&case.rule.cost, case.rule.jitter) else {
        return;
    };
    let most = most(limiter);
    let least = most - most * u64::from(share) / 1_000_000;
    if share > 0 && limiter.algorithm != Algorithm::LeakyBucket && *cost > least.max(1) {
        let message = format!("some keys are never let in: their limit may be drawn as {least}");
        warnings
            .at(case.written.jitter.span.clone(), message)
            .related(case.written.cost.span.clone(), "the cost")
            .help("use a smaller `jitter` or `cost`");
    }
}

fn free_cost(case: &Case<'_>, all: &[Case<'_>], warnings: &mut Warnings<'_>) {
    let Some(text) = &case.cost else {
        return;
    };
    let size = Fields.field("http.request.body.size").map(|field| field.id);
    let reads = expr::reads(&text.value).into_iter();
    let mut reads = reads.filter(|(name, _)| Fields.field(name).map(|field| field.id) == size);
    if let Some((_, span)) = reads.next() {
        let message = "a body that is sent without its length costs 1, whatever its size";
        warnings
            .within(text, span, message)
            .help("stop those first, or count `http.response.body.size`");
    }
    // What the origin says is another matter.
    if counts_response(&case.rule.cost) {
        return;
    }
    let calls = expr::calls(&text.value).into_iter();
    for (_, span) in calls.filter(|(name, _)| &**name == "lookup_json_integer") {
        warnings
            .within(text, span, "a client writes itself what it pays")
            .help("let the origin say it: `cost = { response_header = \"x-cost\" }`");
    }
    if can_be_nothing(text) && !all.iter().any(|other| counts_whole(other, case)) {
        let message = "what is empty costs nothing, and is never limited";
        warnings
            .at(text.span.clone(), message)
            .help("add a second rule that counts the same requests, without `cost`");
    }
}

/// Whether it is the length of a value. How many values there are is another matter: where there
/// are none, they are missing.
fn can_be_nothing(text: &Text) -> bool {
    let Ok(Outline::Leaf(leaf)) = expr::outline(&format!("{} gt 0", text.value)) else {
        return false;
    };
    let subject = leaf.subject;
    let of_values = subject.entry.is_some() && subject.index.is_none();
    let field = subject.field.as_deref().unwrap_or_default();
    if of_values || NEVER_EMPTY.contains(&field) {
        return false;
    }
    subject.functions.iter().any(|name| &**name == "len")
}

/// Whether `other` counts the same requests, one by one.
fn counts_whole(other: &Case<'_>, case: &Case<'_>) -> bool {
    let one_by_one = matches!(other.rule.cost, rules::Cost::Fixed(1..));
    let limits = other.rule.limiter.is_some() && !other.rule.dry_run;
    let both = other.counts().zip(case.counts());
    one_by_one && limits && both.is_some_and(|(wide, narrow)| covers(wide, narrow))
}

fn counts_response(cost: &rules::Cost) -> bool {
    matches!(cost, rules::Cost::Computed(scalar) if scalar.reads_response())
}

/// Nobody waits in a part of the queue that would take too long.
fn queue_and_wait(case: &Case<'_>, limiter: &Limiter, warnings: &mut Warnings<'_>) {
    let written = case.written.queue.span != case.written.span;
    if limiter.algorithm != Algorithm::LeakyBucket || !written {
        return;
    }
    let nanos = |time: Duration| time.as_nanos().max(1);
    let places = nanos(limiter.max_wait) * u128::from(limiter.limit) / nanos(limiter.period);
    if u128::from(limiter.queue) > places {
        let message = format!("only {places} can wait: more would take longer than `max_delay`");
        warnings
            .at(case.written.queue.span.clone(), message)
            .help(format!("use `queue = {places}`, or a longer `max_delay`"));
    }
}

fn large_log(case: &Case<'_>, own: &Limiter, file: &File, warnings: &mut Warnings<'_>) {
    let tried = case.rule.candidate.as_ref().map(|c| c.limiter);
    let limiters = [Some(*own), tried].into_iter().flatten();
    let room = file.store.max_log_bytes.value;
    let mut logs = limiters.filter(|l| l.algorithm == Algorithm::SlidingLog);
    if logs.any(|log| log.limit.saturating_mul(BYTES_OF_A_MOMENT) > room) {
        let limit = case.written.limit.as_ref();
        let span = limit.map_or(case.written.span.clone(), |limit| limit.span.clone());
        warnings
            .at(
                span,
                "one key can fill all of `store.max_log_bytes` with a limit like this",
            )
            .help("use `sliding_window` with `slices = 60`, which is nearly as exact");
    }
}

fn same_candidate(case: &Case<'_>, own: &Limiter, warnings: &mut Warnings<'_>) {
    let tried = limiter::of_candidate(case.written).filter(|tried| tried == own);
    if let (Some(written), Some(_)) = (&case.written.candidate, tried) {
        warnings
            .at(
                written.span.clone(),
                "the candidate is the rule itself: the two never differ",
            )
            .help("change one of its values, or remove it");
    }
}

/// The expression that a rule's cost comes from.
pub(super) fn expression(cost: &Cost) -> Option<&str> {
    match cost {
        Cost::Expression(text) => Some(text),
        Cost::Fixed(_) | Cost::Header(_) => None,
    }
}
