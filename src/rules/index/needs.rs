//! The prefilter of a rule, derived from the prefilters of its expressions.

use super::super::{Rule, RuleScope};
use crate::expr::{
    FieldId, Phase, Predicate, Prefilter, PrefilterCondition, PrefilterTest, ValueSource,
};
use crate::facts::fields;

/// The condition for a rule to have a step that can affect the request or its response.
///
/// A rule that counts responses and sends quota headers peeks at its counter for every request, to
/// show the quota as of the request. Only the quotas of rules that then count the response are
/// shown. A rule counts it only if `count` holds, which includes the conditions of `count` on the
/// request; no response changes those. If they do not hold, the peek can be left out: it charges
/// nothing, and a request that does not match `mitigate` is not acted on.
pub(in super::super) fn to_plan(rule: &Rule) -> Prefilter {
    let (_, mitigate) = rule.predicates();
    let stops = adapt(mitigate.need(), Phase::Request);
    let counts = || counting_need(rule, Phase::Request);
    match &rule.scope {
        RuleScope::Same(_) => stops,
        RuleScope::Separate { .. } if rule.limiter.is_none() => stops,
        RuleScope::Separate { .. } if rule.counts_response() && !rule.sends_quota_headers() => {
            stops
        }
        RuleScope::Share { .. } if rule.counts_response() => stops,
        RuleScope::Separate { .. } | RuleScope::Share { .. } => {
            Prefilter::Any(vec![counts(), stops])
        }
    }
}

/// The condition for a rule to count a response.
pub(in super::super) fn to_settle(rule: &Rule) -> Prefilter {
    if rule.counts_response() {
        counting_need(rule, Phase::Response)
    } else {
        Prefilter::Any(Vec::new())
    }
}

/// The condition on a request for a rule to count its response, whatever the response is.
pub(in super::super) fn to_await(rule: &Rule) -> Prefilter {
    if rule.counts_response() {
        counting_need(rule, Phase::Request)
    } else {
        Prefilter::Any(Vec::new())
    }
}

/// The condition for a rule to count a request or its response, in its count or only in its total.
fn counting_need(rule: &Rule, phase: Phase) -> Prefilter {
    let count = adapt(rule.predicates().0.need(), phase);
    match rule.total() {
        Some(total) => Prefilter::Any(vec![count, adapt(total.need(), phase)]),
        None => count,
    }
}

/// The fields that the rule's first tests read for every request, and in `phase` response also for every response.
pub(in super::super) fn reads_first(rule: &Rule, phase: Phase) -> impl Iterator<Item = FieldId> {
    let (count, mitigate) = rule.predicates();
    let in_phase = |count: &&Predicate| phase == Phase::Response || !count.reads_response();
    let first_of = |count: Option<&Predicate>| {
        let count = count.filter(in_phase);
        count.and_then(Predicate::first_read)
    };
    let firsts = [
        first_of(Some(count)),
        first_of(rule.total()),
        mitigate.first_read(),
    ];
    firsts.into_iter().flatten()
}

/// Reduces a prefilter to the tests that are known in `phase`. For a map entry, adds the test that
/// the map's names contain the entry's name.
pub(super) fn adapt(need: &Prefilter, phase: Phase) -> Prefilter {
    let each = |parts: &[Prefilter]| parts.iter().map(|part| adapt(part, phase)).collect();
    match need {
        Prefilter::Anything => Prefilter::Anything,
        Prefilter::All(parts) => Prefilter::All(each(parts)),
        Prefilter::Any(parts) => Prefilter::Any(each(parts)),
        Prefilter::Atom(atom) if phase == Phase::Request && is_later(atom) => Prefilter::Anything,
        Prefilter::Atom(atom) => match named(&atom.source) {
            Some(name) => Prefilter::All(vec![need.clone(), Prefilter::Atom(name)]),
            None => need.clone(),
        },
    }
}

fn is_later(atom: &PrefilterTest) -> bool {
    fields::by_id(atom.source.field()).phase == Phase::Response
}

/// The test that the map's names contain the entry's name. `None` if the source is not a named entry.
fn named(place: &ValueSource) -> Option<PrefilterTest> {
    let (ValueSource::Element { field, name, .. } | ValueSource::Each { field, name }) = place
    else {
        return None;
    };
    let hint = PrefilterCondition::Exact(name.as_ref()?.to_ascii_lowercase().into());
    let source = ValueSource::Each {
        field: fields::names_of(*field)?,
        name: None,
    };
    Some(PrefilterTest { source, hint })
}
