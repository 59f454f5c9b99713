//! The rule language: lex → parse → check → compile, with spans in every stage.
//!
//! Pure. A compiled expression borrows the facts that it reads and allocates nothing that the facts
//! do not. The fields are not known here: a [`FieldScheme`] defines them, and [`FieldFacts`]
//! provides the values of one request.

mod ast;
mod check;
mod compile;
mod error;
mod explain;
mod function;
pub(crate) mod json;
mod lex;
mod lists;
mod literal;
mod named;
mod order;
mod outline;
mod parse;
mod predicate;
mod prefilter;
mod regexes;
mod replace;
mod set;
mod term;
mod transform;
mod unknown;
mod wildcard;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::{ControlFlow, Range};

pub use compile::{EvalContext, FieldMemo, position};
pub use explain::{ExplainedPart, PartKind, ReadValue, explain};
pub use function::{FunctionSpec, functions};
pub use json::unescape as unescape_json;
pub use lists::{ListEntry, ListTypeError, NamedList, NamedLists};
pub use literal::canonical_network;
pub use named::{ExprForm, NamedUse, expr_form, named_uses};
pub use outline::{
    CallArgument, ExprOutline, GivenValue, TestOutline, TestRelation, TestSubject, WrittenValue,
    outline,
};
pub use predicate::{
    CompiledExpr, ExprEnv, PlainRead, Predicate, Scalar, TestParts, ValueParts, calls, predicate,
    reads, scalar,
};
pub use prefilter::{Prefilter, PrefilterCondition, PrefilterTest, ValueSource};
pub use set::{IntSet, IpSet, StringSet};
pub use transform::percent_decode;

/// The type of a field or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A string of bytes; header values need not be UTF-8.
    Bytes,
    /// An integer.
    Int,
    /// An address.
    Ip,
    /// True or false.
    Bool,
    /// Names to lists of strings: headers, cookies, query arguments.
    Map,
    /// A list of strings: header names, all values.
    Array,
}

impl ValueType {
    /// The type as text, with its article.
    pub const fn words(self) -> &'static str {
        match self {
            ValueType::Bytes => "a string",
            ValueType::Int => "an integer",
            ValueType::Ip => "an address",
            ValueType::Bool => "a boolean",
            ValueType::Map => "a map",
            ValueType::Array => "a list",
        }
    }
}

/// The phase from which a field can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Once the request head is known.
    Request,
    /// Once the request body was inspected: in `count`, `mitigate`, `cost` and `key` of a rule.
    Body,
    /// Once the response is known: only in `count` and `cost`.
    Response,
}

/// A field's number in its scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u16);

/// The properties of a field that the language uses.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// The field's number.
    pub id: FieldId,
    /// The field's type.
    pub ty: ValueType,
    /// The phase from which it can be read.
    pub phase: Phase,
    /// Whether entry names ignore case (`headers["X"]`).
    pub names_ignore_case: bool,
    /// Whether an entry without an index is a string (`form["x"]`), which is missing if the name occurs several
    /// times. Otherwise it is a list.
    pub entries_are_strings: bool,
}

/// The fields that expressions may name.
pub trait FieldScheme {
    /// The field with this name or alias. `None` if there is none.
    fn field(&self, name: &str) -> Option<FieldSpec>;
    /// All names, for suggestions.
    fn names(&self) -> Vec<&'static str>;
    /// Why a known name cannot be used here, with the nearest alternative: fields that only
    /// Cloudflare can provide, fields that do not work yet. `None` for all other names.
    fn refusal(&self, name: &str) -> Option<String>;
    /// The cost of reading a field, as a rough number of instructions above that of a plain field.
    /// Tests of cheap fields run first.
    fn read_cost(&self, field: FieldId) -> usize;
    /// Whether a field has its value as soon as the request head is known. All other fields are unknown while the
    /// gateway decides whether to read the body.
    fn is_known_from_head(&self, field: FieldId) -> bool;
}

/// The facts of one request, by field number. Reading a field as the wrong type returns `None`.
pub trait FieldFacts {
    /// A string field.
    fn bytes(&self, field: FieldId) -> Option<Cow<'_, [u8]>>;
    /// An integer field.
    fn int(&self, field: FieldId) -> Option<i64>;
    /// An address field.
    fn ip(&self, field: FieldId) -> Option<IpAddr>;
    /// A boolean field.
    fn bool(&self, field: FieldId) -> Option<bool>;
    /// The `index`th value of a map's `name` or, without a name, of an array or of all values of a
    /// map; a negative index counts from the end.
    fn element(&self, field: FieldId, name: Option<&[u8]>, index: i32) -> Option<Cow<'_, [u8]>>;
    /// Calls `visit` with the values of a map's `name` or, without a name, with all values, until it breaks.
    fn each(
        &self,
        field: FieldId,
        name: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    );
}

/// The value of a scalar expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScalarValue<'a> {
    /// A string.
    Bytes(Cow<'a, [u8]>),
    /// An integer.
    Int(i64),
    /// An address.
    Ip(IpAddr),
    /// A boolean.
    Bool(bool),
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte offsets into the expression.
    pub span: Range<usize>,
    /// A description without a full stop.
    pub message: String,
    /// A suggestion. `None` if there is none.
    pub help: Option<String>,
}
