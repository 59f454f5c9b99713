//! All guards that look at one value in one way.

use std::net::IpAddr;
use std::ops::ControlFlow;

use super::heads::Heads;
use super::parts::Parts;
use super::spans::Spans;
use super::{Marks, Rules};
use crate::expr::{Context, Facts, Hint, IntSet, IpSet, Place, StringSet};

/// Guards on one value.
pub(super) struct Group {
    place: Place,
    /// The first rule that it can find.
    first: u16,
    look: Look,
}

/// How the value is looked at.
enum Look {
    Heads(Heads),
    Parts(Parts),
    Ints(Spans<i64>),
    Ips(Spans<u32>, Spans<u128>),
    InStrings(StringSet, Rules),
    InInts(IntSet, Rules),
    InIps(IpSet, Rules),
}

// === impl Group ===

impl Group {
    /// `hints` are of one kind. `None`: they are too many.
    pub(super) fn new(place: &Place, hints: &[(&Hint, u16)]) -> Option<Group> {
        let rules = || hints.iter().map(|(_, rule)| *rule);
        let look = match hints.first()?.0 {
            Hint::Exact(_) | Hint::Prefix(_) => Look::Heads(Heads::new(hints)),
            Hint::Contains(_) => Look::Parts(Parts::new(hints)?),
            Hint::Ints(..) => Look::Ints(Spans::new(hints.iter().filter_map(ints))),
            Hint::Ips(..) => Look::Ips(
                Spans::new(hints.iter().filter_map(v4)),
                Spans::new(hints.iter().filter_map(v6)),
            ),
            Hint::InStrings(set) => Look::InStrings(set.clone(), rules().collect()),
            Hint::InInts(set) => Look::InInts(set.clone(), rules().collect()),
            Hint::InIps(set) => Look::InIps(set.clone(), rules().collect()),
        };
        Some(Group {
            place: place.clone(),
            first: rules().min()?,
            look,
        })
    }

    /// The first rule that it can find.
    #[inline]
    pub(super) fn first(&self) -> u16 {
        self.first
    }

    /// Marks the rules whose guards hold.
    #[inline]
    pub(super) fn ask(&self, context: &Context<'_>, marks: &mut Marks<'_>) {
        match (&self.place, &self.look) {
            // A path, nearly always.
            (Place::Field(field), Look::Heads(heads)) => {
                if let Some(text) = context.text(*field) {
                    heads.ask(&text, marks);
                }
            }
            _ => self.ask_other(context.facts(), marks),
        }
    }

    #[inline(never)]
    fn ask_other(&self, facts: &dyn Facts, marks: &mut Marks<'_>) {
        let field = self.place.field();
        match &self.look {
            Look::Ints(spans) => {
                if let Some(value) = facts.int(field) {
                    spans.ask(value, marks);
                }
            }
            Look::Ips(v4, v6) => match facts.ip(field).map(|ip| ip.to_canonical()) {
                Some(IpAddr::V4(ip)) => v4.ask(ip.to_bits(), marks),
                Some(IpAddr::V6(ip)) => v6.ask(ip.to_bits(), marks),
                None => {}
            },
            Look::InInts(set, rules) => {
                if facts.int(field).is_some_and(|value| set.contains(value)) {
                    marks.add(rules);
                }
            }
            Look::InIps(set, rules) => {
                if facts.ip(field).is_some_and(|ip| set.contains(ip)) {
                    marks.add(rules);
                }
            }
            look => self.each(facts, |text| look.ask_text(text, marks)),
        }
    }

    /// Visits the strings at the place.
    fn each(&self, facts: &dyn Facts, mut visit: impl FnMut(&[u8])) {
        match &self.place {
            Place::Field(field) => {
                if let Some(text) = facts.bytes(*field) {
                    visit(&text);
                }
            }
            Place::Element { field, name, index } => {
                if let Some(text) = facts.element(*field, name.as_deref(), *index) {
                    visit(&text);
                }
            }
            Place::Each { field, name } => facts.each(*field, name.as_deref(), &mut |text| {
                visit(text);
                ControlFlow::Continue(())
            }),
        }
    }
}

// === impl Look ===

impl Look {
    fn ask_text(&self, text: &[u8], marks: &mut Marks<'_>) {
        match self {
            Look::Heads(heads) => heads.ask(text, marks),
            Look::Parts(parts) => parts.ask(text, marks),
            Look::InStrings(set, rules) if set.contains(text) => marks.add(rules),
            _ => {}
        }
    }
}

fn ints((hint, rule): &(&Hint, u16)) -> Option<(i64, i64, u16)> {
    match hint {
        Hint::Ints(low, high) => Some((*low, *high, *rule)),
        _ => None,
    }
}

fn v4((hint, rule): &(&Hint, u16)) -> Option<(u32, u32, u16)> {
    match hint {
        Hint::Ips(IpAddr::V4(low), IpAddr::V4(high)) => {
            Some((low.to_bits(), high.to_bits(), *rule))
        }
        _ => None,
    }
}

fn v6((hint, rule): &(&Hint, u16)) -> Option<(u128, u128, u16)> {
    match hint {
        Hint::Ips(IpAddr::V6(low), IpAddr::V6(high)) => {
            Some((low.to_bits(), high.to_bits(), *rule))
        }
        _ => None,
    }
}
