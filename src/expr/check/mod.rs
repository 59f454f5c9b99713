//! The tree of what was written to the tree of what is meant: names looked up, types compared,
//! literals prepared. Collects every error it can reach; a part that failed is left out, never
//! guessed.

mod compare;
mod names;

use super::ast::{Base, IndexKind, Literal, LiteralKind, Logic, Node, NodeKind, Operand};
use super::lex::Span;
use super::literal::Atom;
use super::regexes::RegexBudget;
use super::term::{Bytes, Each, Int, Source, Term, Test};
use super::{Env, Error, FieldId, FieldSpec, Type};

/// What an expression reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    /// Fields, sorted, each once.
    pub fields: Vec<FieldId>,
    /// Entries of maps that are named, in the order they stand there, each once.
    pub entries: Vec<(FieldId, Box<str>)>,
    /// Some field is known only after the answer.
    pub response: bool,
}

/// Checks a test.
pub(super) fn test(source: &str, node: &Node, env: &Env) -> Result<(Test, Reads), Vec<Error>> {
    let mut checker = Checker::new(source, env, false);
    let test = checker.test(node);
    checker.finish(test)
}

/// Checks a value, as in a key: an entry without an index is its first value.
pub(super) fn value(
    source: &str,
    operand: &Operand,
    env: &Env,
) -> Result<(Term, Reads), Vec<Error>> {
    let mut checker = Checker::new(source, env, true);
    let term = checker
        .operand(operand)
        .and_then(|shape| checker.single(shape, &operand.span));
    if term.is_some() && checker.reads.fields.is_empty() {
        checker.fail::<()>(
            &operand.span,
            "this reads no field, so it is the same for everyone",
        );
    }
    checker.finish(term)
}

struct Checker<'a> {
    source: &'a str,
    env: &'a Env<'a>,
    /// In a key.
    key: bool,
    /// In `any` or `all`.
    many: bool,
    /// The tests there that do not look at the list.
    kept: Vec<Test>,
    budget: RegexBudget,
    errors: Vec<Error>,
    reads: Reads,
}

/// What a part of an expression gives.
enum Shape {
    One(Term),
    /// A list as a whole: how each value comes from the item.
    List(Source, Term),
    /// Each value of a list, after `[*]`.
    Each(Source, Term),
    Map(FieldSpec),
}

// === impl Checker ===

impl<'a> Checker<'a> {
    fn new(source: &'a str, env: &'a Env<'a>, key: bool) -> Self {
        Checker {
            source,
            env,
            key,
            many: false,
            kept: Vec::new(),
            budget: RegexBudget::new(),
            errors: Vec::new(),
            reads: Reads::default(),
        }
    }

    fn finish<T>(mut self, checked: Option<T>) -> Result<(T, Reads), Vec<Error>> {
        self.reads.fields.sort_unstable();
        self.reads.fields.dedup();
        match checked {
            Some(checked) if self.errors.is_empty() => Ok((checked, self.reads)),
            _ => Err(self.errors),
        }
    }

    /// A part that must be true or false.
    fn test(&mut self, node: &Node) -> Option<Test> {
        let shape = self.node(node)?;
        self.single_test(shape, node)
    }

    fn single_test(&mut self, shape: Shape, node: &Node) -> Option<Test> {
        let text = self.text(&node.span);
        match shape {
            Shape::One(Term::Bool(test)) => Some(test),
            Shape::One(term) => {
                let message = format!("`{text}` is {}, not a test", term.ty().words());
                let help = match term {
                    Term::Bytes(Bytes::Literal(_)) | Term::Int(Int::Literal(_)) => {
                        "write the field and the operator again before it, or use `in {…}`".into()
                    }
                    _ => format!("compare it, as in `{text} eq …`"),
                };
                self.fail_with(&node.span, message, help)
            }
            Shape::Each(_, Term::Bool(_)) | Shape::List(_, Term::Bool(_)) => {
                let help = format!("write `any({text})` or `all({text})`");
                self.fail_with(&node.span, "this tests many values", help)
            }
            shape => self.not_single(shape, &node.span),
        }
    }

    fn node(&mut self, node: &Node) -> Option<Shape> {
        match &node.kind {
            NodeKind::Not(inner) => {
                let (list, inner) = self.part(inner)?;
                Some(shape(list, Test::Not(Box::new(inner))))
            }
            NodeKind::Join(logic, nodes) => self.join(*logic, nodes, &node.span),
            NodeKind::Compare {
                left,
                op,
                op_span,
                right,
            } => self.compare(left, *op, op_span, right),
            NodeKind::Alone(operand) => self.operand(operand),
        }
    }

    fn join(&mut self, logic: Logic, nodes: &[Node], span: &Span) -> Option<Shape> {
        // All parts are looked at before the first failure counts, so that all errors are found.
        let parts: Vec<_> = nodes.iter().map(|node| self.part(node)).collect();
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        let (lists, tests): (Vec<_>, Vec<Test>) = parts.into_iter().unzip();
        let mut lists = lists.into_iter().flatten();
        let first = lists.next();
        if let Some(first) = &first
            && lists.any(|list| !list.same(first))
        {
            let word = logic.word();
            let help = format!("write `any(…) {word} any(…)`, or `all`, one for each list");
            return self.fail_with(span, "this looks at two lists at once", help);
        }
        let test = match logic {
            Logic::And => Test::And(tests),
            Logic::Xor => Test::Xor(tests),
            Logic::Or => Test::Or(tests),
        };
        Some(shape(first, test))
    }

    /// A part of a larger test. In `any` and `all` it may test each value of a list.
    fn part(&mut self, node: &Node) -> Option<(Option<Source>, Test)> {
        if !self.many {
            return self.test(node).map(|test| (None, test));
        }
        match self.node(node)? {
            Shape::Each(list, Term::Bool(test)) | Shape::List(list, Term::Bool(test)) => {
                Some((Some(list), test))
            }
            shape => {
                let test = self.single_test(shape, node)?;
                Some((None, self.keep(test, &node.span)?))
            }
        }
    }

    /// Sets a test aside that is the same for every value of the list.
    fn keep(&mut self, test: Test, span: &Span) -> Option<Test> {
        if let Test::Const(_) | Test::Kept(_) = test {
            return Some(test);
        }
        let at = self.kept.len();
        if at == Each::MAX_KEPT {
            let message = format!("more than {at} tests beside those of the list");
            return self.fail_with(span, message, "move them out of `any(…)` or `all(…)`");
        }
        self.kept.push(test);
        Some(Test::Kept(at))
    }

    fn operand(&mut self, operand: &Operand) -> Option<Shape> {
        let mut shape = match &operand.base {
            Base::Field(name) => self.field(name, &operand.base_span)?,
            Base::Call {
                name,
                name_span,
                args,
            } => self.call(name, name_span, &operand.base_span, args)?,
            Base::Literal(literal) => self.literal(literal)?,
        };
        let start = operand.span.start;
        let mut end = operand.base_span.end;
        for index in &operand.path {
            shape = self.index(shape, &index.kind, start..end, &index.span)?;
            end = index.span.end;
        }
        Some(shape)
    }

    fn literal(&mut self, literal: &Literal) -> Option<Shape> {
        Some(match &literal.kind {
            LiteralKind::Text { bytes, .. } => {
                Shape::One(Term::Bytes(Bytes::Literal(bytes.clone())))
            }
            LiteralKind::Bool(value) => bool(Test::Const(*value)),
            LiteralKind::Atom(Atom::Int(int)) => Shape::One(Term::Int(Int::Literal(*int))),
            LiteralKind::Atom(_) => {
                let message = format!(
                    "`{}` stands only on the right side",
                    self.text(&literal.span)
                );
                return self.fail_with(&literal.span, message, "write the field first");
            }
        })
    }

    fn index(
        &mut self,
        shape: Shape,
        index: &IndexKind,
        before: Span,
        span: &Span,
    ) -> Option<Shape> {
        let text = self.text(&before);
        match (shape, index) {
            (Shape::Map(spec), IndexKind::Name(name)) => self.entry(&spec, name, span),
            (Shape::Map(spec), IndexKind::Every) => Some(names::values(&spec, None)),
            (Shape::Map(_), IndexKind::At(_)) => {
                let help = format!("name an entry, as in `{text}[\"name\"][0]`");
                self.fail_with(span, format!("`{text}` is a map"), help)
            }
            (Shape::List(source, term), IndexKind::Every) => Some(Shape::Each(source, term)),
            (Shape::List(source, term), IndexKind::At(at)) => {
                Some(Shape::One(term.fill(&Bytes::Element(source, *at))))
            }
            (Shape::List(..), IndexKind::Name(_)) => {
                let help = format!("write `{text}[0]` or `{text}[*]`");
                self.fail_with(span, format!("`{text}` is a list and has no names"), help)
            }
            (Shape::One(term), _) => self.fail(
                span,
                format!("`{text}` is {} and has no parts", term.ty().words()),
            ),
            (Shape::Each(..), _) => self.fail(span, format!("`{text}` has no parts")),
        }
    }

    /// A part that must have one value.
    fn single(&mut self, shape: Shape, span: &Span) -> Option<Term> {
        match shape {
            Shape::One(term) => Some(term),
            Shape::List(source, term) if self.is_first(&source) => {
                Some(term.fill(&Bytes::Element(source, 0)))
            }
            shape => self.not_single(shape, span),
        }
    }

    /// Whether a list stands for its first value: an entry of a map, in a key.
    fn is_first(&self, list: &Source) -> bool {
        self.key && matches!(list, Source::Field { name: Some(_), .. })
    }

    fn not_single<T>(&mut self, shape: Shape, span: &Span) -> Option<T> {
        let text = self.text(span);
        let (what, help) = match shape {
            Shape::Map(_) => (
                "is a map",
                format!("name an entry, as in `{text}[\"name\"][0]`"),
            ),
            Shape::List(..) if self.key => (
                "is a list",
                format!("write `{text}[0]` for the first value"),
            ),
            Shape::List(..) => (
                "is a list",
                format!("write `{text}[0]` for the first value, or `any({text}[*] …)`"),
            ),
            _ if self.key => ("has many values", "write `[0]` for the first one".into()),
            _ => (
                "has many values",
                "compare it inside `any(…)` or `all(…)`".into(),
            ),
        };
        self.fail_with(span, format!("`{text}` {what}"), help)
    }

    fn text(&self, span: &Span) -> &'a str {
        self.source.get(span.clone()).unwrap_or("")
    }

    fn fail<T>(&mut self, span: &Span, message: impl Into<String>) -> Option<T> {
        self.report(span, message.into(), None)
    }

    fn fail_with<T>(
        &mut self,
        span: &Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<T> {
        self.report(span, message.into(), Some(help.into()))
    }

    fn report<T>(&mut self, span: &Span, message: String, help: Option<String>) -> Option<T> {
        let span = span.clone();
        self.errors.push(Error {
            span,
            message,
            help,
        });
        None
    }
}

fn bool(test: Test) -> Shape {
    Shape::One(Term::Bool(test))
}

/// A test of each value of a list, or else of the request.
fn shape(list: Option<Source>, test: Test) -> Shape {
    match list {
        Some(list) => Shape::Each(list, Term::Bool(test)),
        None => bool(test),
    }
}
