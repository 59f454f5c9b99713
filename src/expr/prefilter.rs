//! Prefilters: a weaker condition than a test, which an index over many rules can check for all of
//! them at once.
//!
//! If the test holds, its prefilter holds; if the prefilter holds, the test may or may not hold.
//! All strings are in lower case and are compared without ASCII case, so that `lower`, `wildcard`
//! and `(?i)` need no special handling.

use std::net::IpAddr;

use super::set::{IntSet, IpSet, StringSet};
use super::term::{
    BoolTerm, BytesTerm, BytesTest, IntTerm, IntTest, IpTerm, IpTest, OrderOp, StringSource,
};
use super::transform::TransformCall;
use super::wildcard::WildcardPattern;
use super::{FieldId, regexes};

/// A set with more parts than this is tested as a whole.
const FEW: usize = 128;

/// A necessary condition of a test.
#[derive(Clone, Debug)]
pub enum Prefilter {
    /// Always holds.
    Anything,
    /// A condition on one value.
    Atom(PrefilterTest),
    /// All of these must hold; each alone is a necessary condition too.
    All(Vec<Prefilter>),
    /// One of these must hold; if there are none, the test never holds.
    Any(Vec<Prefilter>),
}

/// A value and the condition on it.
#[derive(Clone, Debug)]
pub struct PrefilterTest {
    /// The source of the value. A missing value fulfils no condition.
    pub source: ValueSource,
    /// The condition on the value.
    pub hint: PrefilterCondition,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueSource {
    /// A field.
    Field(FieldId),
    /// One value of a list.
    Element {
        /// The map or array.
        field: FieldId,
        /// The entry of the map. `None` for an array.
        name: Option<Box<[u8]>>,
        /// The index of the value; a negative index counts from the end.
        index: i32,
    },
    /// Any value of a list.
    Each {
        /// The map or array.
        field: FieldId,
        /// The entry of the map. `None` for an array or all entries.
        name: Option<Box<[u8]>>,
    },
}

/// A condition on a value.
#[derive(Clone, Debug)]
pub enum PrefilterCondition {
    /// The value equals this string.
    Exact(Box<[u8]>),
    /// The value starts with this string; if empty, the value only has to exist.
    Prefix(Box<[u8]>),
    /// The value contains this string, which is never empty.
    Contains(Box<[u8]>),
    /// The value is in this inclusive range of integers.
    Ints(i64, i64),
    /// The value is in this inclusive range of addresses of one family, neither IPv4-mapped.
    Ips(IpAddr, IpAddr),
    /// The value is in this set of strings, compared byte by byte.
    InStrings(StringSet),
    /// The value is in this set of integers.
    InInts(IntSet),
    /// The value is in this set of addresses.
    InIps(IpSet),
}

/// The string that a test reads, described by the value that it is derived from.
#[derive(Clone)]
struct TestedString {
    source: ValueSource,
    cut: StringPart,
    /// Whether letters may have changed their case.
    folded: bool,
}

/// The part of the original value that a string contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StringPart {
    Whole,
    /// The first bytes of the value.
    Head,
    /// Consecutive bytes of the value.
    Part,
    /// Unknown.
    Lost,
}

/// The prefilter of `test`.
pub(super) fn of(test: &BoolTerm) -> Prefilter {
    need(test, None)
}

/// The field that `test` always reads first. `None` if it is not known.
pub(super) fn first_read(test: &BoolTerm) -> Option<FieldId> {
    match test {
        BoolTerm::Const(_) => None,
        BoolTerm::Field(field, _) => Some(*field),
        BoolTerm::Not(inner) => first_read(inner),
        BoolTerm::And(parts) | BoolTerm::Or(parts) | BoolTerm::Xor(parts) => {
            first_read(parts.first()?)
        }
        BoolTerm::Bytes(term, _) => read_by(term),
        BoolTerm::Int(IntTerm::Field(field), _) => Some(*field),
        BoolTerm::Any(source, _) | BoolTerm::All(source, _) => list_read(source),
        BoolTerm::Ip(IpTerm::Field(field), _) => Some(*field),
        BoolTerm::Int(..) | BoolTerm::Ip(..) | BoolTerm::Kept(_) => None,
    }
}

fn read_by(term: &BytesTerm) -> Option<FieldId> {
    match term {
        BytesTerm::Field(field) | BytesTerm::Only { field, .. } => Some(*field),
        BytesTerm::Element(source, _) => list_read(source),
        BytesTerm::Changed(_, inner) => read_by(inner),
        _ => None,
    }
}

fn list_read(source: &StringSource) -> Option<FieldId> {
    match source {
        StringSource::Field { field, .. } => Some(*field),
        StringSource::Split { text, .. } => read_by(text),
        StringSource::Chain(_) => None,
    }
}

/// The prefilter of `test`. `item` is the source of the current item of `any`.
fn need(test: &BoolTerm, item: Option<&TestedString>) -> Prefilter {
    match test {
        BoolTerm::Const(false) => Prefilter::Any(Vec::new()),
        BoolTerm::And(parts) => Prefilter::All(parts.iter().map(|part| need(part, item)).collect()),
        BoolTerm::Or(parts) => Prefilter::Any(parts.iter().map(|part| need(part, item)).collect()),
        BoolTerm::Bytes(term, test) => match TestedString::of(term, item) {
            Some(spot) => spot.need(test),
            None => Prefilter::Anything,
        },
        BoolTerm::Int(IntTerm::Field(field), test) => int(*field, test),
        BoolTerm::Ip(IpTerm::Field(field), test) => ip(*field, test),
        // No condition for `all`, which holds for an empty list.
        BoolTerm::Any(source, each) => need(&each.test, TestedString::each(source, item).as_ref()),
        _ => Prefilter::Anything,
    }
}

fn int(field: FieldId, test: &IntTest) -> Prefilter {
    let within = |low, high| {
        Prefilter::at(
            ValueSource::Field(field),
            PrefilterCondition::Ints(low, high),
        )
    };
    match test {
        IntTest::Eq(value) => within(*value, *value),
        // Including one value too many at the boundary does no harm.
        IntTest::Order(OrderOp::Lt | OrderOp::Le, value) => within(i64::MIN, *value),
        IntTest::Order(OrderOp::Gt | OrderOp::Ge, value) => within(*value, i64::MAX),
        IntTest::In(set) => match set.ranges(FEW) {
            Some(ranges) => Prefilter::Any(ranges.into_iter().map(|(l, h)| within(l, h)).collect()),
            None => Prefilter::at(
                ValueSource::Field(field),
                PrefilterCondition::InInts(set.clone()),
            ),
        },
        IntTest::Ne(_) | IntTest::Bits(_) => Prefilter::Anything,
    }
}

fn ip(field: FieldId, test: &IpTest) -> Prefilter {
    let within = |low, high| {
        Prefilter::at(
            ValueSource::Field(field),
            PrefilterCondition::Ips(low, high),
        )
    };
    match test {
        IpTest::Eq(ip) => within(ip.to_canonical(), ip.to_canonical()),
        IpTest::In(set) => match set.ranges(FEW) {
            Some(ranges) => Prefilter::Any(ranges.into_iter().map(|(l, h)| within(l, h)).collect()),
            None => Prefilter::at(
                ValueSource::Field(field),
                PrefilterCondition::InIps(set.clone()),
            ),
        },
        IpTest::Ne(_) => Prefilter::Anything,
    }
}

// === impl Prefilter ===

impl Prefilter {
    fn at(source: ValueSource, hint: PrefilterCondition) -> Prefilter {
        Prefilter::Atom(PrefilterTest { source, hint })
    }
}

// === impl ValueSource ===

impl ValueSource {
    /// The field that is read.
    pub fn field(&self) -> FieldId {
        match self {
            ValueSource::Field(field)
            | ValueSource::Element { field, .. }
            | ValueSource::Each { field, .. } => *field,
        }
    }
}

// === impl TestedString ===

impl TestedString {
    fn of(term: &BytesTerm, item: Option<&TestedString>) -> Option<TestedString> {
        match term {
            BytesTerm::Field(field) => Some(TestedString::whole(ValueSource::Field(*field))),
            BytesTerm::Element(StringSource::Field { field, name }, index) => {
                Some(TestedString::whole(ValueSource::Element {
                    field: *field,
                    name: name.clone(),
                    index: *index,
                }))
            }
            BytesTerm::Only { field, name } => Some(TestedString::whole(ValueSource::Element {
                field: *field,
                name: Some(name.clone()),
                index: 0,
            })),
            BytesTerm::Element(source, _) => TestedString::each(source, item),
            BytesTerm::Item => item.cloned(),
            BytesTerm::Changed(change, inner) => {
                Some(TestedString::of(inner, item)?.changed(change))
            }
            BytesTerm::Literal(_)
            | BytesTerm::Text(_)
            | BytesTerm::Concat(_)
            | BytesTerm::Join(..) => None,
        }
    }

    /// Any value of a list.
    fn each(source: &StringSource, item: Option<&TestedString>) -> Option<TestedString> {
        match source {
            StringSource::Field { field, name } => Some(TestedString::whole(ValueSource::Each {
                field: *field,
                name: name.clone(),
            })),
            StringSource::Split { text, .. } => {
                Some(TestedString::of(text, item)?.cut(StringPart::Part))
            }
            StringSource::Chain(_) => None,
        }
    }

    fn whole(source: ValueSource) -> TestedString {
        TestedString {
            source,
            cut: StringPart::Whole,
            folded: false,
        }
    }

    fn changed(self, change: &TransformCall) -> TestedString {
        match change {
            TransformCall::Lower | TransformCall::Upper => TestedString {
                folded: true,
                ..self
            },
            TransformCall::Substring(0, _) => self.cut(StringPart::Head),
            TransformCall::Substring(..) => self.cut(StringPart::Part),
            _ => self.cut(StringPart::Lost),
        }
    }

    fn cut(self, cut: StringPart) -> TestedString {
        TestedString {
            cut: self.cut.max(cut),
            ..self
        }
    }

    fn need(&self, test: &BytesTest) -> Prefilter {
        match test {
            BytesTest::Eq(text) => self.exact(text),
            BytesTest::Starts(text) => self.prefix(text),
            BytesTest::Contains(text) | BytesTest::Ends(text) => self.contains(text),
            BytesTest::In(set) => self.one_of(set),
            BytesTest::Wildcard(pattern) => self.wildcard(pattern),
            BytesTest::Matches(regex) => Prefilter::All(
                regexes::literals(regex.as_str())
                    .iter()
                    .map(|any| Prefilter::Any(any.iter().map(|text| self.contains(text)).collect()))
                    .chain([self.present()])
                    .collect(),
            ),
            BytesTest::Ne(_) | BytesTest::Order(..) => self.present(),
        }
    }

    fn wildcard(&self, pattern: &WildcardPattern) -> Prefilter {
        if pattern.stars() == 0 {
            return self.exact(pattern.head());
        }
        Prefilter::All(vec![
            self.prefix(pattern.head()),
            self.contains(pattern.middle()),
            self.contains(pattern.tail()),
        ])
    }

    fn one_of(&self, set: &StringSet) -> Prefilter {
        match set.values(FEW) {
            Some(values) => {
                Prefilter::Any(values.into_iter().map(|text| self.exact(text)).collect())
            }
            None if self.cut == StringPart::Whole && !self.folded => Prefilter::at(
                self.source.clone(),
                PrefilterCondition::InStrings(set.clone()),
            ),
            None => self.present(),
        }
    }

    fn exact(&self, text: &[u8]) -> Prefilter {
        match self.cut {
            StringPart::Whole => {
                self.at(PrefilterCondition::Exact(text.to_ascii_lowercase().into()))
            }
            _ => self.prefix(text),
        }
    }

    fn prefix(&self, text: &[u8]) -> Prefilter {
        match self.cut {
            StringPart::Whole | StringPart::Head => {
                self.at(PrefilterCondition::Prefix(text.to_ascii_lowercase().into()))
            }
            _ => self.contains(text),
        }
    }

    fn contains(&self, text: &[u8]) -> Prefilter {
        match self.cut {
            StringPart::Lost => self.present(),
            _ if text.is_empty() => self.present(),
            _ => self.at(PrefilterCondition::Contains(
                text.to_ascii_lowercase().into(),
            )),
        }
    }

    fn present(&self) -> Prefilter {
        self.at(PrefilterCondition::Prefix(Box::default()))
    }

    fn at(&self, hint: PrefilterCondition) -> Prefilter {
        Prefilter::at(self.source.clone(), hint)
    }
}
