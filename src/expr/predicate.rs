//! Compiled expressions and how to get them.

use std::fmt;

use super::check::{self, Reads};
use super::compile::{self, Check, Context, Get};
use super::lists::Lists;
use super::need::{self, Need};
use super::term::{Bytes, Int, Ip, Source, Term, Test};
use super::{Error, Facts, FieldId, Scheme, Type, Value, order, parse, print};

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

/// A compiled test.
pub struct Predicate {
    check: Check,
    need: Box<Need>,
    first_read: Option<FieldId>,
    reads: Reads,
    source: Box<str>,
}

/// A compiled value, such as a part of a key.
pub struct Scalar {
    get: Get,
    ty: Type,
    bare: Option<FieldId>,
    plain: Option<Plain>,
    reads: Reads,
    source: Box<str>,
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
    Ok(Predicate {
        need,
        first_read: need::first_read(&test),
        check: compile::test(test),
        reads,
        source: source.into(),
    })
}

/// Compiles a value, or says everything that is wrong with it. `headers["x"]` without an index
/// is its first value.
pub fn scalar(source: &str, env: &Env) -> Result<Scalar, Vec<Error>> {
    let operand = parse::value(source).map_err(first)?;
    let (term, reads) = check::value(source, &operand, env).map_err(first)?;
    let (ty, bare, plain) = (term.ty(), bare(&term), plain(&term));
    Ok(Scalar {
        ty,
        get: compile::value(term),
        bare,
        plain,
        reads,
        source: source.into(),
    })
}

/// The test in its plainest spelling: words for operators, single spaces, no parentheses that
/// change nothing. Only the grammar is checked; names may be unknown.
pub fn normalized(source: &str) -> Result<String, Vec<Error>> {
    parse::predicate(source)
        .map(|node| print::test(&node))
        .map_err(first)
}

// === impl Predicate ===

impl Predicate {
    /// Whether the expression holds for `facts`.
    #[inline]
    pub fn test(&self, facts: &dyn Facts) -> bool {
        (self.check)(&Context::of(facts))
    }

    /// [`Predicate::test`], among other tests of the same facts.
    #[inline(always)]
    pub fn holds(&self, context: &Context<'_>) -> bool {
        (self.check)(context)
    }

    /// What must hold for the expression to hold.
    pub fn need(&self) -> &Need {
        &self.need
    }

    /// The field that it reads whatever the other values are.
    pub fn first_read(&self) -> Option<FieldId> {
        self.first_read
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

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Predicate").field(&self.source).finish()
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
        (self.get)(context)
    }

    /// Where the value is read, if that is all there is to it.
    #[inline]
    pub fn plain(&self) -> Option<&Plain> {
        self.plain.as_ref()
    }

    /// The type of its values.
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// The field, when the expression is one and nothing else.
    pub fn bare_field(&self) -> Option<FieldId> {
        self.bare
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

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scalar").field(&self.source).finish()
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
