//! `/api/rules`: the rules with their settings and totals.

use std::collections::HashMap;
use std::sync::Arc;

use super::api_error::ApiError;
use super::key_views;
use super::objects::{
    CandidateObject, DistributionObject, ImitationObject, RuleDetailObject, RuleObject,
};
use super::state::{AdminState, StoreCounts};
use crate::action::imitate::LearningProgress;
use crate::clock::Timestamp;
use crate::config::duration_text;
use crate::limit::{CapacityKind, Limiter};
use crate::observe::RuleMetrics;
use crate::observe::activity::RuleRates;
use crate::rules::{BanLength, Rule};
use crate::snapshot::Snapshot;

/// Returns the rule with this name, also a disabled one.
pub(super) fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Rule> {
    let enabled = snapshot.rules.iter().map(|(_, rule)| rule);
    let disabled = snapshot.settings.disabled.iter().map(|own| &own.rule);
    enabled.chain(disabled).find(|rule| *rule.name == *name)
}

/// Returns the rule with this name, also a disabled one, or an error with status 404.
pub(super) fn find_or_404<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a Rule, ApiError> {
    let unknown = || ApiError::not_found(format!("there is no rule `{name}`"));
    find(snapshot, name).ok_or_else(unknown)
}

/// Returns every rule in file order, disabled ones too.
pub(super) async fn rules(state: &AdminState) -> Vec<RuleObject> {
    let snapshot = state.snapshot();
    let counts = state.store_counts().await;
    all_rules(state, &snapshot, &counts)
}

/// Returns one rule with the distribution of its keys.
pub(super) async fn rule(state: &AdminState, name: &str) -> Result<RuleDetailObject, ApiError> {
    let snapshot = state.snapshot();
    let found = find_or_404(&snapshot, name)?;
    let view = key_views::view(state, found).await;
    let counts = state.store_counts().await;
    let rules = all_rules(state, &snapshot, &counts);
    let mut rules = rules.into_iter();
    let mut rule = rules
        .find(|rule| rule.name == found.name)
        .ok_or_else(ApiError::internal)?;
    if let Some(candidate) = &mut rule.candidate {
        candidate.differing_keys = Some(view.differing);
    }
    Ok(RuleDetailObject {
        rule,
        distribution: view.levels.map(DistributionObject::new),
    })
}

/// Returns when each rule of the newest tick matched last.
fn last_matched(state: &AdminState) -> HashMap<Arc<str>, Timestamp> {
    let tick = state.hub().latest_tick();
    let rules = tick.iter().flat_map(|tick| &tick.rules);
    let known = |rule: &RuleRates| Some((rule.name.clone(), rule.last_matched?));
    rules.filter_map(known).collect()
}

fn all_rules(state: &AdminState, snapshot: &Snapshot, counts: &StoreCounts) -> Vec<RuleObject> {
    let last_matched = last_matched(state);
    let progress = state.live.process.imitation_progress(snapshot);
    let mut progress: HashMap<Arc<str>, LearningProgress> = progress.into_iter().collect();
    let enabled = snapshot.rules.iter().zip(&snapshot.rule_resources);
    let enabled = enabled.map(|((_, rule), own)| RuleObject {
        keys: counts.keys_of(rule.id),
        bans: counts.bans_of(rule.id),
        last_matched: last_matched.get(&rule.name).copied().map(Into::into),
        imitate: progress.remove(&rule.name).map(imitation),
        ..with_totals(settings(rule), &own.metrics)
    });
    let mut rules: Vec<RuleObject> = enabled.collect();
    for disabled in snapshot.settings.disabled.iter().rev() {
        let index = usize::from(disabled.next.0).min(rules.len());
        let rule = RuleObject {
            enabled: false,
            ..settings(&disabled.rule)
        };
        rules.insert(index, rule);
    }
    rules
}

/// The settings of a rule, with totals of zero.
fn settings(rule: &Rule) -> RuleObject {
    let (count, mitigate) = rule.predicates();
    let limiter = rule.limiter.as_ref();
    let key = rule
        .key
        .parts
        .iter()
        .map(|part| part.scalar.source().to_owned());
    RuleObject {
        name: rule.name.clone(),
        enabled: true,
        dry_run: rule.dry_run,
        algorithm: limiter.map(|limiter| limiter.algorithm.row().name),
        limit: limiter.map_or(0, |limiter| limiter.limit),
        period: limiter.and_then(period),
        burst: limiter.and_then(burst),
        key: key.collect(),
        action: rule.action.name(),
        count: count.source().to_owned(),
        mitigate: mitigate.source().to_owned(),
        duration: match &rule.ban {
            BanLength::For(length) => Some(duration_text(*length)),
            BanLength::Never | BanLength::Escalating(_) => None,
        },
        escalate: match &rule.ban {
            BanLength::Escalating(lengths) => Some(
                lengths
                    .iter()
                    .map(|length| duration_text(*length))
                    .collect(),
            ),
            BanLength::Never | BanLength::For(_) => None,
        },
        matched: 0,
        mitigated: 0,
        would_mitigate: 0,
        keys: 0,
        bans: 0,
        last_matched: None,
        candidate: rule.candidate.as_ref().map(|own| candidate(&own.limiter)),
        imitate: None,
    }
}

fn imitation(progress: LearningProgress) -> ImitationObject {
    ImitationObject {
        ready: progress.is_ready,
        responses: progress.responses,
        clients: progress.clients,
        difference: progress.difference,
    }
}

fn candidate(limiter: &Limiter) -> CandidateObject {
    CandidateObject {
        algorithm: limiter.algorithm.row().name,
        limit: limiter.limit,
        period: period(limiter),
        burst: burst(limiter),
        stricter: 0,
        laxer: 0,
        differing_keys: None,
    }
}

fn with_totals(mut rule: RuleObject, metrics: &RuleMetrics) -> RuleObject {
    rule.matched = metrics.matched_mitigate.get();
    rule.mitigated = metrics.mitigated.get();
    rule.would_mitigate = metrics.would_mitigate.get();
    if let Some((candidate, divergence)) = rule.candidate.as_mut().zip(metrics.divergence.as_ref())
    {
        candidate.stricter = divergence.mitigates.get();
        candidate.laxer = divergence.admits.get();
    }
    rule
}

/// The period as a setting. `None` for `concurrency`.
fn period(limiter: &Limiter) -> Option<String> {
    (!limiter.algorithm.holds_leases()).then(|| duration_text(limiter.period))
}

/// The burst. `None` for an algorithm without one.
fn burst(limiter: &Limiter) -> Option<u64> {
    (limiter.algorithm.row().capacity == CapacityKind::Burst).then_some(limiter.burst)
}
