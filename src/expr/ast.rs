//! The tree the parser makes: what was written, where. Names are not looked up yet.

use std::net::IpAddr;

use super::lex::Span;
use super::literal::Atom;

/// A test, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub span: Span,
    pub kind: NodeKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind {
    Not(Box<Node>),
    /// Two or more under one connective, flat.
    Join(Logic, Vec<Node>),
    Compare {
        left: Operand,
        op: Op,
        op_span: Span,
        right: Right,
    },
    /// An operand alone: a boolean, or an argument of a function.
    Alone(Operand),
}

/// The connectives, tightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Xor,
    Or,
}

/// The comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
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

/// A field, a call or a literal, with what follows it in brackets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub span: Span,
    pub base: Base,
    pub base_span: Span,
    pub path: Vec<Index>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Base {
    Field(Box<str>),
    Call {
        name: Box<str>,
        name_span: Span,
        args: Vec<Node>,
    },
    Literal(Literal),
}

/// `["name"]`, `[0]` or `[*]`; the span has the brackets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Index {
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
pub(super) enum Right {
    Value(Literal),
    Set(Vec<Literal>),
    List { name: Box<str>, span: Span },
}

/// A literal and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    pub span: Span,
    pub kind: LiteralKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LiteralKind {
    /// Decoded; `body` is the text between the quotes.
    Text {
        bytes: Box<[u8]>,
        body: Span,
    },
    Bool(bool),
    Atom(Atom),
}

// === impl Node ===

impl Node {
    /// Visits every operand, arguments of calls included, in the order they stand there.
    pub(super) fn each_operand(&self, visit: &mut dyn FnMut(&Operand)) {
        match &self.kind {
            NodeKind::Not(inner) => inner.each_operand(visit),
            NodeKind::Join(_, nodes) => nodes.iter().for_each(|node| node.each_operand(visit)),
            NodeKind::Alone(operand) | NodeKind::Compare { left: operand, .. } => {
                visit(operand);
                if let Base::Call { args, .. } = &operand.base {
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
            LiteralKind::Atom(Atom::Int(int)) => Some(*int),
            _ => None,
        }
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        match self {
            LiteralKind::Atom(Atom::Ip(ip)) => Some(*ip),
            _ => None,
        }
    }

    /// One integer or a range of them.
    pub(super) fn ints(&self) -> Option<(i64, i64)> {
        match self {
            LiteralKind::Atom(atom) => atom.ints(),
            _ => None,
        }
    }

    /// One address, a block or a range of them.
    pub(super) fn ips(&self) -> Option<(IpAddr, IpAddr)> {
        match self {
            LiteralKind::Atom(atom) => atom.ips(),
            _ => None,
        }
    }
}

// === impl Logic ===

impl Logic {
    /// The preferred spelling.
    pub(super) fn word(self) -> &'static str {
        match self {
            Logic::And => "and",
            Logic::Xor => "xor",
            Logic::Or => "or",
        }
    }

    /// Whether a connective is spelt `word`.
    pub(super) fn spelt(word: &str) -> bool {
        [Logic::And, Logic::Xor, Logic::Or]
            .map(Logic::word)
            .contains(&word)
    }
}

// === impl Op ===

impl Op {
    /// Every spelling.
    pub(super) const SPELLINGS: [(&'static str, Op); 18] = [
        ("eq", Op::Eq),
        ("==", Op::Eq),
        ("ne", Op::Ne),
        ("!=", Op::Ne),
        ("lt", Op::Lt),
        ("<", Op::Lt),
        ("le", Op::Le),
        ("<=", Op::Le),
        ("gt", Op::Gt),
        (">", Op::Gt),
        ("ge", Op::Ge),
        (">=", Op::Ge),
        ("contains", Op::Contains),
        ("in", Op::In),
        ("matches", Op::Matches),
        ("~", Op::Matches),
        ("wildcard", Op::Wildcard),
        ("bitwise_and", Op::BitAnd),
    ];

    /// The operator spelt `word`; `strict wildcard` and `&` are read by the parser.
    pub(super) fn spelt(word: &str) -> Option<Op> {
        match word {
            "&" => Some(Op::BitAnd),
            _ => Self::SPELLINGS
                .iter()
                .find(|(text, _)| *text == word)
                .map(|&(_, op)| op),
        }
    }
}
