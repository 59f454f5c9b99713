//! Compiled expressions and how to get them.

use std::fmt;
use std::ops::Range;

use super::ast::{Base, Operand};
use super::check::{self, Reads};
use super::compile::{self, Check, Context, Get};
use super::lists::Lists;
use super::need::{self, Need};
use super::term::{Bytes, Int, Ip, Source, Term, Test};
use super::{Error, Facts, FieldId, Scheme, Type, Value, order, parse};

/// As many mistakes of one expression as are told.
const MAX_ERRORS: usize = 20;

/// What an expression may name.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The fields.
    pub scheme: &'a dyn Scheme,
    /// The lists.
    pub lists: &'a Lists,
    /// Fields of the response may be read: in `count` and `cost`.
    pub allow_response: bool,
}

/// A compiled expression, with what it reads and how it was written.
pub struct Compiled<T> {
    run: T,
    reads: Reads,
    source: Box<str>,
}

/// A compiled test.
pub type Predicate = Compiled<TestParts>;

/// A compiled value, such as a part of a key.
pub type Scalar = Compiled<ValueParts>;

/// What a compiled test has beside what it reads.
pub struct TestParts {
    check: Check,
    need: Box<Need>,
    first_read: Option<FieldId>,
}

/// What a compiled value has beside what it reads.
pub struct ValueParts {
    get: Get,
    ty: Type,
    bare: Option<FieldId>,
    plain: Option<Plain>,
}

/// A value that is read and nothing else.
pub enum Plain {
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
pub fn predicate(source: &str, env: &Env) -> Result<Predicate, Vec<Error>> {
    let node = parse::predicate(source).map_err(first)?;
    let (test, reads) = check::test(source, &node, env).map_err(first)?;
    let need = Box::new(need::of(&test));
    let test = order::cheap_first(test, env.scheme);
    let run = TestParts {
        need,
        first_read: need::first_read(&test),
        check: compile::test(test),
    };
    Ok(Compiled::new(run, reads, source))
}

/// Compiles a value, or says everything that is wrong with it. `headers["x"]` without an index
/// is its first value.
pub fn scalar(source: &str, env: &Env) -> Result<Scalar, Vec<Error>> {
    let operand = parse::value(source).map_err(first)?;
    let (term, reads) = check::value(source, &operand, env).map_err(first)?;
    let run = ValueParts {
        ty: term.ty(),
        bare: bare(&term),
        plain: plain(&term),
        get: compile::value(term),
    };
    Ok(Compiled::new(run, reads, source))
}

/// A name as it is written, and where.
pub type Name = (Box<str>, Range<usize>);

/// The functions that a test or a value calls.
pub fn calls(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        Base::Call {
            name, name_span, ..
        } => Some((name.clone(), name_span.clone())),
        _ => None,
    })
}

/// The fields that a test or a value reads.
pub fn reads(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        Base::Field(name) => Some((name.clone(), operand.base_span.clone())),
        _ => None,
    })
}

// === impl Compiled ===

impl<T> Compiled<T> {
    fn new(run: T, reads: Reads, source: &str) -> Self {
        let source = source.into();
        Compiled { run, reads, source }
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

impl<T> fmt::Debug for Compiled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compiled").field(&self.source).finish()
    }
}

// === impl Predicate ===

impl Predicate {
    /// Whether the expression holds for `facts`.
    #[inline]
    pub fn test(&self, facts: &dyn Facts) -> bool {
        (self.run.check)(&Context::of(facts))
    }

    /// [`Predicate::test`], among other tests of the same facts.
    #[inline(always)]
    pub fn holds(&self, context: &Context<'_>) -> bool {
        (self.run.check)(context)
    }

    /// What must hold for the expression to hold.
    pub fn need(&self) -> &Need {
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
    pub fn eval<'a>(&self, facts: &'a dyn Facts) -> Option<Value<'a>> {
        self.get(&Context::of(facts))
    }

    /// [`Scalar::eval`], among other uses of the same facts.
    #[inline(always)]
    pub fn get<'a>(&self, context: &Context<'a>) -> Option<Value<'a>> {
        (self.run.get)(context)
    }

    /// Where the value is read, if that is all there is to it.
    #[inline]
    pub fn plain(&self) -> Option<&Plain> {
        self.run.plain.as_ref()
    }

    /// The type of its values.
    pub fn ty(&self) -> Type {
        self.run.ty
    }

    /// The field, when the expression is one and nothing else.
    pub fn bare_field(&self) -> Option<FieldId> {
        self.run.bare
    }
}

fn bare(term: &Term) -> Option<FieldId> {
    match term {
        Term::Bytes(Bytes::Field(field))
        | Term::Int(Int::Field(field))
        | Term::Ip(Ip::Field(field))
        | Term::Bool(Test::Field(field, _)) => Some(*field),
        _ => None,
    }
}

fn plain(term: &Term) -> Option<Plain> {
    match term {
        Term::Bytes(Bytes::Field(field)) => Some(Plain::Text(*field)),
        Term::Bytes(Bytes::Element(Source::Field { field, name }, index)) => Some(Plain::Entry {
            field: *field,
            name: name.clone(),
            index: *index,
        }),
        Term::Ip(Ip::Field(field)) => Some(Plain::Ip(*field)),
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
fn first(mut errors: Vec<Error>) -> Vec<Error> {
    let more = errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        errors.truncate(MAX_ERRORS);
        let span = errors.last().map_or(0..0, |error| error.span.clone());
        errors.push(Error {
            span,
            message: format!("{more} more mistakes in this expression"),
            help: None,
        });
    }
    errors
}
