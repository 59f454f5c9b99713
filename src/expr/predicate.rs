//! Compiled expressions, and the functions that compile them.

use std::fmt;
use std::ops::Range;

use super::ast::{Operand, OperandBase};
use super::check::{self, FieldReads};
use super::compile::{self, Check, EvalContext, Get};
use super::lists::NamedLists;
use super::prefilter::{self, Prefilter};
use super::term::{BoolTerm, BytesTerm, CompiledTerm, IntTerm, IpTerm, StringSource};
use super::unknown::{self, Judgement};
use super::{ExprError, FieldFacts, FieldId, FieldScheme, ScalarValue, ValueType, order, parse};

/// The most errors reported for one expression.
const MAX_ERRORS: usize = 20;

/// The names that an expression can use.
#[derive(Clone, Copy)]
pub struct ExprEnv<'a> {
    /// The fields.
    pub scheme: &'a dyn FieldScheme,
    /// The lists.
    pub lists: &'a NamedLists,
    /// Whether fields of the response can be read: in `count` and `cost`.
    pub allow_response: bool,
}

/// A compiled expression, with its reads and its source.
pub struct CompiledExpr<T> {
    run: T,
    reads: FieldReads,
    source: Box<str>,
}

/// A compiled test.
pub type Predicate = CompiledExpr<TestParts>;

/// A compiled value, such as a key part.
pub type Scalar = CompiledExpr<ValueParts>;

/// The parts of a compiled expression that only a test has.
pub struct TestParts {
    check: Check,
    /// The test before all fields are known. `None` if the request head has all that it reads.
    early: Option<Judgement>,
    need: Box<Prefilter>,
    first_read: Option<FieldId>,
}

/// The parts of a compiled expression that only a value has.
pub struct ValueParts {
    get: Get,
    ty: ValueType,
    bare: Option<FieldId>,
    plain: Option<PlainRead>,
}

/// An expression that only reads one value.
pub enum PlainRead {
    /// A string field.
    Text(FieldId),
    /// One string of a map or list.
    Entry {
        /// The map or list.
        field: FieldId,
        /// The entry of the map. `None` for a list.
        name: Option<Box<[u8]>>,
        /// The index of the value; a negative index counts from the end.
        index: i32,
    },
    /// An address field.
    Ip(FieldId),
}

/// Compiles a test, or returns all errors in it.
pub fn predicate(source: &str, env: &ExprEnv) -> Result<Predicate, Vec<ExprError>> {
    let node = parse::predicate(source).map_err(first)?;
    let (test, reads) = check::test(source, &node, env).map_err(first)?;
    let need = Box::new(prefilter::of(&test));
    let test = order::cheap_first(test, env.scheme);
    let run = TestParts {
        need,
        first_read: prefilter::first_read(&test),
        early: unknown::judgement(&test, &|field| !env.scheme.is_known_from_head(field)),
        check: compile::test(test),
    };
    Ok(CompiledExpr::new(run, reads, source))
}

/// Compiles a value, or returns all errors in it. `headers["x"]` without an index is its first
/// value.
pub fn scalar(source: &str, env: &ExprEnv) -> Result<Scalar, Vec<ExprError>> {
    let operand = parse::value(source).map_err(first)?;
    let (term, reads) = check::value(source, &operand, env).map_err(first)?;
    let run = ValueParts {
        ty: term.ty(),
        bare: bare(&term),
        plain: plain(&term),
        get: compile::value(term),
    };
    Ok(CompiledExpr::new(run, reads, source))
}

/// A name as written, and its position.
pub type Name = (Box<str>, Range<usize>);

/// The functions that a test or a value calls.
pub fn calls(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        OperandBase::Call {
            name, name_span, ..
        } => Some((name.clone(), name_span.clone())),
        _ => None,
    })
}

/// The fields that a test or a value reads.
pub fn reads(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        OperandBase::Field(name) => Some((name.clone(), operand.base_span.clone())),
        _ => None,
    })
}

// === impl CompiledExpr ===

impl<T> CompiledExpr<T> {
    fn new(run: T, reads: FieldReads, source: &str) -> Self {
        let source = source.into();
        CompiledExpr { run, reads, source }
    }

    /// The fields that it reads, sorted and unique.
    pub fn reads(&self) -> &[FieldId] {
        &self.reads.fields
    }

    /// The named map entries that it reads, as in `headers["x"]`; lower-case if names ignore case.
    pub fn reads_entries(&self) -> &[(FieldId, Box<str>)] {
        &self.reads.entries
    }

    /// Whether it reads a field of the response.
    pub fn reads_response(&self) -> bool {
        self.reads.response
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl<T> fmt::Debug for CompiledExpr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compiled").field(&self.source).finish()
    }
}

// === impl Predicate ===

impl Predicate {
    /// Whether the expression holds for `facts`.
    #[inline]
    pub fn test(&self, facts: &dyn FieldFacts) -> bool {
        (self.run.check)(&EvalContext::of(facts))
    }

    /// [`Predicate::test`] with a context that other tests of the request share.
    #[inline(always)]
    pub fn holds(&self, context: &EvalContext<'_>) -> bool {
        (self.run.check)(context)
    }

    /// Whether the expression may still hold, judged from the request head alone: `false` only if no body and no
    /// response can make it hold.
    pub fn can_hold(&self, context: &EvalContext<'_>) -> bool {
        match &self.run.early {
            Some(judge) => judge(context) != Some(false),
            None => self.holds(context),
        }
    }

    /// The prefilter: a condition that always holds if the expression holds.
    pub fn need(&self) -> &Prefilter {
        &self.run.need
    }

    /// The field that it always reads first. `None` if it is not known.
    pub fn first_read(&self) -> Option<FieldId> {
        self.run.first_read
    }
}

// === impl Scalar ===

impl Scalar {
    /// The value for `facts`. `None` if a required value is missing.
    #[inline]
    pub fn eval<'a>(&self, facts: &'a dyn FieldFacts) -> Option<ScalarValue<'a>> {
        self.get(&EvalContext::of(facts))
    }

    /// [`Scalar::eval`] with a context that other expressions of the request share.
    #[inline(always)]
    pub fn get<'a>(&self, context: &EvalContext<'a>) -> Option<ScalarValue<'a>> {
        (self.run.get)(context)
    }

    /// The value's source, if the expression only reads it.
    #[inline]
    pub fn plain(&self) -> Option<&PlainRead> {
        self.run.plain.as_ref()
    }

    /// The type of the value.
    pub fn ty(&self) -> ValueType {
        self.run.ty
    }

    /// The field, if the expression is only a field.
    pub fn bare_field(&self) -> Option<FieldId> {
        self.run.bare
    }
}

fn bare(term: &CompiledTerm) -> Option<FieldId> {
    match term {
        CompiledTerm::Bytes(BytesTerm::Field(field))
        | CompiledTerm::Int(IntTerm::Field(field))
        | CompiledTerm::Ip(IpTerm::Field(field))
        | CompiledTerm::Bool(BoolTerm::Field(field, _)) => Some(*field),
        _ => None,
    }
}

fn plain(term: &CompiledTerm) -> Option<PlainRead> {
    match term {
        CompiledTerm::Bytes(BytesTerm::Field(field)) => Some(PlainRead::Text(*field)),
        CompiledTerm::Bytes(BytesTerm::Element(StringSource::Field { field, name }, index)) => {
            Some(PlainRead::Entry {
                field: *field,
                name: name.clone(),
                index: *index,
            })
        }
        CompiledTerm::Ip(IpTerm::Field(field)) => Some(PlainRead::Ip(*field)),
        _ => None,
    }
}

fn names(source: &str, name: impl Fn(&Operand) -> Option<Name>) -> Vec<Name> {
    let mut found = Vec::new();
    if let Ok(node) = parse::predicate(source) {
        node.each_operand(&mut |operand| found.extend(name(operand)));
    }
    found
}

/// The first errors, and the number of further ones.
fn first(mut errors: Vec<ExprError>) -> Vec<ExprError> {
    let more = errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        errors.truncate(MAX_ERRORS);
        let span = errors.last().map_or(0..0, |error| error.span.clone());
        errors.push(ExprError {
            span,
            message: format!("{more} more errors in this expression"),
            help: None,
        });
    }
    errors
}
