//! Chooses which of a rule's conditions becomes its guard.
//!
//! The choice is a heuristic: a bad guard costs time but never changes a decision. A good guard
//! holds for few requests, occurs in few other rules and is cheap to read. A value that few rules
//! read is not worth a group of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use super::{IndexCost, cost};
use crate::expr::{Prefilter, PrefilterCondition, PrefilterTest, ValueSource};

/// A rule's guard: at least one of these tests must hold. `None` if the rule has no guard.
pub(super) type Guard<'n> = Option<Vec<&'n PrefilterTest>>;

/// A value and the kind of test on it. The guards of one site form a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GuardSite<'n> {
    pub(super) source: &'n ValueSource,
    pub(super) kind: GuardKind,
}

/// The kinds of tests on a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GuardKind {
    /// Compares the start of the value, or the whole value.
    Head,
    /// Searches the whole value for substrings.
    Parts,
    Int,
    Ip,
    /// Looks the value up in one large set.
    Set(usize),
    /// Looks the address up in one large set.
    Ips([usize; 2]),
}

/// The state of the choice, over all rules.
struct Choice<'n> {
    /// The number of rules that could use a condition, by the condition's hash.
    rules_per_condition: HashMap<u64, u64>,
    excluded: HashSet<GuardSite<'n>>,
}

/// Chooses the guards of rules with these prefilters.
pub(super) fn guards<'n>(needs: &'n [Prefilter], worth: IndexCost<'_>) -> Vec<Guard<'n>> {
    let mut choice = Choice {
        rules_per_condition: HashMap::new(),
        excluded: HashSet::new(),
    };
    needs.iter().for_each(|need| choice.count(need));
    // Each iteration closes a site or is the last.
    loop {
        let guards: Vec<Guard<'n>> = needs.iter().map(|need| choice.guard(need)).collect();
        if !choice.exclude_rare_sites(&guards, worth) {
            return guards;
        }
    }
}

// === impl GuardSite ===

impl<'n> GuardSite<'n> {
    pub(super) fn of(atom: &'n PrefilterTest) -> GuardSite<'n> {
        let kind = match &atom.hint {
            PrefilterCondition::Exact(_) | PrefilterCondition::Prefix(_) => GuardKind::Head,
            PrefilterCondition::Contains(_) => GuardKind::Parts,
            PrefilterCondition::Ints(..) => GuardKind::Int,
            PrefilterCondition::Ips(..) => GuardKind::Ip,
            PrefilterCondition::InStrings(set) => GuardKind::Set(set.id()),
            PrefilterCondition::InInts(set) => GuardKind::Set(set.id()),
            PrefilterCondition::InIps(set) => GuardKind::Ips(set.id()),
        };
        GuardSite {
            source: &atom.source,
            kind,
        }
    }
}

// === impl Choice ===

impl<'n> Choice<'n> {
    fn count(&mut self, need: &Prefilter) {
        match need {
            Prefilter::Anything => {}
            Prefilter::Atom(atom) => *self.rules_per_condition.entry(hash(atom)).or_default() += 1,
            Prefilter::All(parts) | Prefilter::Any(parts) => {
                parts.iter().for_each(|part| self.count(part))
            }
        }
    }

    fn guard(&self, need: &'n Prefilter) -> Guard<'n> {
        let mut guard = Vec::new();
        self.weigh(need)?;
        self.collect(need, &mut guard);
        Some(guard)
    }

    /// A relative estimate of how often the best guard holds. `None` if there is no guard.
    fn weigh(&self, need: &'n Prefilter) -> Option<u64> {
        match need {
            Prefilter::Anything => None,
            Prefilter::Atom(atom) if self.excluded.contains(&GuardSite::of(atom)) => None,
            Prefilter::Atom(atom) => {
                let rules = self
                    .rules_per_condition
                    .get(&hash(atom))
                    .copied()
                    .unwrap_or(1);
                Some(commonness(atom).saturating_mul(rules))
            }
            Prefilter::All(parts) => parts.iter().filter_map(|part| self.weigh(part)).min(),
            Prefilter::Any(parts) => parts.iter().try_fold(0, |sum: u64, part| {
                Some(sum.saturating_add(self.weigh(part)?))
            }),
        }
    }

    fn collect(&self, need: &'n Prefilter, guard: &mut Vec<&'n PrefilterTest>) {
        match need {
            Prefilter::Anything => {}
            Prefilter::Atom(atom) => guard.push(atom),
            Prefilter::All(parts) => {
                let weighed = parts
                    .iter()
                    .filter_map(|part| Some((self.weigh(part)?, part)));
                if let Some((_, best)) = weighed.min_by_key(|(weight, _)| *weight) {
                    self.collect(best, guard);
                }
            }
            Prefilter::Any(parts) => parts.iter().for_each(|part| self.collect(part, guard)),
        }
    }

    /// Closes the sites that too few rules use; returns whether there were any.
    fn exclude_rare_sites(&mut self, guards: &[Guard<'n>], worth: IndexCost<'_>) -> bool {
        let mut users: HashMap<GuardSite<'n>, usize> = HashMap::new();
        for guard in guards.iter().flatten() {
            let sites: HashSet<GuardSite<'n>> =
                guard.iter().map(|atom| GuardSite::of(atom)).collect();
            sites
                .into_iter()
                .for_each(|site| *users.entry(site).or_default() += 1);
        }
        let few = |(site, users): &(GuardSite<'n>, usize)| *users < cost::least(*site, worth);
        let few: Vec<GuardSite<'n>> = users
            .into_iter()
            .filter(few)
            .map(|(site, _)| site)
            .collect();
        self.excluded.extend(&few);
        !few.is_empty()
    }
}

/// A relative estimate of how often the test holds.
fn commonness(atom: &PrefilterTest) -> u64 {
    let text = |base: u64, worst: u64, text: &[u8]| base + worst / (1 + text.len() as u64);
    let hint = match &atom.hint {
        PrefilterCondition::Exact(whole) => text(16, 128, whole),
        PrefilterCondition::Prefix(start) => text(24, 512, start),
        PrefilterCondition::Contains(part) => text(48, 512, part),
        PrefilterCondition::Ints(low, high) => {
            32 + 8 * u64::from(high.abs_diff(*low).checked_ilog2().unwrap_or(0))
        }
        PrefilterCondition::Ips(IpAddr::V4(low), IpAddr::V4(high)) => {
            let size = high.to_bits().abs_diff(low.to_bits());
            16 + 12 * u64::from(size.checked_ilog2().unwrap_or(0))
        }
        PrefilterCondition::Ips(..) => 64,
        PrefilterCondition::InStrings(_)
        | PrefilterCondition::InInts(_)
        | PrefilterCondition::InIps(_) => 256,
    };
    hint + cost::of(&atom.source) as u64 / 4
}

fn hash(atom: &PrefilterTest) -> u64 {
    let mut hasher = DefaultHasher::new();
    GuardSite::of(atom).hash(&mut hasher);
    match &atom.hint {
        PrefilterCondition::Exact(text) => (0, text).hash(&mut hasher),
        PrefilterCondition::Prefix(text) => (1, text).hash(&mut hasher),
        PrefilterCondition::Contains(text) => (2, text).hash(&mut hasher),
        PrefilterCondition::Ints(low, high) => (low, high).hash(&mut hasher),
        PrefilterCondition::Ips(low, high) => (low, high).hash(&mut hasher),
        PrefilterCondition::InStrings(_)
        | PrefilterCondition::InInts(_)
        | PrefilterCondition::InIps(_) => {}
    }
    hasher.finish()
}
