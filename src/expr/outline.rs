//! What an expression says, as a tree of tests without types: for tools that judge a rule without
//! running it. It never evaluates anything and never looks a name up.

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
    /// All hold.
    And(Vec<ExprOutline>),
    /// At least one holds.
    Or(Vec<ExprOutline>),
    /// An odd number holds.
    Xor(Vec<ExprOutline>),
    /// It does not hold.
    Not(Box<ExprOutline>),
    /// `true` or `false`, as written.
    Const(bool),
    /// A test of one value, or of each value of a list.
    Leaf(TestOutline),
}

/// One test.
#[derive(Clone, Debug)]
pub struct TestOutline {
    /// Where it stands.
    pub span: Range<usize>,
    /// What is looked at.
    pub subject: TestSubject,
    /// How.
    pub relation: TestRelation,
    /// What it is compared with; empty for a list and for a test by itself.
    pub values: Vec<WrittenValue>,
}

/// What a test looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestSubject {
    /// The functions around the field, the outermost first; `any` and `all` too.
    pub functions: Vec<Box<str>>,
    /// The first field in it; `None`: it reads none.
    pub field: Option<Box<str>>,
    /// `["name"]`.
    pub entry: Option<Box<[u8]>>,
    /// `[0]`; `None`: none, or each value.
    pub index: Option<i32>,
    /// All that the outermost function with several arguments is given.
    pub arguments: Vec<CallArgument>,
}

/// What a function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum CallArgument {
    /// A written value.
    Value(GivenValue),
    /// Something that is looked at.
    Read(TestSubject),
    /// The test that stands there; like no other.
    Test(Range<usize>),
}

/// How a value is compared.
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

/// A written value.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenValue {
    /// Where it stands.
    pub span: Range<usize>,
    /// What it is.
    pub value: GivenValue,
}

/// What a written value is.
#[derive(Clone, Debug, PartialEq)]
pub enum GivenValue {
    /// A string.
    Text(Box<[u8]>),
    /// An integer, or all from one to another.
    Ints(i64, i64),
    /// An address, or all from one to another.
    Ips(IpAddr, IpAddr),
    /// A boolean.
    Bool(bool),
}

/// The outline of a test; the error is what the parser says.
pub fn outline(source: &str) -> Result<ExprOutline, Vec<ExprError>> {
    parse::predicate(source).map(|node| test(&node))
}

// === impl ExprOutline ===

impl ExprOutline {
    /// Every test in it, in order.
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

    /// The parts that must all hold: those of an `and`, or the whole.
    pub fn conjuncts(&self) -> Vec<&ExprOutline> {
        match self {
            ExprOutline::And(parts) => parts.iter().flat_map(ExprOutline::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Whether both say the same; places do not matter.
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
    /// The field, when nothing is done to it.
    pub fn plain(&self) -> Option<&str> {
        let untouched = self.functions.is_empty() && self.entry.is_none() && self.index.is_none();
        self.field.as_deref().filter(|_| untouched)
    }

    /// The field, when nothing is done to each of its values.
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

/// A boolean: a literal, a call that compares, or a field.
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

/// What `any` or `all` says of a test: the same test, of each value.
fn walked(name: &str, inner: ExprOutline) -> ExprOutline {
    match inner {
        ExprOutline::Leaf(mut leaf) => {
            leaf.subject = leaf.subject.within(name);
            ExprOutline::Leaf(leaf)
        }
        // Several tests of one value are not the same tests of several values.
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

/// What is looked at through a function. Two calls look at the same thing only if all that they are
/// given is the same.
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

/// The literal, if the node is one and nothing else.
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
