//! Which of the conditions that a rule needs becomes its guard.
//!
//! A guess, and a wrong one costs time, never an answer. A good guard holds for few requests,
//! stands in few other rules and is cheap to read; a value that few rules ask for is not worth a
//! group of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use super::{IndexCost, cost};
use crate::expr::{Prefilter, PrefilterCondition, PrefilterTest, ValueSource};

/// What a rule's guard is: at least one of these must hold. `None`: it has none.
pub(super) type Guard<'n> = Option<Vec<&'n PrefilterTest>>;

/// A value and the way of looking at it: what makes a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GuardSite<'n> {
    pub(super) place: &'n ValueSource,
    pub(super) kind: GuardKind,
}

/// Ways of looking at a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GuardKind {
    /// At how it starts, or the whole.
    Head,
    /// At all its parts.
    Parts,
    Int,
    Ip,
    /// At one big set.
    Set(usize),
    /// At one big set of addresses.
    Ips([usize; 2]),
}

/// What is known about all rules.
struct Choice<'n> {
    /// How many rules could use a condition, by its hash.
    crowds: HashMap<u64, u64>,
    closed: HashSet<GuardSite<'n>>,
}

/// The guards of rules with these needs.
pub(super) fn guards<'n>(needs: &'n [Prefilter], worth: IndexCost<'_>) -> Vec<Guard<'n>> {
    let mut choice = Choice {
        crowds: HashMap::new(),
        closed: HashSet::new(),
    };
    needs.iter().for_each(|need| choice.count(need));
    // Each round closes a site, or is the last.
    loop {
        let guards: Vec<Guard<'n>> = needs.iter().map(|need| choice.guard(need)).collect();
        if !choice.close(&guards, worth) {
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
            place: &atom.place,
            kind,
        }
    }
}

// === impl Choice ===

impl<'n> Choice<'n> {
    fn count(&mut self, need: &Prefilter) {
        match need {
            Prefilter::Anything => {}
            Prefilter::Atom(atom) => *self.crowds.entry(hash(atom)).or_default() += 1,
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

    /// How often the best guard holds, on no scale; `None`: there is none.
    fn weigh(&self, need: &'n Prefilter) -> Option<u64> {
        match need {
            Prefilter::Anything => None,
            Prefilter::Atom(atom) if self.closed.contains(&GuardSite::of(atom)) => None,
            Prefilter::Atom(atom) => {
                let crowd = self.crowds.get(&hash(atom)).copied().unwrap_or(1);
                Some(commonness(atom).saturating_mul(crowd))
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

    /// Closes the sites that too few rules use; whether there were any.
    fn close(&mut self, guards: &[Guard<'n>], worth: IndexCost<'_>) -> bool {
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
        self.closed.extend(&few);
        !few.is_empty()
    }
}

/// How likely a value is to be such, on no scale.
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
    hint + cost::of(&atom.place) as u64 / 4
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
