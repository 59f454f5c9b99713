//! The outline of an expression: a tree of tests without types, for tools that check a rule without
//! running it. It never evaluates anything and never resolves names.

use std::net::IpAddr;
use std::ops::Range;

use super::ast::{
    CompareOp, CompareTarget, ExprNode, IndexKind, LiteralKind, LiteralNode, LogicOp, NodeKind,
    Operand, OperandBase,
};
use super::literal::UnquotedLiteral;
use super::{ExprError, parse};

/// A test, or several under a connective.
#[derive(Clone, Debug)]
pub enum ExprOutline {
    /// All parts must hold.
    And(Vec<ExprOutline>),
    /// At least one part must hold.
    Or(Vec<ExprOutline>),
    /// An odd number of parts must hold.
    Xor(Vec<ExprOutline>),
    /// The part must not hold.
    Not(Box<ExprOutline>),
    /// `true` or `false`, as written.
    Const(bool),
    /// A test of one value, or of each value of a list.
    Leaf(TestOutline),
}

/// One test.
#[derive(Clone, Debug)]
pub struct TestOutline {
    /// The position in the source.
    pub span: Range<usize>,
    /// The value that is tested.
    pub subject: TestSubject,
    /// The comparison.
    pub relation: TestRelation,
    /// The values that it is compared with; empty for a list and for a boolean.
    pub values: Vec<WrittenValue>,
}

/// The value that a test reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestSubject {
    /// The functions around the field, including `any` and `all`, outermost first.
    pub functions: Vec<Box<str>>,
    /// The first field in it. `None` if it reads none.
    pub field: Option<Box<str>>,
    /// The name in `["name"]`.
    pub entry: Option<Box<[u8]>>,
    /// The index in `[0]`. `None` if there is none, or for each value.
    pub index: Option<i32>,
    /// The arguments of the outermost function with several arguments.
    pub arguments: Vec<CallArgument>,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum CallArgument {
    /// A literal.
    Value(GivenValue),
    /// A value that the call reads.
    Read(TestSubject),
    /// A test at this position in the source; equal only to itself.
    Test(Range<usize>),
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestRelation {
    /// A boolean by itself.
    Holds,
    /// `eq`.
    Eq,
    /// `ne`.
    Ne,
    /// `lt`.
    Lt,
    /// `le`.
    Le,
    /// `gt`.
    Gt,
    /// `ge`.
    Ge,
    /// `contains`.
    Contains,
    /// `in` a set.
    In,
    /// `in` a list of this name.
    InList(Box<str>),
    /// `matches`.
    Matches,
    /// `wildcard`.
    Wildcard,
    /// `strict wildcard`.
    StrictWildcard,
    /// `&`.
    BitAnd,
    /// `starts_with`.
    StartsWith,
    /// `ends_with`.
    EndsWith,
}

/// A literal and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenValue {
    /// The position in the source.
    pub span: Range<usize>,
    /// The literal's value.
    pub value: GivenValue,
}

/// The value of a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum GivenValue {
    /// A string.
    Text(Box<[u8]>),
    /// An inclusive range of integers; a single integer is a range of one.
    Ints(i64, i64),
    /// An inclusive range of addresses; a single address is a range of one.
    Ips(IpAddr, IpAddr),
    /// A boolean.
    Bool(bool),
}

/// The outline of a test, or the parser's errors.
pub fn outline(source: &str) -> Result<ExprOutline, Vec<ExprError>> {
    parse::predicate(source).map(|node| test(&node))
}

// === impl ExprOutline ===

impl ExprOutline {
    /// All tests in it, in source order.
    pub fn leaves(&self) -> Vec<&TestOutline> {
        match self {
            ExprOutline::And(parts) | ExprOutline::Or(parts) | ExprOutline::Xor(parts) => {
                parts.iter().flat_map(ExprOutline::leaves).collect()
            }
            ExprOutline::Not(inner) => inner.leaves(),
            ExprOutline::Leaf(leaf) => vec![leaf],
            ExprOutline::Const(_) => Vec::new(),
        }
    }

    /// The parts that must all hold: those of an `and`, or the whole expression.
    pub fn conjuncts(&self) -> Vec<&ExprOutline> {
        match self {
            ExprOutline::And(parts) => parts.iter().flat_map(ExprOutline::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Whether both outlines are equal except for positions.
    pub fn is_equivalent(&self, other: &ExprOutline) -> bool {
        use ExprOutline::{And, Const, Leaf, Not, Or, Xor};
        match (self, other) {
            (And(a), And(b)) | (Or(a), Or(b)) | (Xor(a), Xor(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_equivalent(b))
            }
            (Not(a), Not(b)) => a.is_equivalent(b),
            (Const(a), Const(b)) => a == b,
            (Leaf(a), Leaf(b)) => a.is_equivalent(b),
            _ => false,
        }
    }
}

// === impl TestOutline ===

impl TestOutline {
    fn is_equivalent(&self, other: &TestOutline) -> bool {
        self.subject == other.subject
            && self.relation == other.relation
            && self.values.len() == other.values.len()
            && (self.values.iter().zip(&other.values)).all(|(a, b)| a.value == b.value)
    }
}

// === impl TestSubject ===

impl TestSubject {
    /// The field, if no function is applied to it.
    pub fn plain(&self) -> Option<&str> {
        let untouched = self.functions.is_empty() && self.entry.is_none() && self.index.is_none();
        self.field.as_deref().filter(|_| untouched)
    }

    /// The field, if no function but `any` or `all` is applied to its values.
    pub fn plain_each(&self) -> Option<&str> {
        let walks = |name: &str| matches!(name, "any" | "all");
        let untouched = self.functions.iter().all(|name| walks(name)) && self.entry.is_none();
        self.field.as_deref().filter(|_| untouched)
    }

    fn within(mut self, function: &str) -> TestSubject {
        self.functions.insert(0, function.into());
        self
    }
}

fn test(node: &ExprNode) -> ExprOutline {
    match &node.kind {
        NodeKind::Not(inner) => ExprOutline::Not(Box::new(test(inner))),
        NodeKind::Join(logic, nodes) => {
            let parts = nodes.iter().map(test).collect();
            match logic {
                LogicOp::And => ExprOutline::And(parts),
                LogicOp::Xor => ExprOutline::Xor(parts),
                LogicOp::Or => ExprOutline::Or(parts),
            }
        }
        NodeKind::Compare {
            left, op, right, ..
        } => ExprOutline::Leaf(TestOutline {
            span: node.span.clone(),
            subject: subject(left),
            relation: relation(*op, right),
            values: values(right),
        }),
        NodeKind::Alone(operand) => alone(operand, node),
    }
}

/// The outline of a boolean: a literal, a call that compares, or a field.
fn alone(operand: &Operand, node: &ExprNode) -> ExprOutline {
    let leaf = |subject, relation, values| {
        ExprOutline::Leaf(TestOutline {
            span: node.span.clone(),
            subject,
            relation,
            values,
        })
    };
    match &operand.base {
        OperandBase::Literal(LiteralNode {
            kind: LiteralKind::Bool(value),
            ..
        }) => ExprOutline::Const(*value),
        OperandBase::Call { name, args, .. } => match (&**name, args.as_slice()) {
            ("any" | "all", [inner]) => walked(name, test(inner)),
            ("starts_with", [text, with]) => leaf(
                of_node(text),
                TestRelation::StartsWith,
                Vec::from_iter(written(with)),
            ),
            ("ends_with", [text, with]) => leaf(
                of_node(text),
                TestRelation::EndsWith,
                Vec::from_iter(written(with)),
            ),
            _ => leaf(subject(operand), TestRelation::Holds, Vec::new()),
        },
        _ => leaf(subject(operand), TestRelation::Holds, Vec::new()),
    }
}

/// The outline of `any` or `all`: the inner test, applied to each value.
fn walked(name: &str, inner: ExprOutline) -> ExprOutline {
    match inner {
        ExprOutline::Leaf(mut leaf) => {
            leaf.subject = leaf.subject.within(name);
            ExprOutline::Leaf(leaf)
        }
        // Several tests of one value differ from one test each of several values.
        other => {
            let leaves = other.leaves().into_iter();
            let start = leaves.clone().map(|leaf| leaf.span.start).min();
            let end = leaves.clone().map(|leaf| leaf.span.end).max();
            let span = start.unwrap_or(0)..end.unwrap_or(0);
            let subject = leaves.map(|leaf| leaf.subject.clone()).next();
            let mut subject = subject.unwrap_or_default().within(name);
            subject.arguments = vec![CallArgument::Test(span.clone())];
            ExprOutline::Leaf(TestOutline {
                span,
                subject,
                relation: TestRelation::Holds,
                values: Vec::new(),
            })
        }
    }
}

fn subject(operand: &Operand) -> TestSubject {
    let mut subject = match &operand.base {
        OperandBase::Field(name) => TestSubject {
            field: Some(name.clone()),
            ..TestSubject::default()
        },
        OperandBase::Call { name, args, .. } => called(name, args),
        OperandBase::Literal(_) => TestSubject::default(),
    };
    for index in &operand.path {
        match &index.kind {
            IndexKind::Name(name) => subject.entry = Some(name.clone()),
            IndexKind::At(at) => subject.index = Some(*at),
            IndexKind::Every => {}
        }
    }
    subject
}

/// The value that a function call reads. Two calls are equal only if all their arguments are.
fn called(name: &str, args: &[ExprNode]) -> TestSubject {
    if let [only] = args {
        return of_node(only).within(name);
    }
    let arguments: Vec<CallArgument> = args.iter().map(argument).collect();
    let first = arguments.iter().find_map(|argument| match argument {
        CallArgument::Read(subject) if subject.field.is_some() => Some(TestSubject {
            functions: subject.functions.clone(),
            field: subject.field.clone(),
            entry: subject.entry.clone(),
            index: subject.index,
            arguments: Vec::new(),
        }),
        _ => None,
    });
    TestSubject {
        arguments,
        ..first.unwrap_or_default().within(name)
    }
}

fn argument(node: &ExprNode) -> CallArgument {
    match (written(node), &node.kind) {
        (Some(given), _) => CallArgument::Value(given.value),
        (None, NodeKind::Alone(operand)) => CallArgument::Read(subject(operand)),
        (None, _) => CallArgument::Test(node.span.clone()),
    }
}

fn of_node(node: &ExprNode) -> TestSubject {
    match &node.kind {
        NodeKind::Alone(operand) | NodeKind::Compare { left: operand, .. } => subject(operand),
        NodeKind::Not(inner) => of_node(inner),
        NodeKind::Join(_, nodes) => nodes.first().map(of_node).unwrap_or_default(),
    }
}

fn relation(op: CompareOp, right: &CompareTarget) -> TestRelation {
    match (op, right) {
        (_, CompareTarget::List { name, .. }) => TestRelation::InList(name.clone()),
        (CompareOp::Eq, _) => TestRelation::Eq,
        (CompareOp::Ne, _) => TestRelation::Ne,
        (CompareOp::Lt, _) => TestRelation::Lt,
        (CompareOp::Le, _) => TestRelation::Le,
        (CompareOp::Gt, _) => TestRelation::Gt,
        (CompareOp::Ge, _) => TestRelation::Ge,
        (CompareOp::Contains, _) => TestRelation::Contains,
        (CompareOp::In, _) => TestRelation::In,
        (CompareOp::Matches, _) => TestRelation::Matches,
        (CompareOp::Wildcard, _) => TestRelation::Wildcard,
        (CompareOp::StrictWildcard, _) => TestRelation::StrictWildcard,
        (CompareOp::BitAnd, _) => TestRelation::BitAnd,
    }
}

fn values(right: &CompareTarget) -> Vec<WrittenValue> {
    match right {
        CompareTarget::Value(literal) => vec![given(literal)],
        CompareTarget::Set(literals) => literals.iter().map(given).collect(),
        CompareTarget::List { .. } => Vec::new(),
    }
}

/// The literal, if the node is only a literal.
fn written(node: &ExprNode) -> Option<WrittenValue> {
    match &node.kind {
        NodeKind::Alone(operand) => match &operand.base {
            OperandBase::Literal(literal) => Some(given(literal)),
            _ => None,
        },
        _ => None,
    }
}

fn given(literal: &LiteralNode) -> WrittenValue {
    let value = match &literal.kind {
        LiteralKind::Text { bytes, .. } => GivenValue::Text(bytes.clone()),
        LiteralKind::Bool(value) => GivenValue::Bool(*value),
        LiteralKind::Atom(UnquotedLiteral::Int(int)) => GivenValue::Ints(*int, *int),
        LiteralKind::Atom(UnquotedLiteral::IntRange(low, high)) => GivenValue::Ints(*low, *high),
        LiteralKind::Atom(UnquotedLiteral::Ip(ip)) => GivenValue::Ips(*ip, *ip),
        LiteralKind::Atom(UnquotedLiteral::IpRange(low, high)) => GivenValue::Ips(*low, *high),
        LiteralKind::Atom(UnquotedLiteral::Net(net)) => {
            GivenValue::Ips(net.network(), net.broadcast())
        }
    };
    WrittenValue {
        span: literal.span.clone(),
        value,
    }
}
