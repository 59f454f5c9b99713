//! The parser's tree: what was written, with spans. Names are not resolved yet.

use std::net::IpAddr;

use super::lex::Span;
use super::literal::UnquotedLiteral;

/// A test, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExprNode {
    pub span: Span,
    pub kind: NodeKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind {
    Not(Box<ExprNode>),
    /// Two or more nodes under one connective, flattened.
    Join(LogicOp, Vec<ExprNode>),
    Compare {
        left: Operand,
        op: CompareOp,
        op_span: Span,
        right: CompareTarget,
    },
    /// An operand without a comparison: a boolean, or an argument of a function.
    Alone(Operand),
}

/// The connectives, tightest binding first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogicOp {
    And,
    Xor,
    Or,
}

/// The comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Contains,
    In,
    Matches,
    Wildcard,
    StrictWildcard,
    BitAnd,
}

/// A field, a call or a literal, with the indexes after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub span: Span,
    pub base: OperandBase,
    pub base_span: Span,
    pub path: Vec<ValueIndex>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum OperandBase {
    Field(Box<str>),
    Call {
        name: Box<str>,
        name_span: Span,
        args: Vec<ExprNode>,
    },
    Literal(LiteralNode),
}

/// `["name"]`, `[0]` or `[*]`; the span includes the brackets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueIndex {
    pub span: Span,
    pub kind: IndexKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum IndexKind {
    Name(Box<[u8]>),
    At(i32),
    Every,
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CompareTarget {
    Value(LiteralNode),
    Set(Vec<LiteralNode>),
    List { name: Box<str>, span: Span },
}

/// A literal and its span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LiteralNode {
    pub span: Span,
    pub kind: LiteralKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LiteralKind {
    /// A decoded string; `body` is the span between the quotes.
    Text {
        bytes: Box<[u8]>,
        body: Span,
    },
    Bool(bool),
    Atom(UnquotedLiteral),
}

// === impl ExprNode ===

impl ExprNode {
    /// Calls `visit` with every operand, including arguments of calls, in source order.
    pub(super) fn each_operand(&self, visit: &mut dyn FnMut(&Operand)) {
        match &self.kind {
            NodeKind::Not(inner) => inner.each_operand(visit),
            NodeKind::Join(_, nodes) => nodes.iter().for_each(|node| node.each_operand(visit)),
            NodeKind::Alone(operand) | NodeKind::Compare { left: operand, .. } => {
                visit(operand);
                if let OperandBase::Call { args, .. } = &operand.base {
                    args.iter().for_each(|arg| arg.each_operand(visit));
                }
            }
        }
    }
}

// === impl LiteralKind ===

impl LiteralKind {
    pub(super) fn text(&self) -> Option<Box<[u8]>> {
        match self {
            LiteralKind::Text { bytes, .. } => Some(bytes.clone()),
            _ => None,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            LiteralKind::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn int(&self) -> Option<i64> {
        match self {
            LiteralKind::Atom(UnquotedLiteral::Int(int)) => Some(*int),
            _ => None,
        }
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        match self {
            LiteralKind::Atom(UnquotedLiteral::Ip(ip)) => Some(*ip),
            _ => None,
        }
    }

    /// The inclusive range of an integer literal. `None` for other literals.
    pub(super) fn ints(&self) -> Option<(i64, i64)> {
        match self {
            LiteralKind::Atom(atom) => atom.ints(),
            _ => None,
        }
    }

    /// The inclusive range of an address literal. `None` for other literals.
    pub(super) fn ips(&self) -> Option<(IpAddr, IpAddr)> {
        match self {
            LiteralKind::Atom(atom) => atom.ips(),
            _ => None,
        }
    }
}

// === impl LogicOp ===

impl LogicOp {
    /// The preferred spelling.
    pub(super) fn word(self) -> &'static str {
        match self {
            LogicOp::And => "and",
            LogicOp::Xor => "xor",
            LogicOp::Or => "or",
        }
    }

    /// Whether `word` is a connective.
    pub(super) fn spelt(word: &str) -> bool {
        [LogicOp::And, LogicOp::Xor, LogicOp::Or]
            .map(LogicOp::word)
            .contains(&word)
    }
}

// === impl CompareOp ===

impl CompareOp {
    /// All spellings of the operators.
    pub(super) const SPELLINGS: [(&'static str, CompareOp); 18] = [
        ("eq", CompareOp::Eq),
        ("==", CompareOp::Eq),
        ("ne", CompareOp::Ne),
        ("!=", CompareOp::Ne),
        ("lt", CompareOp::Lt),
        ("<", CompareOp::Lt),
        ("le", CompareOp::Le),
        ("<=", CompareOp::Le),
        ("gt", CompareOp::Gt),
        (">", CompareOp::Gt),
        ("ge", CompareOp::Ge),
        (">=", CompareOp::Ge),
        ("contains", CompareOp::Contains),
        ("in", CompareOp::In),
        ("matches", CompareOp::Matches),
        ("~", CompareOp::Matches),
        ("wildcard", CompareOp::Wildcard),
        ("bitwise_and", CompareOp::BitAnd),
    ];

    /// The operator with the spelling `word`. The parser reads `strict wildcard` and `&` itself.
    pub(super) fn spelt(word: &str) -> Option<CompareOp> {
        match word {
            "&" => Some(CompareOp::BitAnd),
            _ => Self::SPELLINGS
                .iter()
                .find(|(text, _)| *text == word)
                .map(|&(_, op)| op),
        }
    }
}
