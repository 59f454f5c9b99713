//! The checked tree: names are numbers, types match, literals are prepared. The compiler turns it
//! into closures without further checks.

use std::net::IpAddr;

use regex::bytes::Regex;

use super::json::JsonStep;
use super::set::{IntSet, IpSet, StringSet};
use super::transform::TransformCall;
use super::wildcard::WildcardPattern;
use super::{FieldId, FieldSpec, ValueType};

/// A term with a value.
#[derive(Clone, Debug)]
pub(super) enum CompiledTerm {
    Bytes(BytesTerm),
    Int(IntTerm),
    Ip(IpTerm),
    Bool(BoolTerm),
    /// A test of each value of a list: the argument of `any` and `all`.
    Many(StringSource, EachTerm),
    /// A whole list; the term computes each value from the item.
    List(StringSource, Box<CompiledTerm>),
    /// A whole map, as an argument.
    Map(FieldSpec),
    /// A regex, as an argument.
    Regex(Regex),
}

/// The source of a list of strings.
#[derive(Clone, Debug)]
pub(super) enum StringSource {
    /// The values of an array, of a map's entry or, without a name, of all entries of a map.
    Field {
        field: FieldId,
        name: Option<Box<[u8]>>,
    },
    /// The parts of a string; the last of `limit` parts contains the rest.
    Split {
        text: Box<BytesTerm>,
        separator: Box<[u8]>,
        limit: usize,
    },
    /// Several lists in order; the terms compute each value from the item.
    Chain(Vec<(StringSource, CompiledTerm)>),
}

/// A term with a string value.
#[derive(Clone, Debug)]
pub(super) enum BytesTerm {
    Field(FieldId),
    Element(StringSource, i32),
    /// The only value of a map's entry; missing if there are several.
    Only {
        field: FieldId,
        name: Box<[u8]>,
    },
    /// The current item of `any` or `all`.
    Item,
    Literal(Box<[u8]>),
    Changed(TransformCall, Box<BytesTerm>),
    Text(Box<CompiledTerm>),
    Concat(Vec<CompiledTerm>),
    /// The values of a list, each computed by the term, joined by a separator.
    Join(StringSource, Box<CompiledTerm>, Box<[u8]>),
}

/// A term with an integer value.
#[derive(Clone, Debug)]
pub(super) enum IntTerm {
    Field(FieldId),
    Literal(i64),
    Len(Box<BytesTerm>),
    /// The number of values of a list.
    Count(StringSource),
    /// An integer in a JSON text.
    Json(Box<BytesTerm>, Box<[JsonStep]>),
}

/// A term with an address value.
#[derive(Clone, Debug)]
pub(super) enum IpTerm {
    Field(FieldId),
    /// The network address of a field's address, with a prefix length per family.
    Network(FieldId, u8, u8),
}

/// A boolean term. A comparison with a missing value is false.
#[derive(Clone, Debug)]
pub(super) enum BoolTerm {
    Const(bool),
    Field(FieldId, bool),
    Not(Box<BoolTerm>),
    And(Vec<BoolTerm>),
    Xor(Vec<BoolTerm>),
    Or(Vec<BoolTerm>),
    Bytes(BytesTerm, BytesTest),
    Int(IntTerm, IntTest),
    Ip(IpTerm, IpTest),
    Any(StringSource, Box<EachTerm>),
    All(StringSource, Box<EachTerm>),
    /// The result of a kept test, by its number.
    Kept(usize),
}

/// A test of each value of a list.
#[derive(Clone, Debug)]
pub(super) struct EachTerm {
    /// The test that reads the item.
    pub test: BoolTerm,
    /// Tests that do not read the item and are evaluated once, before the first item; `test` and
    /// later kept tests read their results.
    pub kept: Vec<BoolTerm>,
}

/// The ordering operators.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderOp {
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug)]
pub(super) enum BytesTest {
    Eq(Box<[u8]>),
    Ne(Box<[u8]>),
    Order(OrderOp, Box<[u8]>),
    Contains(Box<[u8]>),
    Starts(Box<[u8]>),
    Ends(Box<[u8]>),
    In(StringSet),
    Matches(Regex),
    Wildcard(WildcardPattern),
}

#[derive(Clone, Debug)]
pub(super) enum IntTest {
    Eq(i64),
    Ne(i64),
    Order(OrderOp, i64),
    In(IntSet),
    /// Whether any of these bits is set.
    Bits(i64),
}

#[derive(Clone, Debug)]
pub(super) enum IpTest {
    Eq(IpAddr),
    Ne(IpAddr),
    In(IpSet),
}

// === impl CompiledTerm ===

impl CompiledTerm {
    /// The type, for error messages.
    pub(super) fn ty(&self) -> ValueType {
        match self {
            CompiledTerm::Bytes(_) => ValueType::Bytes,
            CompiledTerm::Int(_) => ValueType::Int,
            CompiledTerm::Ip(_) => ValueType::Ip,
            CompiledTerm::Bool(_) | CompiledTerm::Many(..) => ValueType::Bool,
            CompiledTerm::List(..) => ValueType::Array,
            CompiledTerm::Map(_) => ValueType::Map,
            CompiledTerm::Regex(_) => ValueType::Bytes,
        }
    }

    /// Replaces the item in the term by `leaf`.
    pub(super) fn fill(self, leaf: &BytesTerm) -> CompiledTerm {
        match self {
            CompiledTerm::Bytes(bytes) => CompiledTerm::Bytes(bytes.fill(leaf)),
            CompiledTerm::Int(IntTerm::Len(bytes)) => {
                CompiledTerm::Int(IntTerm::Len(Box::new(bytes.fill(leaf))))
            }
            CompiledTerm::Int(IntTerm::Json(bytes, path)) => {
                CompiledTerm::Int(IntTerm::Json(Box::new(bytes.fill(leaf)), path))
            }
            CompiledTerm::Bool(BoolTerm::Bytes(bytes, test)) => {
                CompiledTerm::Bool(BoolTerm::Bytes(bytes.fill(leaf), test))
            }
            other => other,
        }
    }
}

// === impl IpTerm ===

impl IpTerm {
    /// The network address with these prefix lengths.
    pub(super) fn network(self, v4: u8, v6: u8) -> IpTerm {
        match self {
            IpTerm::Field(field) => IpTerm::Network(field, v4, v6),
            IpTerm::Network(field, own_v4, own_v6) => {
                IpTerm::Network(field, own_v4.min(v4), own_v6.min(v6))
            }
        }
    }
}

// === impl EachTerm ===

impl EachTerm {
    /// The most kept tests.
    pub(super) const MAX_KEPT: usize = 64;

    /// A test without kept tests.
    pub(super) fn of(test: BoolTerm) -> Box<EachTerm> {
        let kept = Vec::new();
        Box::new(EachTerm { test, kept })
    }
}

// === impl StringSource ===

impl StringSource {
    /// Whether both sources have equal values. Split strings are compared by their written form,
    /// which is an approximation: equal ones may be reported as different.
    pub(super) fn same(&self, other: &StringSource) -> bool {
        match (self, other) {
            (
                StringSource::Field { field, name },
                StringSource::Field {
                    field: other,
                    name: other_name,
                },
            ) => field == other && name == other_name,
            _ => format!("{self:?}") == format!("{other:?}"),
        }
    }
}

// === impl BytesTerm ===

impl BytesTerm {
    fn fill(self, leaf: &BytesTerm) -> BytesTerm {
        match self {
            BytesTerm::Item => leaf.clone(),
            BytesTerm::Changed(change, inner) => {
                BytesTerm::Changed(change, Box::new(inner.fill(leaf)))
            }
            BytesTerm::Text(term) => BytesTerm::Text(Box::new(term.fill(leaf))),
            BytesTerm::Concat(terms) => {
                BytesTerm::Concat(terms.into_iter().map(|term| term.fill(leaf)).collect())
            }
            other => other,
        }
    }
}

// === impl OrderOp ===

impl OrderOp {
    /// Whether `left` and `right` are in this order.
    #[inline]
    pub(super) fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            OrderOp::Lt => left < right,
            OrderOp::Le => left <= right,
            OrderOp::Gt => left > right,
            OrderOp::Ge => left >= right,
        }
    }
}
