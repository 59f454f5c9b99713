//! What a rule needs of a request, from what its expressions need.

use super::super::{Rule, RuleScope};
use crate::expr::{
    FieldId, Phase, Predicate, Prefilter, PrefilterCondition, PrefilterTest, ValueSource,
};
use crate::facts::fields;

/// What must hold for a rule to have a step in a plan that anybody can notice.
///
/// A rule that counts responses and tells of its quota looks at its counter for every request, so
/// that the headers can show what was known. What is shown is only the quota of rules that count
/// the answer in the end. They count it only if `count` holds, and so what `count` needs of the
/// request, which no answer changes. Where that fails already, nobody would see the look: it
/// charges nothing, and a request that does not match `mitigate` is not acted on.
pub(in super::super) fn to_plan(rule: &Rule) -> Prefilter {
    let (count, mitigate) = rule.predicates();
    let stops = adapt(mitigate.need(), Phase::Request);
    let counts = || adapt(count.need(), Phase::Request);
    match &rule.scope {
        RuleScope::Same(_) => stops,
        RuleScope::Separate { .. } if rule.limiter.is_none() => stops,
        RuleScope::Separate { .. } if rule.counts_response() && !rule.sends_quota_headers() => {
            stops
        }
        RuleScope::Separate { .. } => Prefilter::Any(vec![counts(), stops]),
    }
}

/// What must hold for a rule to count an answer.
pub(in super::super) fn to_settle(rule: &Rule) -> Prefilter {
    match rule.counts_response() {
        true => adapt(rule.predicates().0.need(), Phase::Response),
        false => Prefilter::Any(Vec::new()),
    }
}

/// What must hold of a request for a rule to count its answer, whatever that is.
pub(in super::super) fn to_await(rule: &Rule) -> Prefilter {
    match rule.counts_response() {
        true => adapt(rule.predicates().0.need(), Phase::Request),
        false => Prefilter::Any(Vec::new()),
    }
}

/// The fields that the rule's first tests read for every request, or for every answer too.
pub(in super::super) fn reads_first(rule: &Rule, phase: Phase) -> impl Iterator<Item = FieldId> {
    let (count, mitigate) = rule.predicates();
    let count = Some(count).filter(|count| phase == Phase::Response || !count.reads_response());
    let firsts = [count.and_then(Predicate::first_read), mitigate.first_read()];
    firsts.into_iter().flatten()
}

/// The need with what can be told in `phase`, and with the names of entries as another way to
/// know that a value is there.
pub(super) fn adapt(need: &Prefilter, phase: Phase) -> Prefilter {
    let each = |parts: &[Prefilter]| parts.iter().map(|part| adapt(part, phase)).collect();
    match need {
        Prefilter::Anything => Prefilter::Anything,
        Prefilter::All(parts) => Prefilter::All(each(parts)),
        Prefilter::Any(parts) => Prefilter::Any(each(parts)),
        Prefilter::Atom(atom) if phase == Phase::Request && is_later(atom) => Prefilter::Anything,
        Prefilter::Atom(atom) => match named(&atom.place) {
            Some(name) => Prefilter::All(vec![need.clone(), Prefilter::Atom(name)]),
            None => need.clone(),
        },
    }
}

fn is_later(atom: &PrefilterTest) -> bool {
    fields::by_id(atom.place.field()).phase == Phase::Response
}

/// The name of the entry among the names of its map.
fn named(place: &ValueSource) -> Option<PrefilterTest> {
    let (ValueSource::Element { field, name, .. } | ValueSource::Each { field, name }) = place
    else {
        return None;
    };
    let hint = PrefilterCondition::Exact(name.as_ref()?.to_ascii_lowercase().into());
    let place = ValueSource::Each {
        field: fields::names_of(*field)?,
        name: None,
    };
    Some(PrefilterTest { place, hint })
}
