//! Applies the overrides of `protect.rules` to the rules of a preset.

use std::ops::Range;

use super::draft::RuleDraft;
use crate::config::Diagnostics;
use crate::config::file::{ProtectSettings, RuleOverride};
use crate::config::suggest::did_you_mean;
use crate::decision::Action;
use crate::limit::Algorithm;
use crate::rules::StoreMode;

/// Changes the rules as the preset says. Reports overrides of rules that do not exist and settings
/// that do not apply.
pub fn apply(preset: &ProtectSettings, rules: &mut [RuleDraft], out: &mut Diagnostics) {
    for change in &preset.rules {
        let own = rules.iter_mut().find(|rule| rule.sub == change.name.value);
        match own {
            Some(rule) => {
                refuse_settings(rule, change, out);
                change_rule(rule, change);
            }
            None => report_unknown(preset, rules, change, out),
        }
    }
}

fn report_unknown(
    preset: &ProtectSettings,
    rules: &[RuleDraft],
    change: &RuleOverride,
    out: &mut Diagnostics,
) {
    let names: Vec<&str> = rules.iter().map(|rule| rule.sub).collect();
    let (name, preset) = (&change.name, &preset.name.value);
    let near = did_you_mean(&name.value, names.iter().copied());
    let message = format!("the preset `{preset}` has no rule `{}`{near}", name.value);
    out.error(name.span.clone(), message)
        .help(format!("with its settings, it has {}", names.join(", ")));
}

/// A setting that does not apply to a rule, where it is written, and why.
type Refused = (&'static str, Option<Range<usize>>, &'static str);

/// Reports settings that would have no effect in the rule.
fn refuse_settings(rule: &RuleDraft, change: &RuleOverride, out: &mut Diagnostics) {
    let mut refused = by_limit(rule, change);
    refused.extend(by_ratio(rule, change));
    refused.extend(by_action(rule, change));
    for (key, span, why) in refused {
        if let Some(span) = span {
            let name = &rule.settings.name.value;
            let message = format!("`{key}` does not apply to `{name}`: {why}");
            out.error(span, message).help("remove it");
        }
    }
}

fn by_limit(rule: &RuleDraft, change: &RuleOverride) -> Vec<Refused> {
    if rule.settings.limit.is_none() {
        let why = "it has no limit";
        let escalate = change.escalate.first().map(|ban| ban.span.clone());
        let candidate = change.candidate.as_ref().map(|one| one.span.clone());
        return vec![
            ("limit", span_of(&change.limit), why),
            ("period", span_of(&change.period), why),
            ("duration", span_of(&change.duration), why),
            ("escalate", escalate, why),
            ("jitter", span_of(&change.jitter), why),
            ("candidate", candidate, why),
        ];
    }
    if rule.settings.algorithm.value != Algorithm::Concurrency {
        return Vec::new();
    }
    let why = "it counts requests in flight";
    let mode = change.store_mode.as_ref();
    let mode = mode.filter(|mode| mode.value == StoreMode::Async);
    let mode = mode.map(|mode| mode.span.clone());
    vec![
        ("period", span_of(&change.period), why),
        ("store_mode = \"async\"", mode, why),
    ]
}

fn by_ratio(rule: &RuleDraft, change: &RuleOverride) -> Vec<Refused> {
    let candidate = change.candidate.as_ref();
    if rule.settings.ratio.is_none() {
        let why = "it has no ratio";
        let of_candidate = candidate.and_then(|one| span_of(&one.ratio));
        return vec![
            ("ratio", span_of(&change.ratio), why),
            ("candidate.ratio", of_candidate, why),
        ];
    }
    let algorithm = candidate.and_then(|one| one.algorithm.as_ref());
    let algorithm = algorithm.filter(|one| !one.value.has_ratio());
    let slices = candidate.and_then(|one| one.slices.as_ref());
    let slices = slices.filter(|slices| slices.value > 1);
    let why = "it has a ratio";
    vec![
        (
            "candidate.algorithm",
            algorithm.map(|one| one.span.clone()),
            why,
        ),
        ("candidate.slices", slices.map(|one| one.span.clone()), why),
    ]
}

fn by_action(rule: &RuleDraft, change: &RuleOverride) -> Vec<Refused> {
    let mut refused = Vec::new();
    let action = change.action.as_ref().unwrap_or(&rule.settings.action);
    let written = || span_of(&change.action);
    if action.value == Action::Challenge {
        let why = "its action is `challenge`";
        refused.push(("response", span_of(&change.response), why));
    }
    if action.value == Action::Divert {
        let why = "a preset names no upstream";
        refused.push(("action = \"divert\"", written(), why));
    }
    let takes_slots = rule.settings.algorithm.value == Algorithm::Concurrency;
    if takes_slots && action.value == Action::Delay {
        let why = "it counts requests in flight";
        refused.push(("action = \"delay\"", written(), why));
    }
    refused
}

fn span_of<T>(value: &Option<crate::config::Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(|value| value.span.clone())
}

fn change_rule(rule: &mut RuleDraft, change: &RuleOverride) {
    let settings = &mut rule.settings;
    if let Some(ratio) = settings.ratio.as_mut() {
        set(ratio, &change.ratio);
    }
    replace(&mut settings.limit, &change.limit);
    replace(&mut settings.period, &change.period);
    if let Some(duration) = &change.duration {
        settings.duration = duration.clone();
        settings.escalate.clear();
    }
    if !change.escalate.is_empty() {
        settings.escalate.clone_from(&change.escalate);
        settings.duration.value = std::time::Duration::ZERO;
    }
    set(&mut settings.action, &change.action);
    set(&mut settings.dry_run, &change.dry_run);
    set(&mut settings.enabled, &change.enabled);
    set(&mut settings.jitter, &change.jitter);
    replace(&mut settings.response, &change.response);
    replace(&mut settings.candidate, &change.candidate);
    replace(&mut settings.on_store_failure, &change.on_store_failure);
    replace(&mut settings.store_mode, &change.store_mode);
}

fn set<T: Clone>(setting: &mut T, change: &Option<T>) {
    if let Some(change) = change {
        setting.clone_from(change);
    }
}

fn replace<T: Clone>(setting: &mut Option<T>, change: &Option<T>) {
    if change.is_some() {
        setting.clone_from(change);
    }
}
