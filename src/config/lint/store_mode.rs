//! Notes about rules that `mode = "async"` in `[store.redis]` affects as the user may not expect.
//!
//! A rule with its own `store_mode` gets none: the user has chosen.

use super::{LintedRule, Warnings};
use crate::config::file::{ConfigFile, StoreKind};
use crate::limit::Limiter;
use crate::rules::StoreMode;

/// The smallest limit for which the overshoot of a fleet in async mode is small.
const SMALL_LIMIT: u64 = 20;

/// Notes that a rule is exact nevertheless, or that it can exceed its small limit.
pub(super) fn note(rule: &LintedRule<'_>, file: &ConfigFile, notes: &mut Warnings<'_>) {
    let is_shared = file.store.kind.value == StoreKind::Redis;
    let is_async = file.store.redis.mode.value == StoreMode::Async;
    let has_own = rule.written.store_mode.is_some();
    if !is_shared || !is_async || has_own {
        return;
    }
    if let Some(limiter) = &rule.rule.limiter {
        always_exact(rule, limiter, file, notes);
        small_limit(rule, limiter, file, notes);
    }
}

fn always_exact(
    rule: &LintedRule<'_>,
    limiter: &Limiter,
    file: &ConfigFile,
    notes: &mut Warnings<'_>,
) {
    if let Some(obstacle) = limiter.algorithm.async_obstacle(limiter.slices) {
        let name = limiter.algorithm.row().name;
        let message = format!("`{name}` is counted in exact mode: {obstacle}");
        notes
            .note(&rule.written.algorithm.span, message)
            .related(
                file.store.redis.mode.span.clone(),
                "the mode of other rules",
            )
            .help("write `store_mode = \"exact\"` in the rule to confirm this");
    }
}

fn small_limit(
    rule: &LintedRule<'_>,
    limiter: &Limiter,
    file: &ConfigFile,
    notes: &mut Warnings<'_>,
) {
    let Some(limit) = &rule.written.limit else {
        return;
    };
    if rule.rule.store_mode == StoreMode::Async && limiter.limit < SMALL_LIMIT {
        let message = "in async mode, a fleet can exceed this small limit by several requests";
        notes
            .note(&limit.span, message)
            .related(file.store.redis.mode.span.clone(), "the mode of this rule")
            .help(
                "write `store_mode = \"exact\"` in the rule, or `store_mode = \"async\"` if that is acceptable",
            );
    }
}
