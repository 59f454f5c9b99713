//! Compiled expressions and how to get them.

use std::fmt;
use std::ops::Range;

use super::ast::{Operand, OperandBase};
use super::check::{self, FieldReads};
use super::compile::{self, Check, EvalContext, Get};
use super::lists::NamedLists;
use super::prefilter::{self, Prefilter};
use super::term::{BoolTerm, BytesTerm, CompiledTerm, IntTerm, IpTerm, StringSource};
use super::{ExprError, FieldFacts, FieldId, FieldScheme, ScalarValue, ValueType, order, parse};

/// As many mistakes of one expression as are told.
const MAX_ERRORS: usize = 20;

/// What an expression may name.
#[derive(Clone, Copy)]
pub struct ExprEnv<'a> {
    /// The fields.
    pub scheme: &'a dyn FieldScheme,
    /// The lists.
    pub lists: &'a NamedLists,
    /// Fields of the response may be read: in `count` and `cost`.
    pub allow_response: bool,
}

/// A compiled expression, with what it reads and how it was written.
pub struct CompiledExpr<T> {
    run: T,
    reads: FieldReads,
    source: Box<str>,
}

/// A compiled test.
pub type Predicate = CompiledExpr<TestParts>;

/// A compiled value, such as a part of a key.
pub type Scalar = CompiledExpr<ValueParts>;

/// What a compiled test has beside what it reads.
pub struct TestParts {
    check: Check,
    need: Box<Prefilter>,
    first_read: Option<FieldId>,
}

/// What a compiled value has beside what it reads.
pub struct ValueParts {
    get: Get,
    ty: ValueType,
    bare: Option<FieldId>,
    plain: Option<PlainRead>,
}

/// A value that is read and nothing else.
pub enum PlainRead {
    /// A string.
    Text(FieldId),
    /// One string of a map or list.
    Entry {
        /// The map or list.
        field: FieldId,
        /// The entry of the map.
        name: Option<Box<[u8]>>,
        /// Which one.
        index: i32,
    },
    /// An address.
    Ip(FieldId),
}

/// Compiles a test, or says everything that is wrong with it.
pub fn predicate(source: &str, env: &ExprEnv) -> Result<Predicate, Vec<ExprError>> {
    let node = parse::predicate(source).map_err(first)?;
    let (test, reads) = check::test(source, &node, env).map_err(first)?;
    let need = Box::new(prefilter::of(&test));
    let test = order::cheap_first(test, env.scheme);
    let run = TestParts {
        need,
        first_read: prefilter::first_read(&test),
        check: compile::test(test),
    };
    Ok(CompiledExpr::new(run, reads, source))
}

/// Compiles a value, or says everything that is wrong with it. `headers["x"]` without an index
/// is its first value.
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

/// A name as it is written, and where.
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

    /// The fields it reads, sorted, each once.
    pub fn reads(&self) -> &[FieldId] {
        &self.reads.fields
    }

    /// The entries of maps that it names, as in `headers["x"]`; lower-case where names ignore
    /// case.
    pub fn reads_entries(&self) -> &[(FieldId, Box<str>)] {
        &self.reads.entries
    }

    /// Whether it reads a field of the response.
    pub fn reads_response(&self) -> bool {
        self.reads.response
    }

    /// The expression as it was written.
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

    /// [`Predicate::test`], among other tests of the same facts.
    #[inline(always)]
    pub fn holds(&self, context: &EvalContext<'_>) -> bool {
        (self.run.check)(context)
    }

    /// What must hold for the expression to hold.
    pub fn need(&self) -> &Prefilter {
        &self.run.need
    }

    /// The field that it reads whatever the other values are.
    pub fn first_read(&self) -> Option<FieldId> {
        self.run.first_read
    }
}

// === impl Scalar ===

impl Scalar {
    /// The value for `facts`; `None` where one that it needs is missing.
    #[inline]
    pub fn eval<'a>(&self, facts: &'a dyn FieldFacts) -> Option<ScalarValue<'a>> {
        self.get(&EvalContext::of(facts))
    }

    /// [`Scalar::eval`], among other uses of the same facts.
    #[inline(always)]
    pub fn get<'a>(&self, context: &EvalContext<'a>) -> Option<ScalarValue<'a>> {
        (self.run.get)(context)
    }

    /// Where the value is read, if that is all there is to it.
    #[inline]
    pub fn plain(&self) -> Option<&PlainRead> {
        self.run.plain.as_ref()
    }

    /// The type of its values.
    pub fn ty(&self) -> ValueType {
        self.run.ty
    }

    /// The field, when the expression is one and nothing else.
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

/// The first mistakes, and how many more there are.
fn first(mut errors: Vec<ExprError>) -> Vec<ExprError> {
    let more = errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        errors.truncate(MAX_ERRORS);
        let span = errors.last().map_or(0..0, |error| error.span.clone());
        errors.push(ExprError {
            span,
            message: format!("{more} more mistakes in this expression"),
            help: None,
        });
    }
    errors
}
