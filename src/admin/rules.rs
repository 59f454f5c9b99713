//! `/api/rules`: the rules with their settings and totals.

use super::objects::{CandidateObject, RuleObject};
use super::state::{AdminState, StoreCounts};
use crate::config::duration_text;
use crate::limit::{CapacityKind, Limiter};
use crate::observe::RuleMetrics;
use crate::rules::{BanLength, Rule};
use crate::snapshot::Snapshot;

/// Returns every rule in file order, disabled ones too.
pub(super) async fn rules(state: &AdminState) -> Vec<RuleObject> {
    let snapshot = state.snapshot();
    let counts = state.store_counts().await;
    all_rules(&snapshot, &counts)
}

fn all_rules(snapshot: &Snapshot, counts: &StoreCounts) -> Vec<RuleObject> {
    let enabled = snapshot.rules.iter().zip(&snapshot.rule_resources);
    let enabled = enabled.map(|((_, rule), own)| RuleObject {
        keys: counts.keys_of(rule.id),
        bans: counts.bans_of(rule.id),
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
