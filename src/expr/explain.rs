//! Explains an expression's value: each part with its own value and what it read.
//!
//! Every part is checked and compiled with the functions that compile rules, and all parts are
//! evaluated, even those that a rule would not reach. This module contains no comparisons of its own.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::ast::{ExprNode, IndexKind, LogicOp, NodeKind, Operand, OperandBase};
use super::compile::EvalContext;
use super::lex::Span;
use super::{
    ExprEnv, ExprError, FieldFacts, FieldId, FieldSpec, ScalarValue, ValueType, check, compile,
    parse,
};

/// A part of an expression, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPart {
    /// The kind of the part.
    pub kind: PartKind,
    /// The part as written; only the operator for a connective.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// The values that it read; empty for a connective.
    pub reads: Vec<ReadValue>,
    /// The operands of a connective; empty for all other parts.
    pub parts: Vec<ExplainedPart>,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// All of its parts must hold.
    And,
    /// An odd number of its parts must hold.
    Xor,
    /// At least one of its parts must hold.
    Or,
    /// Its part must not hold.
    Not,
    /// A comparison with a literal, a set or a list.
    Comparison,
    /// `any(…)`.
    Any,
    /// `all(…)`.
    All,
    /// Another function.
    Call,
    /// A boolean field.
    Field,
    /// `true` or `false`.
    Constant,
}

/// A value that a part read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadValue {
    /// The text of what was read, as written.
    pub label: String,
    /// The fields that it reads.
    pub fields: Vec<FieldId>,
    /// The map entries that it reads.
    pub entries: Vec<(FieldId, Box<str>)>,
    /// The values; empty if the value is missing.
    pub values: Vec<ScalarValue<'static>>,
}

/// Explains a test, or returns all errors in it.
pub fn explain(
    source: &str,
    env: &ExprEnv,
    facts: &dyn FieldFacts,
) -> Result<ExplainedPart, Vec<ExprError>> {
    let node = parse::predicate(source)?;
    let explainer = Explainer { source, env, facts };
    explainer.node(&node)
}

struct Explainer<'a> {
    source: &'a str,
    env: &'a ExprEnv<'a>,
    facts: &'a dyn FieldFacts,
}

// === impl PartKind ===

impl PartKind {
    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            PartKind::And => "and",
            PartKind::Xor => "xor",
            PartKind::Or => "or",
            PartKind::Not => "not",
            PartKind::Comparison => "comparison",
            PartKind::Any => "any",
            PartKind::All => "all",
            PartKind::Call => "call",
            PartKind::Field => "field",
            PartKind::Constant => "constant",
        }
    }
}

// === impl Explainer ===

impl Explainer<'_> {
    fn node(&self, node: &ExprNode) -> Result<ExplainedPart, Vec<ExprError>> {
        let (test, _) = check::test(self.source, node, self.env)?;
        let holds = compile::test(test)(&EvalContext::of(self.facts));
        let (kind, joined) = anatomy(node);
        let parts = joined.iter().map(|part| self.node(part));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let mut reads = Vec::new();
        let text = match parts.is_empty() {
            // Parentheses are not in the span of the node that they enclose.
            false => kind.name(),
            true => {
                self.leaf(node, &mut reads);
                self.text(&node.span)
            }
        };
        Ok(ExplainedPart {
            kind,
            text: text.to_owned(),
            holds,
            reads,
            parts,
        })
    }

    fn leaf(&self, node: &ExprNode, reads: &mut Vec<ReadValue>) {
        match &node.kind {
            NodeKind::Not(inner) => self.leaf(inner, reads),
            NodeKind::Join(_, parts) => parts.iter().for_each(|part| self.leaf(part, reads)),
            NodeKind::Alone(operand) => self.operand(operand, reads),
            NodeKind::Compare { left, .. } => {
                self.operand(left, reads);
                if matches!(left.base, OperandBase::Call { .. }) {
                    reads.extend(self.result(left));
                }
            }
        }
    }

    fn operand(&self, operand: &Operand, reads: &mut Vec<ReadValue>) {
        match &operand.base {
            OperandBase::Literal(_) => {}
            OperandBase::Call { args, .. } => args.iter().for_each(|arg| self.leaf(arg, reads)),
            OperandBase::Field(name) => {
                let label = self.text(&operand.span);
                let known = reads.iter().any(|read| read.label == label);
                let spec = self.env.scheme.field(name).filter(|_| !known);
                reads.extend(spec.and_then(|spec| self.field(&spec, operand)));
            }
        }
    }

    fn field(&self, spec: &FieldSpec, operand: &Operand) -> Option<ReadValue> {
        let mut path = operand.path.iter().map(|index| &index.kind);
        let is_list = matches!(spec.ty, ValueType::Map | ValueType::Array);
        if !is_list || path.clone().any(|index| matches!(index, IndexKind::At(_))) {
            return self.result(operand);
        }
        let name = match path.next() {
            Some(IndexKind::Name(name)) => Some(entry(spec, name)),
            _ => None,
        };
        let mut values = Vec::new();
        let bytes = name.as_deref().map(str::as_bytes);
        self.facts.each(spec.id, bytes, &mut |value| {
            values.push(ScalarValue::Bytes(Cow::Owned(value.to_vec())));
            ControlFlow::Continue(())
        });
        Some(ReadValue {
            label: self.text(&operand.span).to_owned(),
            fields: vec![spec.id],
            values,
            entries: name
                .map(|name| (spec.id, name.into()))
                .into_iter()
                .collect(),
        })
    }

    /// The value of an operand. `None` if it has many values or is used as a list.
    fn result(&self, operand: &Operand) -> Option<ReadValue> {
        let (term, reads) = check::value(self.source, operand, self.env).ok()?;
        let value = compile::value(term)(&EvalContext::of(self.facts));
        Some(ReadValue {
            label: self.text(&operand.span).to_owned(),
            fields: reads.fields,
            entries: reads.entries,
            values: value.map(owned).into_iter().collect(),
        })
    }

    fn text(&self, span: &Span) -> &str {
        self.source.get(span.clone()).unwrap_or("")
    }
}

fn anatomy(node: &ExprNode) -> (PartKind, &[ExprNode]) {
    match &node.kind {
        NodeKind::Not(inner) => (PartKind::Not, std::slice::from_ref(&**inner)),
        NodeKind::Join(LogicOp::And, parts) => (PartKind::And, parts),
        NodeKind::Join(LogicOp::Xor, parts) => (PartKind::Xor, parts),
        NodeKind::Join(LogicOp::Or, parts) => (PartKind::Or, parts),
        NodeKind::Compare { .. } => (PartKind::Comparison, &[]),
        NodeKind::Alone(operand) => match &operand.base {
            OperandBase::Field(_) => (PartKind::Field, &[]),
            OperandBase::Literal(_) => (PartKind::Constant, &[]),
            OperandBase::Call { name, .. } if &**name == "any" => (PartKind::Any, &[]),
            OperandBase::Call { name, .. } if &**name == "all" => (PartKind::All, &[]),
            OperandBase::Call { .. } => (PartKind::Call, &[]),
        },
    }
}

fn entry(spec: &FieldSpec, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if spec.names_ignore_case {
        name.to_ascii_lowercase()
    } else {
        name.into_owned()
    }
}

fn owned(value: ScalarValue<'_>) -> ScalarValue<'static> {
    match value {
        ScalarValue::Bytes(bytes) => ScalarValue::Bytes(Cow::Owned(bytes.into_owned())),
        ScalarValue::Int(int) => ScalarValue::Int(int),
        ScalarValue::Ip(ip) => ScalarValue::Ip(ip),
        ScalarValue::Bool(truth) => ScalarValue::Bool(truth),
    }
}
