//! What an expression says, as a tree of tests without types: for tools that judge a rule without
//! running it. It never evaluates anything and never looks a name up.

use std::net::IpAddr;
use std::ops::Range;

use super::ast::{
    Base, IndexKind, Literal, LiteralKind, Logic, Node, NodeKind, Op, Operand, Right,
};
use super::literal::Atom;
use super::{Error, parse};

/// A test, or several under a connective.
#[derive(Clone, Debug)]
pub enum Outline {
    /// All hold.
    And(Vec<Outline>),
    /// At least one holds.
    Or(Vec<Outline>),
    /// An odd number holds.
    Xor(Vec<Outline>),
    /// It does not hold.
    Not(Box<Outline>),
    /// `true` or `false`, as written.
    Const(bool),
    /// A test of one value, or of each value of a list.
    Leaf(Leaf),
}

/// One test.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Where it stands.
    pub span: Range<usize>,
    /// What is looked at.
    pub subject: Subject,
    /// How.
    pub relation: Relation,
    /// What it is compared with; empty for a list and for a test by itself.
    pub values: Vec<Given>,
}

/// What a test looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The functions around the field, the outermost first; `any` and `all` too.
    pub functions: Vec<Box<str>>,
    /// The first field in it; `None`: it reads none.
    pub field: Option<Box<str>>,
    /// `["name"]`.
    pub entry: Option<Box<[u8]>>,
    /// `[0]`; `None`: none, or each value.
    pub index: Option<i32>,
    /// All that the outermost function with several arguments is given.
    pub arguments: Vec<Argument>,
}

/// What a function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A written value.
    Value(GivenValue),
    /// Something that is looked at.
    Read(Subject),
    /// The test that stands there; like no other.
    Test(Range<usize>),
}

/// How a value is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
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
pub struct Given {
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
pub fn outline(source: &str) -> Result<Outline, Vec<Error>> {
    parse::predicate(source).map(|node| test(&node))
}

// === impl Outline ===

impl Outline {
    /// Every test in it, in order.
    pub fn leaves(&self) -> Vec<&Leaf> {
        match self {
            Outline::And(parts) | Outline::Or(parts) | Outline::Xor(parts) => {
                parts.iter().flat_map(Outline::leaves).collect()
            }
            Outline::Not(inner) => inner.leaves(),
            Outline::Leaf(leaf) => vec![leaf],
            Outline::Const(_) => Vec::new(),
        }
    }

    /// The parts that must all hold: those of an `and`, or the whole.
    pub fn conjuncts(&self) -> Vec<&Outline> {
        match self {
            Outline::And(parts) => parts.iter().flat_map(Outline::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Whether both say the same; places do not matter.
    pub fn says_as(&self, other: &Outline) -> bool {
        use Outline::{And, Const, Leaf, Not, Or, Xor};
        match (self, other) {
            (And(a), And(b)) | (Or(a), Or(b)) | (Xor(a), Xor(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.says_as(b))
            }
            (Not(a), Not(b)) => a.says_as(b),
            (Const(a), Const(b)) => a == b,
            (Leaf(a), Leaf(b)) => a.says_as(b),
            _ => false,
        }
    }
}

// === impl Leaf ===

impl Leaf {
    fn says_as(&self, other: &Leaf) -> bool {
        self.subject == other.subject
            && self.relation == other.relation
            && self.values.len() == other.values.len()
            && (self.values.iter().zip(&other.values)).all(|(a, b)| a.value == b.value)
    }
}

// === impl Subject ===

impl Subject {
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

    fn within(mut self, function: &str) -> Subject {
        self.functions.insert(0, function.into());
        self
    }
}

fn test(node: &Node) -> Outline {
    match &node.kind {
        NodeKind::Not(inner) => Outline::Not(Box::new(test(inner))),
        NodeKind::Join(logic, nodes) => {
            let parts = nodes.iter().map(test).collect();
            match logic {
                Logic::And => Outline::And(parts),
                Logic::Xor => Outline::Xor(parts),
                Logic::Or => Outline::Or(parts),
            }
        }
        NodeKind::Compare {
            left, op, right, ..
        } => Outline::Leaf(Leaf {
            span: node.span.clone(),
            subject: subject(left),
            relation: relation(*op, right),
            values: values(right),
        }),
        NodeKind::Alone(operand) => alone(operand, node),
    }
}

/// A boolean: a literal, a call that compares, or a field.
fn alone(operand: &Operand, node: &Node) -> Outline {
    let leaf = |subject, relation, values| {
        Outline::Leaf(Leaf {
            span: node.span.clone(),
            subject,
            relation,
            values,
        })
    };
    match &operand.base {
        Base::Literal(Literal {
            kind: LiteralKind::Bool(value),
            ..
        }) => Outline::Const(*value),
        Base::Call { name, args, .. } => match (&**name, args.as_slice()) {
            ("any" | "all", [inner]) => walked(name, test(inner)),
            ("starts_with", [text, with]) => leaf(
                of_node(text),
                Relation::StartsWith,
                Vec::from_iter(written(with)),
            ),
            ("ends_with", [text, with]) => leaf(
                of_node(text),
                Relation::EndsWith,
                Vec::from_iter(written(with)),
            ),
            _ => leaf(subject(operand), Relation::Holds, Vec::new()),
        },
        _ => leaf(subject(operand), Relation::Holds, Vec::new()),
    }
}

/// What `any` or `all` says of a test: the same test, of each value.
fn walked(name: &str, inner: Outline) -> Outline {
    match inner {
        Outline::Leaf(mut leaf) => {
            leaf.subject = leaf.subject.within(name);
            Outline::Leaf(leaf)
        }
        // Several tests of one value are not the same tests of several values.
        other => {
            let leaves = other.leaves().into_iter();
            let start = leaves.clone().map(|leaf| leaf.span.start).min();
            let end = leaves.clone().map(|leaf| leaf.span.end).max();
            let span = start.unwrap_or(0)..end.unwrap_or(0);
            let subject = leaves.map(|leaf| leaf.subject.clone()).next();
            let mut subject = subject.unwrap_or_default().within(name);
            subject.arguments = vec![Argument::Test(span.clone())];
            Outline::Leaf(Leaf {
                span,
                subject,
                relation: Relation::Holds,
                values: Vec::new(),
            })
        }
    }
}

fn subject(operand: &Operand) -> Subject {
    let mut subject = match &operand.base {
        Base::Field(name) => Subject {
            field: Some(name.clone()),
            ..Subject::default()
        },
        Base::Call { name, args, .. } => called(name, args),
        Base::Literal(_) => Subject::default(),
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
fn called(name: &str, args: &[Node]) -> Subject {
    if let [only] = args {
        return of_node(only).within(name);
    }
    let arguments: Vec<Argument> = args.iter().map(argument).collect();
    let first = arguments.iter().find_map(|argument| match argument {
        Argument::Read(subject) if subject.field.is_some() => Some(Subject {
            functions: subject.functions.clone(),
            field: subject.field.clone(),
            entry: subject.entry.clone(),
            index: subject.index,
            arguments: Vec::new(),
        }),
        _ => None,
    });
    Subject {
        arguments,
        ..first.unwrap_or_default().within(name)
    }
}

fn argument(node: &Node) -> Argument {
    match (written(node), &node.kind) {
        (Some(given), _) => Argument::Value(given.value),
        (None, NodeKind::Alone(operand)) => Argument::Read(subject(operand)),
        (None, _) => Argument::Test(node.span.clone()),
    }
}

fn of_node(node: &Node) -> Subject {
    match &node.kind {
        NodeKind::Alone(operand) | NodeKind::Compare { left: operand, .. } => subject(operand),
        NodeKind::Not(inner) => of_node(inner),
        NodeKind::Join(_, nodes) => nodes.first().map(of_node).unwrap_or_default(),
    }
}

fn relation(op: Op, right: &Right) -> Relation {
    match (op, right) {
        (_, Right::List { name, .. }) => Relation::InList(name.clone()),
        (Op::Eq, _) => Relation::Eq,
        (Op::Ne, _) => Relation::Ne,
        (Op::Lt, _) => Relation::Lt,
        (Op::Le, _) => Relation::Le,
        (Op::Gt, _) => Relation::Gt,
        (Op::Ge, _) => Relation::Ge,
        (Op::Contains, _) => Relation::Contains,
        (Op::In, _) => Relation::In,
        (Op::Matches, _) => Relation::Matches,
        (Op::Wildcard, _) => Relation::Wildcard,
        (Op::StrictWildcard, _) => Relation::StrictWildcard,
        (Op::BitAnd, _) => Relation::BitAnd,
    }
}

fn values(right: &Right) -> Vec<Given> {
    match right {
        Right::Value(literal) => vec![given(literal)],
        Right::Set(literals) => literals.iter().map(given).collect(),
        Right::List { .. } => Vec::new(),
    }
}

/// The literal, if the node is one and nothing else.
fn written(node: &Node) -> Option<Given> {
    match &node.kind {
        NodeKind::Alone(operand) => match &operand.base {
            Base::Literal(literal) => Some(given(literal)),
            _ => None,
        },
        _ => None,
    }
}

fn given(literal: &Literal) -> Given {
    let value = match &literal.kind {
        LiteralKind::Text { bytes, .. } => GivenValue::Text(bytes.clone()),
        LiteralKind::Bool(value) => GivenValue::Bool(*value),
        LiteralKind::Atom(Atom::Int(int)) => GivenValue::Ints(*int, *int),
        LiteralKind::Atom(Atom::IntRange(low, high)) => GivenValue::Ints(*low, *high),
        LiteralKind::Atom(Atom::Ip(ip)) => GivenValue::Ips(*ip, *ip),
        LiteralKind::Atom(Atom::IpRange(low, high)) => GivenValue::Ips(*low, *high),
        LiteralKind::Atom(Atom::Net(net)) => GivenValue::Ips(net.network(), net.broadcast()),
    };
    Given {
        span: literal.span.clone(),
        value,
    }
}
