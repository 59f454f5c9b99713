//! Which of the conditions that a rule needs becomes its guard.
//!
//! A guess, and a wrong one costs time, never an answer. A good guard holds for few requests,
//! stands in few other rules and is cheap to read; a value that few rules ask for is not worth a
//! group of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use super::{Worth, price};
use crate::expr::{Atom, Hint, Need, Place};

/// What a rule's guard is: at least one of these must hold. `None`: it has none.
pub(super) type Guard<'n> = Option<Vec<&'n Atom>>;

/// A value and the way of looking at it: what makes a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site<'n> {
    pub(super) place: &'n Place,
    pub(super) kind: Kind,
}

/// Ways of looking at a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
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
    closed: HashSet<Site<'n>>,
}

/// The guards of rules with these needs.
pub(super) fn guards<'n>(needs: &'n [Need], worth: Worth<'_>) -> Vec<Guard<'n>> {
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

// === impl Site ===

impl<'n> Site<'n> {
    pub(super) fn of(atom: &'n Atom) -> Site<'n> {
        let kind = match &atom.hint {
            Hint::Exact(_) | Hint::Prefix(_) => Kind::Head,
            Hint::Contains(_) => Kind::Parts,
            Hint::Ints(..) => Kind::Int,
            Hint::Ips(..) => Kind::Ip,
            Hint::InStrings(set) => Kind::Set(set.id()),
            Hint::InInts(set) => Kind::Set(set.id()),
            Hint::InIps(set) => Kind::Ips(set.id()),
        };
        Site {
            place: &atom.place,
            kind,
        }
    }
}

// === impl Choice ===

impl<'n> Choice<'n> {
    fn count(&mut self, need: &Need) {
        match need {
            Need::Anything => {}
            Need::Atom(atom) => *self.crowds.entry(hash(atom)).or_default() += 1,
            Need::All(parts) | Need::Any(parts) => parts.iter().for_each(|part| self.count(part)),
        }
    }

    fn guard(&self, need: &'n Need) -> Guard<'n> {
        let mut guard = Vec::new();
        self.weigh(need)?;
        self.collect(need, &mut guard);
        Some(guard)
    }

    /// How often the best guard holds, on no scale; `None`: there is none.
    fn weigh(&self, need: &'n Need) -> Option<u64> {
        match need {
            Need::Anything => None,
            Need::Atom(atom) if self.closed.contains(&Site::of(atom)) => None,
            Need::Atom(atom) => {
                let crowd = self.crowds.get(&hash(atom)).copied().unwrap_or(1);
                Some(commonness(atom).saturating_mul(crowd))
            }
            Need::All(parts) => parts.iter().filter_map(|part| self.weigh(part)).min(),
            Need::Any(parts) => parts.iter().try_fold(0, |sum: u64, part| {
                Some(sum.saturating_add(self.weigh(part)?))
            }),
        }
    }

    fn collect(&self, need: &'n Need, guard: &mut Vec<&'n Atom>) {
        match need {
            Need::Anything => {}
            Need::Atom(atom) => guard.push(atom),
            Need::All(parts) => {
                let weighed = parts
                    .iter()
                    .filter_map(|part| Some((self.weigh(part)?, part)));
                if let Some((_, best)) = weighed.min_by_key(|(weight, _)| *weight) {
                    self.collect(best, guard);
                }
            }
            Need::Any(parts) => parts.iter().for_each(|part| self.collect(part, guard)),
        }
    }

    /// Closes the sites that too few rules use; whether there were any.
    fn close(&mut self, guards: &[Guard<'n>], worth: Worth<'_>) -> bool {
        let mut users: HashMap<Site<'n>, usize> = HashMap::new();
        for guard in guards.iter().flatten() {
            let sites: HashSet<Site<'n>> = guard.iter().map(|atom| Site::of(atom)).collect();
            sites
                .into_iter()
                .for_each(|site| *users.entry(site).or_default() += 1);
        }
        let few = |(site, users): &(Site<'n>, usize)| *users < price::least(*site, worth);
        let few: Vec<Site<'n>> = users
            .into_iter()
            .filter(few)
            .map(|(site, _)| site)
            .collect();
        self.closed.extend(&few);
        !few.is_empty()
    }
}

/// How likely a value is to be such, on no scale.
fn commonness(atom: &Atom) -> u64 {
    let text = |base: u64, worst: u64, text: &[u8]| base + worst / (1 + text.len() as u64);
    let hint = match &atom.hint {
        Hint::Exact(whole) => text(16, 128, whole),
        Hint::Prefix(start) => text(24, 512, start),
        Hint::Contains(part) => text(48, 512, part),
        Hint::Ints(low, high) => {
            32 + 8 * u64::from(high.abs_diff(*low).checked_ilog2().unwrap_or(0))
        }
        Hint::Ips(IpAddr::V4(low), IpAddr::V4(high)) => {
            let size = high.to_bits().abs_diff(low.to_bits());
            16 + 12 * u64::from(size.checked_ilog2().unwrap_or(0))
        }
        Hint::Ips(..) => 64,
        Hint::InStrings(_) | Hint::InInts(_) | Hint::InIps(_) => 256,
    };
    hint + price::of(&atom.place) as u64 / 4
}

fn hash(atom: &Atom) -> u64 {
    let mut hasher = DefaultHasher::new();
    Site::of(atom).hash(&mut hasher);
    match &atom.hint {
        Hint::Exact(text) => (0, text).hash(&mut hasher),
        Hint::Prefix(text) => (1, text).hash(&mut hasher),
        Hint::Contains(text) => (2, text).hash(&mut hasher),
        Hint::Ints(low, high) => (low, high).hash(&mut hasher),
        Hint::Ips(low, high) => (low, high).hash(&mut hasher),
        Hint::InStrings(_) | Hint::InInts(_) | Hint::InIps(_) => {}
    }
    hasher.finish()
}
