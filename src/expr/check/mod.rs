//! Turns the parser's tree into the checked tree: resolves names, compares types, prepares
//! literals. Collects every error that it can reach; a part with an error is left out, never
//! guessed.

mod compare;
mod names;

use super::ast::{
    ExprNode, IndexKind, LiteralKind, LiteralNode, LogicOp, NodeKind, Operand, OperandBase,
};
use super::lex::Span;
use super::literal::UnquotedLiteral;
use super::regexes::RegexBudget;
use super::term::{BoolTerm, BytesTerm, CompiledTerm, EachTerm, IntTerm, StringSource};
use super::{ExprEnv, ExprError, FieldId, FieldSpec, ValueType};

/// The fields and map entries that an expression reads.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldReads {
    /// The fields, sorted and unique.
    pub fields: Vec<FieldId>,
    /// The named map entries, unique, in source order.
    pub entries: Vec<(FieldId, Box<str>)>,
    /// Whether a field is known only from the response.
    pub response: bool,
}

/// Checks a test.
pub(super) fn test(
    source: &str,
    node: &ExprNode,
    env: &ExprEnv,
) -> Result<(BoolTerm, FieldReads), Vec<ExprError>> {
    let mut checker = Checker::new(source, env, false);
    let test = checker.test(node);
    checker.finish(test)
}

/// Checks a value, such as a key part: a map entry without an index is its first value.
pub(super) fn value(
    source: &str,
    operand: &Operand,
    env: &ExprEnv,
) -> Result<(CompiledTerm, FieldReads), Vec<ExprError>> {
    let mut checker = Checker::new(source, env, true);
    let term = checker
        .operand(operand)
        .and_then(|shape| checker.single(shape, &operand.span));
    if term.is_some() && checker.reads.fields.is_empty() {
        checker.fail::<()>(
            &operand.span,
            "this reads no field, so it is the same for every request",
        );
    }
    checker.finish(term)
}

struct Checker<'a> {
    source: &'a str,
    env: &'a ExprEnv<'a>,
    /// Whether the expression is a value, as in a key.
    key: bool,
    /// Whether the position is inside `any` or `all`.
    many: bool,
    /// The tests inside `any` or `all` that do not read the list's value.
    kept: Vec<BoolTerm>,
    budget: RegexBudget,
    errors: Vec<ExprError>,
    reads: FieldReads,
}

/// The shape of a checked operand.
enum OperandShape {
    One(CompiledTerm),
    /// A whole list; the term computes each value from the item.
    List(StringSource, CompiledTerm),
    /// Each value of a list, after `[*]`.
    Each(StringSource, CompiledTerm),
    Map(FieldSpec),
    /// An entry of a map that is a string unless it is indexed.
    Entry(FieldId, Box<[u8]>),
}

// === impl OperandShape ===

impl OperandShape {
    /// A map's entry as a string.
    fn or_string(self) -> OperandShape {
        match self {
            OperandShape::Entry(field, name) => {
                OperandShape::One(CompiledTerm::Bytes(BytesTerm::Only { field, name }))
            }
            shape => shape,
        }
    }

    /// A map's entry as the list of its values.
    fn or_list(self) -> OperandShape {
        match self {
            OperandShape::Entry(field, name) => names::values(field, Some(name)),
            shape => shape,
        }
    }
}

// === impl Checker ===

impl<'a> Checker<'a> {
    fn new(source: &'a str, env: &'a ExprEnv<'a>, key: bool) -> Self {
        Checker {
            source,
            env,
            key,
            many: false,
            kept: Vec::new(),
            budget: RegexBudget::new(),
            errors: Vec::new(),
            reads: FieldReads::default(),
        }
    }

    fn finish<T>(mut self, checked: Option<T>) -> Result<(T, FieldReads), Vec<ExprError>> {
        self.reads.fields.sort_unstable();
        self.reads.fields.dedup();
        match checked {
            Some(checked) if self.errors.is_empty() => Ok((checked, self.reads)),
            _ => Err(self.errors),
        }
    }

    /// Checks a part that must be a boolean.
    fn test(&mut self, node: &ExprNode) -> Option<BoolTerm> {
        let shape = self.node(node)?;
        self.single_test(shape, node)
    }

    fn single_test(&mut self, shape: OperandShape, node: &ExprNode) -> Option<BoolTerm> {
        let text = self.text(&node.span);
        match shape.or_string() {
            OperandShape::One(CompiledTerm::Bool(test)) => Some(test),
            OperandShape::One(term) => {
                let message = format!("`{text}` is {}, not a test", term.ty().words());
                let help = match term {
                    CompiledTerm::Bytes(BytesTerm::Literal(_))
                    | CompiledTerm::Int(IntTerm::Literal(_)) => {
                        "write the field and the operator again before it, or use `in {…}`".into()
                    }
                    _ => format!("compare it, as in `{text} eq …`"),
                };
                self.fail_with(&node.span, message, help)
            }
            OperandShape::Each(_, CompiledTerm::Bool(_))
            | OperandShape::List(_, CompiledTerm::Bool(_)) => {
                let help = format!("write `any({text})` or `all({text})`");
                self.fail_with(&node.span, "this tests many values", help)
            }
            shape => self.not_single(shape, &node.span),
        }
    }

    fn node(&mut self, node: &ExprNode) -> Option<OperandShape> {
        match &node.kind {
            NodeKind::Not(inner) => {
                let (list, inner) = self.part(inner)?;
                Some(shape(list, BoolTerm::Not(Box::new(inner))))
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

    fn join(&mut self, logic: LogicOp, nodes: &[ExprNode], span: &Span) -> Option<OperandShape> {
        // Checks all parts before it stops at the first failure, so that all errors are found.
        let parts: Vec<_> = nodes.iter().map(|node| self.part(node)).collect();
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        let (lists, tests): (Vec<_>, Vec<BoolTerm>) = parts.into_iter().unzip();
        let mut lists = lists.into_iter().flatten();
        let first = lists.next();
        if let Some(first) = &first
            && lists.any(|list| !list.same(first))
        {
            let word = logic.word();
            let help = format!("write `any(…) {word} any(…)`, or `all`, one for each list");
            return self.fail_with(span, "this reads two lists at once", help);
        }
        let test = match logic {
            LogicOp::And => BoolTerm::And(tests),
            LogicOp::Xor => BoolTerm::Xor(tests),
            LogicOp::Or => BoolTerm::Or(tests),
        };
        Some(shape(first, test))
    }

    /// Checks a part of a larger test. Inside `any` and `all`, it may test each value of a list.
    fn part(&mut self, node: &ExprNode) -> Option<(Option<StringSource>, BoolTerm)> {
        if !self.many {
            return self.test(node).map(|test| (None, test));
        }
        match self.node(node)? {
            OperandShape::Each(list, CompiledTerm::Bool(test))
            | OperandShape::List(list, CompiledTerm::Bool(test)) => Some((Some(list), test)),
            shape => {
                let test = self.single_test(shape, node)?;
                Some((None, self.keep(test, &node.span)?))
            }
        }
    }

    /// Moves a test that does not depend on the list's value to `kept`.
    fn keep(&mut self, test: BoolTerm, span: &Span) -> Option<BoolTerm> {
        if let BoolTerm::Const(_) | BoolTerm::Kept(_) = test {
            return Some(test);
        }
        let at = self.kept.len();
        if at == EachTerm::MAX_KEPT {
            let message = format!("more than {at} tests besides those of the list");
            return self.fail_with(span, message, "move them out of `any(…)` or `all(…)`");
        }
        self.kept.push(test);
        Some(BoolTerm::Kept(at))
    }

    fn operand(&mut self, operand: &Operand) -> Option<OperandShape> {
        let mut shape = match &operand.base {
            OperandBase::Field(name) => self.field(name, &operand.base_span)?,
            OperandBase::Call {
                name,
                name_span,
                args,
            } => self.call(name, name_span, &operand.base_span, args)?,
            OperandBase::Literal(literal) => self.literal(literal)?,
        };
        let start = operand.span.start;
        let mut end = operand.base_span.end;
        for index in &operand.path {
            shape = self.index(shape, &index.kind, start..end, &index.span)?;
            end = index.span.end;
        }
        Some(shape)
    }

    fn literal(&mut self, literal: &LiteralNode) -> Option<OperandShape> {
        Some(match &literal.kind {
            LiteralKind::Text { bytes, .. } => {
                OperandShape::One(CompiledTerm::Bytes(BytesTerm::Literal(bytes.clone())))
            }
            LiteralKind::Bool(value) => bool(BoolTerm::Const(*value)),
            LiteralKind::Atom(UnquotedLiteral::Int(int)) => {
                OperandShape::One(CompiledTerm::Int(IntTerm::Literal(*int)))
            }
            LiteralKind::Atom(_) => {
                let message = format!(
                    "`{}` is allowed only on the right side",
                    self.text(&literal.span)
                );
                return self.fail_with(&literal.span, message, "write the field first");
            }
        })
    }

    fn index(
        &mut self,
        shape: OperandShape,
        index: &IndexKind,
        before: Span,
        span: &Span,
    ) -> Option<OperandShape> {
        let text = self.text(&before);
        match (shape.or_list(), index) {
            (OperandShape::Map(spec), IndexKind::Name(name)) => self.entry(&spec, name, span),
            (OperandShape::Map(spec), IndexKind::Every) => Some(names::values(spec.id, None)),
            (OperandShape::Map(_), IndexKind::At(_)) => {
                let help = format!("name an entry, as in `{text}[\"name\"][0]`");
                self.fail_with(span, format!("`{text}` is a map"), help)
            }
            (OperandShape::List(source, term), IndexKind::Every) => {
                Some(OperandShape::Each(source, term))
            }
            (OperandShape::List(source, term), IndexKind::At(at)) => Some(OperandShape::One(
                term.fill(&BytesTerm::Element(source, *at)),
            )),
            (OperandShape::List(..), IndexKind::Name(_)) => {
                let help = format!("write `{text}[0]` or `{text}[*]`");
                self.fail_with(span, format!("`{text}` is a list and has no names"), help)
            }
            (OperandShape::One(term), _) => {
                let whole = self.text(&(before.start..span.end));
                let refusal = self.env.scheme.refusal(whole);
                let none = || format!("`{text}` is {} and has no parts", term.ty().words());
                self.fail(span, refusal.unwrap_or_else(none))
            }
            (OperandShape::Each(..) | OperandShape::Entry(..), _) => {
                self.fail(span, format!("`{text}` has no parts"))
            }
        }
    }

    /// Checks that a part has a single value.
    fn single(&mut self, shape: OperandShape, span: &Span) -> Option<CompiledTerm> {
        match shape.or_string() {
            OperandShape::One(term) => Some(term),
            OperandShape::List(source, term) if self.is_first(&source) => {
                Some(term.fill(&BytesTerm::Element(source, 0)))
            }
            shape => self.not_single(shape, span),
        }
    }

    /// Whether a list is used as its first value: an entry of a map, in a key.
    fn is_first(&self, list: &StringSource) -> bool {
        self.key && matches!(list, StringSource::Field { name: Some(_), .. })
    }

    fn not_single<T>(&mut self, shape: OperandShape, span: &Span) -> Option<T> {
        let text = self.text(span);
        let (what, help) = match shape {
            OperandShape::Map(_) => (
                "is a map",
                format!("name an entry, as in `{text}[\"name\"][0]`"),
            ),
            OperandShape::List(..) if self.key => (
                "is a list",
                format!("write `{text}[0]` for the first value"),
            ),
            OperandShape::List(..) => (
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
        self.errors.push(ExprError {
            span,
            message,
            help,
        });
        None
    }
}

fn bool(test: BoolTerm) -> OperandShape {
    OperandShape::One(CompiledTerm::Bool(test))
}

/// The shape of a test of each value of a list, or of the request if there is no list.
fn shape(list: Option<StringSource>, test: BoolTerm) -> OperandShape {
    match list {
        Some(list) => OperandShape::Each(list, CompiledTerm::Bool(test)),
        None => bool(test),
    }
}
