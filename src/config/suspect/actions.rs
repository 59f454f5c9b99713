//! Actions that do less than they seem to, or the opposite.

use std::time::Duration;

use super::{Case, Warnings};
use crate::config::file::{CountHeaders, File, Target};
use crate::decision::Action;
use crate::expr::{GivenValue, Leaf};
use crate::limit::Algorithm;

/// Load balancers and clients commonly give up after this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Warns of actions that have no effect, or one that was surely not meant.
pub(super) fn warn(case: &Case<'_>, file: &File, warnings: &mut Warnings<'_>) {
    grpc(case, warnings);
    unseen_headers(case, warnings);
    allows_what_is_over(case, warnings);
    long_wait(case, warnings);
    stops_nobody(case, warnings);
    leave_together(case, warnings);
    nothing_to_imitate(case, file, warnings);
}

/// Warns of rules that would hold requests where none may be held.
pub(super) fn warn_of_held(cases: &[Case<'_>], file: &File, warnings: &mut Warnings<'_>) {
    let holds = |case: &&Case<'_>| forwards_late(case) || case.rule.action == Action::Tarpit;
    let held = &file.server.max_held;
    if let (0, Some(case)) = (held.value, cases.iter().find(holds)) {
        warnings
            .at(
                held.span.clone(),
                "with `max_held = 0` no rule can hold a request",
            )
            .related(case.written.name.span.clone(), "this one would")
            .help("allow some, or use another action");
    }
}

fn grpc(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    if case.rule.action != Action::Shadow {
        return;
    }
    let about = |leaf: &&Leaf| {
        let header = leaf.subject.entry.as_deref().unwrap_or_default();
        let of_grpc = leaf.values.iter().any(|given| match &given.value {
            GivenValue::Text(text) => text.starts_with(b"application/grpc"),
            _ => false,
        });
        header.eq_ignore_ascii_case(b"content-type") && of_grpc
    };
    for said in case.said() {
        if let Some(leaf) = said.outline.leaves().into_iter().find(about) {
            let message = "a gRPC call has no fake answer: `shadow` acts as `block` on it";
            warnings
                .within(said.text, leaf.span.clone(), message)
                .related(case.written.action.span.clone(), "the action");
        }
    }
}

fn unseen_headers(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let (action, headers) = (&case.written.action, &case.written.headers);
    let written = headers.span != case.written.span;
    let tells = headers.value != CountHeaders::None;
    if written && tells && action.value != Action::Block {
        let message = format!(
            "`action = \"{}\"` sends no rate-limit headers: `headers` has no effect",
            action.value.name()
        );
        warnings
            .at(headers.span.clone(), message)
            .related(action.span.clone(), "the action")
            .help("remove it");
    }
}

fn allows_what_is_over(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let limit = case.written.limit.as_ref();
    let limit = limit.filter(|_| case.rule.action == Action::Allow);
    if let Some(limit) = limit {
        let message = "`allow` with a limit exempts whoever is over it";
        warnings
            .at(case.written.action.span.clone(), message)
            .related(limit.span.clone(), "the limit")
            .help("remove the limit, or use another action");
    }
}

/// Whether requests wait to be forwarded.
fn forwards_late(case: &Case<'_>) -> bool {
    let queue = case.rule.limiter.map(|l| l.algorithm) == Some(Algorithm::LeakyBucket);
    queue || case.rule.action == Action::Delay
}

fn long_wait(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let wait = &case.written.max_delay;
    if forwards_late(case) && wait.value > PATIENCE {
        let message = "most clients and load balancers give up after a minute";
        warnings
            .at(wait.span.clone(), message)
            .help("use `max_delay = \"1m\"` or less");
    }
}

fn stops_nobody(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let algorithm = case.rule.limiter.map(|limiter| limiter.algorithm);
    if algorithm == Some(Algorithm::LeakyBucket) && case.rule.action == Action::Delay {
        let message = "`delay` forwards what the queue has no place for: nobody is ever stopped";
        warnings
            .at(case.written.action.span.clone(), message)
            .help("use `block`, or `delay` with another algorithm");
    }
}

/// A window has room for all who wait in it at the same moment.
fn leave_together(case: &Case<'_>, warnings: &mut Warnings<'_>) {
    let algorithm = case.rule.limiter.map(|limiter| limiter.algorithm);
    let window = matches!(
        algorithm,
        Some(Algorithm::SlidingWindow | Algorithm::FixedWindow | Algorithm::SlidingLog)
    );
    if window && case.rule.action == Action::Delay && case.rule.ban.is_never() {
        let message = "those who wait for a window leave it together";
        warnings
            .at(case.written.action.span.clone(), message)
            .help("`algorithm = \"token_bucket\"` or `\"gcra\"` lets them go evenly");
    }
}

fn nothing_to_imitate(case: &Case<'_>, file: &File, warnings: &mut Warnings<'_>) {
    let Some(name) =
        (case.written.response.as_ref()).filter(|_| case.rule.action == Action::Shadow)
    else {
        return;
    };
    let mut responses = file.responses.iter();
    let response = responses.find(|response| response.name.value == name.value);
    let origin = |target: &Option<Target>| matches!(target, Some(Target::Upstream(_)));
    let origins = file.routes.iter().any(|route| origin(&route.target));
    if let Some(response) = response.filter(|r| r.imitate.value && !origins) {
        warnings
            .at(
                response.imitate.span.clone(),
                "there is nothing to imitate: no route leads to an upstream",
            )
            .help("add a route with an `upstream`, or remove `imitate`");
    }
}
