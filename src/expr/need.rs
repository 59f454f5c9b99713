//! What must hold for a test to hold: a weaker test that an index over many rules can answer for
//! all of them at once.
//!
//! It errs on one side only. Where the test holds, its need holds; where the need holds, nothing
//! is known. All strings are in lower case and are compared without ASCII case, so that `lower`,
//! `wildcard` and `(?i)` need nothing of their own.

use std::net::IpAddr;

use super::set::{IntSet, IpSet, StringSet};
use super::term::{Bytes, BytesTest, Int, IntTest, Ip, IpTest, Order, Source, Test};
use super::transform::Transform;
use super::wildcard::Wildcard;
use super::{FieldId, regexes};

/// A set with more parts than this is asked as a whole.
const FEW: usize = 128;

/// A condition that a test needs.
#[derive(Clone, Debug)]
pub enum Need {
    /// Nothing is known.
    Anything,
    /// One value.
    Atom(Atom),
    /// All of these; each alone is needed too.
    All(Vec<Need>),
    /// One of these; of none, the test never holds.
    Any(Vec<Need>),
}

/// A value and what it must be.
#[derive(Clone, Debug)]
pub struct Atom {
    /// Where the value comes from. A missing one is nothing that it must be.
    pub place: Place,
    /// What it must be.
    pub hint: Hint,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A field.
    Field(FieldId),
    /// One value of a list.
    Element {
        /// The map or array.
        field: FieldId,
        /// The entry of the map.
        name: Option<Box<[u8]>>,
        /// Which one.
        index: i32,
    },
    /// Some value of a list.
    Each {
        /// The map or array.
        field: FieldId,
        /// The entry of the map.
        name: Option<Box<[u8]>>,
    },
}

/// What a value must be.
#[derive(Clone, Debug)]
pub enum Hint {
    /// The whole of it.
    Exact(Box<[u8]>),
    /// How it starts; an empty start: it must be there.
    Prefix(Box<[u8]>),
    /// A part of it; never empty.
    Contains(Box<[u8]>),
    /// From one integer to another.
    Ints(i64, i64),
    /// From one address to another of the same family, neither IPv4-mapped.
    Ips(IpAddr, IpAddr),
    /// One of many strings, byte by byte.
    InStrings(StringSet),
    /// One of many integers.
    InInts(IntSet),
    /// One of many addresses.
    InIps(IpSet),
}

/// A string that a test looks at, by the value that it is made of.
#[derive(Clone)]
struct Spot {
    place: Place,
    cut: Cut,
    /// Letters may have changed their case.
    folded: bool,
}

/// What a string has of the value that it is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    Whole,
    /// The start.
    Head,
    /// Neighbouring bytes.
    Part,
    /// Nobody knows.
    Lost,
}

/// What `test` needs.
pub(super) fn of(test: &Test) -> Need {
    need(test, None)
}

/// The field that `test` reads whatever the other values are.
pub(super) fn first_read(test: &Test) -> Option<FieldId> {
    match test {
        Test::Const(_) => None,
        Test::Field(field, _) => Some(*field),
        Test::Not(inner) => first_read(inner),
        Test::And(parts) | Test::Or(parts) | Test::Xor(parts) => first_read(parts.first()?),
        Test::Bytes(term, _) => read_by(term),
        Test::Int(Int::Field(field), _) => Some(*field),
        Test::Any(source, _) | Test::All(source, _) => list_read(source),
        Test::Ip(Ip::Field(field), _) => Some(*field),
        Test::Int(..) | Test::Ip(..) | Test::Kept(_) => None,
    }
}

fn read_by(term: &Bytes) -> Option<FieldId> {
    match term {
        Bytes::Field(field) => Some(*field),
        Bytes::Element(source, _) => list_read(source),
        Bytes::Changed(_, inner) => read_by(inner),
        _ => None,
    }
}

fn list_read(source: &Source) -> Option<FieldId> {
    match source {
        Source::Field { field, .. } => Some(*field),
        Source::Split { text, .. } => read_by(text),
        Source::Chain(_) => None,
    }
}

/// `item`: where the value comes from that `any` is looking at.
fn need(test: &Test, item: Option<&Spot>) -> Need {
    match test {
        Test::Const(false) => Need::Any(Vec::new()),
        Test::And(parts) => Need::All(parts.iter().map(|part| need(part, item)).collect()),
        Test::Or(parts) => Need::Any(parts.iter().map(|part| need(part, item)).collect()),
        Test::Bytes(term, test) => match Spot::of(term, item) {
            Some(spot) => spot.need(test),
            None => Need::Anything,
        },
        Test::Int(Int::Field(field), test) => int(*field, test),
        Test::Ip(Ip::Field(field), test) => ip(*field, test),
        // `all` of no value holds.
        Test::Any(source, each) => need(&each.test, Spot::each(source, item).as_ref()),
        _ => Need::Anything,
    }
}

fn int(field: FieldId, test: &IntTest) -> Need {
    let within = |low, high| Need::at(Place::Field(field), Hint::Ints(low, high));
    match test {
        IntTest::Eq(value) => within(*value, *value),
        // One too many at a bound is no harm.
        IntTest::Order(Order::Lt | Order::Le, value) => within(i64::MIN, *value),
        IntTest::Order(Order::Gt | Order::Ge, value) => within(*value, i64::MAX),
        IntTest::In(set) => match set.ranges(FEW) {
            Some(ranges) => Need::Any(ranges.into_iter().map(|(l, h)| within(l, h)).collect()),
            None => Need::at(Place::Field(field), Hint::InInts(set.clone())),
        },
        IntTest::Ne(_) | IntTest::Bits(_) => Need::Anything,
    }
}

fn ip(field: FieldId, test: &IpTest) -> Need {
    let within = |low, high| Need::at(Place::Field(field), Hint::Ips(low, high));
    match test {
        IpTest::Eq(ip) => within(ip.to_canonical(), ip.to_canonical()),
        IpTest::In(set) => match set.ranges(FEW) {
            Some(ranges) => Need::Any(ranges.into_iter().map(|(l, h)| within(l, h)).collect()),
            None => Need::at(Place::Field(field), Hint::InIps(set.clone())),
        },
        IpTest::Ne(_) => Need::Anything,
    }
}

// === impl Need ===

impl Need {
    fn at(place: Place, hint: Hint) -> Need {
        Need::Atom(Atom { place, hint })
    }
}

// === impl Place ===

impl Place {
    /// The field that is read.
    pub fn field(&self) -> FieldId {
        match self {
            Place::Field(field) | Place::Element { field, .. } | Place::Each { field, .. } => {
                *field
            }
        }
    }
}

// === impl Spot ===

impl Spot {
    fn of(term: &Bytes, item: Option<&Spot>) -> Option<Spot> {
        match term {
            Bytes::Field(field) => Some(Spot::whole(Place::Field(*field))),
            Bytes::Element(Source::Field { field, name }, index) => {
                Some(Spot::whole(Place::Element {
                    field: *field,
                    name: name.clone(),
                    index: *index,
                }))
            }
            Bytes::Element(source, _) => Spot::each(source, item),
            Bytes::Item => item.cloned(),
            Bytes::Changed(change, inner) => Some(Spot::of(inner, item)?.changed(change)),
            Bytes::Literal(_) | Bytes::Text(_) | Bytes::Concat(_) | Bytes::Join(..) => None,
        }
    }

    /// Any value of a list.
    fn each(source: &Source, item: Option<&Spot>) -> Option<Spot> {
        match source {
            Source::Field { field, name } => Some(Spot::whole(Place::Each {
                field: *field,
                name: name.clone(),
            })),
            Source::Split { text, .. } => Some(Spot::of(text, item)?.cut(Cut::Part)),
            Source::Chain(_) => None,
        }
    }

    fn whole(place: Place) -> Spot {
        Spot {
            place,
            cut: Cut::Whole,
            folded: false,
        }
    }

    fn changed(self, change: &Transform) -> Spot {
        match change {
            Transform::Lower | Transform::Upper => Spot {
                folded: true,
                ..self
            },
            Transform::Substring(0, _) => self.cut(Cut::Head),
            Transform::Substring(..) => self.cut(Cut::Part),
            _ => self.cut(Cut::Lost),
        }
    }

    fn cut(self, cut: Cut) -> Spot {
        Spot {
            cut: self.cut.max(cut),
            ..self
        }
    }

    fn need(&self, test: &BytesTest) -> Need {
        match test {
            BytesTest::Eq(text) => self.exact(text),
            BytesTest::Starts(text) => self.prefix(text),
            BytesTest::Contains(text) | BytesTest::Ends(text) => self.contains(text),
            BytesTest::In(set) => self.one_of(set),
            BytesTest::Wildcard(pattern) => self.wildcard(pattern),
            BytesTest::Matches(regex) => Need::All(
                regexes::literals(regex.as_str())
                    .iter()
                    .map(|any| Need::Any(any.iter().map(|text| self.contains(text)).collect()))
                    .chain([self.present()])
                    .collect(),
            ),
            BytesTest::Ne(_) | BytesTest::Order(..) => self.present(),
        }
    }

    fn wildcard(&self, pattern: &Wildcard) -> Need {
        if pattern.stars() == 0 {
            return self.exact(pattern.head());
        }
        Need::All(vec![
            self.prefix(pattern.head()),
            self.contains(pattern.middle()),
            self.contains(pattern.tail()),
        ])
    }

    fn one_of(&self, set: &StringSet) -> Need {
        match set.values(FEW) {
            Some(values) => Need::Any(values.into_iter().map(|text| self.exact(text)).collect()),
            None if self.cut == Cut::Whole && !self.folded => {
                Need::at(self.place.clone(), Hint::InStrings(set.clone()))
            }
            None => self.present(),
        }
    }

    fn exact(&self, text: &[u8]) -> Need {
        match self.cut {
            Cut::Whole => self.at(Hint::Exact(text.to_ascii_lowercase().into())),
            _ => self.prefix(text),
        }
    }

    fn prefix(&self, text: &[u8]) -> Need {
        match self.cut {
            Cut::Whole | Cut::Head => self.at(Hint::Prefix(text.to_ascii_lowercase().into())),
            _ => self.contains(text),
        }
    }

    fn contains(&self, text: &[u8]) -> Need {
        match self.cut {
            Cut::Lost => self.present(),
            _ if text.is_empty() => self.present(),
            _ => self.at(Hint::Contains(text.to_ascii_lowercase().into())),
        }
    }

    fn present(&self) -> Need {
        self.at(Hint::Prefix(Box::default()))
    }

    fn at(&self, hint: Hint) -> Need {
        Need::at(self.place.clone(), hint)
    }
}
