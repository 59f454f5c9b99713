//! The checked tree: names are numbers, types fit, literals are prepared. The compiler turns it
//! into closures without asking anything again.

use std::net::IpAddr;

use regex::bytes::Regex;

use super::json::Step;
use super::set::{IntSet, IpSet, StringSet};
use super::transform::Transform;
use super::wildcard::Wildcard;
use super::{FieldId, FieldSpec, Type};

/// Something with a value.
#[derive(Clone, Debug)]
pub(super) enum Term {
    Bytes(Bytes),
    Int(Int),
    Ip(Ip),
    Bool(Test),
    /// A test of each value of a list: the argument of `any` and `all`.
    Many(Source, Each),
    /// A list as a whole: how each value comes from the item.
    List(Source, Box<Term>),
    /// A map as a whole: an argument.
    Map(FieldSpec),
    /// A regex: an argument.
    Regex(Regex),
}

/// Where a list of strings comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The values of an array, of a map's entry or, without a name, of all its entries.
    Field {
        field: FieldId,
        name: Option<Box<[u8]>>,
    },
    /// The parts of a string; the last of `limit` parts holds the rest.
    Split {
        text: Box<Bytes>,
        separator: Box<[u8]>,
        limit: usize,
    },
    /// Lists one after the other, with how each value comes from the item.
    Chain(Vec<(Source, Term)>),
}

/// Something with a string value.
#[derive(Clone, Debug)]
pub(super) enum Bytes {
    Field(FieldId),
    Element(Source, i32),
    /// The value that `any` or `all` is looking at.
    Item,
    Literal(Box<[u8]>),
    Changed(Transform, Box<Bytes>),
    Text(Box<Term>),
    Concat(Vec<Term>),
    /// What each value of a list gives, with a separator between.
    Join(Source, Box<Term>, Box<[u8]>),
}

/// Something with an integer value.
#[derive(Clone, Debug)]
pub(super) enum Int {
    Field(FieldId),
    Literal(i64),
    Len(Box<Bytes>),
    /// How many values a list has.
    Count(Source),
    /// An integer in a JSON text.
    Json(Box<Bytes>, Box<[Step]>),
}

/// Something with an address for a value.
#[derive(Clone, Debug)]
pub(super) enum Ip {
    Field(FieldId),
    /// The network address of a field's address, by the prefix of each family.
    Network(FieldId, u8, u8),
}

/// Something true or false. A missing value makes a comparison false.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Const(bool),
    Field(FieldId, bool),
    Not(Box<Test>),
    And(Vec<Test>),
    Xor(Vec<Test>),
    Or(Vec<Test>),
    Bytes(Bytes, BytesTest),
    Int(Int, IntTest),
    Ip(Ip, IpTest),
    Any(Source, Box<Each>),
    All(Source, Box<Each>),
    /// What came out of a kept test, by its number.
    Kept(usize),
}

/// A test of each value of a list.
#[derive(Clone, Debug)]
pub(super) struct Each {
    /// Looks at the item.
    pub test: Test,
    /// Tests that do not, and so are made once, before the first item; `test` and later ones read
    /// what came out of them.
    pub kept: Vec<Test>,
}

/// The orders.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug)]
pub(super) enum BytesTest {
    Eq(Box<[u8]>),
    Ne(Box<[u8]>),
    Order(Order, Box<[u8]>),
    Contains(Box<[u8]>),
    Starts(Box<[u8]>),
    Ends(Box<[u8]>),
    In(StringSet),
    Matches(Regex),
    Wildcard(Wildcard),
}

#[derive(Clone, Debug)]
pub(super) enum IntTest {
    Eq(i64),
    Ne(i64),
    Order(Order, i64),
    In(IntSet),
    /// Any of these bits is set.
    Bits(i64),
}

#[derive(Clone, Debug)]
pub(super) enum IpTest {
    Eq(IpAddr),
    Ne(IpAddr),
    In(IpSet),
}

// === impl Term ===

impl Term {
    /// The type, for messages.
    pub(super) fn ty(&self) -> Type {
        match self {
            Term::Bytes(_) => Type::Bytes,
            Term::Int(_) => Type::Int,
            Term::Ip(_) => Type::Ip,
            Term::Bool(_) | Term::Many(..) => Type::Bool,
            Term::List(..) => Type::Array,
            Term::Map(_) => Type::Map,
            Term::Regex(_) => Type::Bytes,
        }
    }

    /// The same term with `leaf` in the place of the item.
    pub(super) fn fill(self, leaf: &Bytes) -> Term {
        match self {
            Term::Bytes(bytes) => Term::Bytes(bytes.fill(leaf)),
            Term::Int(Int::Len(bytes)) => Term::Int(Int::Len(Box::new(bytes.fill(leaf)))),
            Term::Int(Int::Json(bytes, path)) => {
                Term::Int(Int::Json(Box::new(bytes.fill(leaf)), path))
            }
            Term::Bool(Test::Bytes(bytes, test)) => Term::Bool(Test::Bytes(bytes.fill(leaf), test)),
            other => other,
        }
    }
}

// === impl Ip ===

impl Ip {
    /// The network address that these prefixes leave.
    pub(super) fn network(self, v4: u8, v6: u8) -> Ip {
        match self {
            Ip::Field(field) => Ip::Network(field, v4, v6),
            Ip::Network(field, own_v4, own_v6) => {
                Ip::Network(field, own_v4.min(v4), own_v6.min(v6))
            }
        }
    }
}

// === impl Each ===

impl Each {
    /// As many tests as can be kept.
    pub(super) const MAX_KEPT: usize = 64;

    /// A test that needs no others.
    pub(super) fn of(test: Test) -> Box<Each> {
        let kept = Vec::new();
        Box::new(Each { test, kept })
    }
}

// === impl Source ===

impl Source {
    /// Whether both give the same values. Strings that are split are compared as they were
    /// written, near enough: at worst an equal one is not seen as such.
    pub(super) fn same(&self, other: &Source) -> bool {
        match (self, other) {
            (
                Source::Field { field, name },
                Source::Field {
                    field: other,
                    name: other_name,
                },
            ) => field == other && name == other_name,
            _ => format!("{self:?}") == format!("{other:?}"),
        }
    }
}

// === impl Bytes ===

impl Bytes {
    fn fill(self, leaf: &Bytes) -> Bytes {
        match self {
            Bytes::Item => leaf.clone(),
            Bytes::Changed(change, inner) => Bytes::Changed(change, Box::new(inner.fill(leaf))),
            Bytes::Text(term) => Bytes::Text(Box::new(term.fill(leaf))),
            Bytes::Concat(terms) => {
                Bytes::Concat(terms.into_iter().map(|term| term.fill(leaf)).collect())
            }
            other => other,
        }
    }
}

// === impl Order ===

impl Order {
    /// Whether `left` stands in this order to `right`.
    #[inline]
    pub(super) fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Order::Lt => left < right,
            Order::Le => left <= right,
            Order::Gt => left > right,
            Order::Ge => left >= right,
        }
    }
}
