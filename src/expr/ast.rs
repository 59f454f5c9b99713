//! The tree the parser makes: what was written, where. Names are not looked up yet.

use super::token::{Atom, Span};

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
    /// Every spelling, the preferred one of an operator first.
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

    /// The preferred spelling.
    pub(super) fn word(self) -> &'static str {
        let spelt = Self::SPELLINGS.iter().find(|(_, op)| *op == self);
        spelt.map_or("strict wildcard", |(word, _)| *word)
    }

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
