//! The language once more, the slow and obvious way: a walk over the tree as written, with a list
//! of values for every part. The compiled closures are compared with it.

use std::net::IpAddr;
use std::ops::ControlFlow;

use super::super::ast::{
    Base, IndexKind, Literal, LiteralKind, Logic, Node, NodeKind, Op, Operand, Right,
};
use super::super::token::Atom;
use super::super::{Facts, Scheme, Type};
use super::{Sample, Small, lists};

#[derive(Clone, Debug, PartialEq)]
enum V {
    S(Vec<u8>),
    I(i64),
    A(IpAddr),
    B(bool),
    /// A list, and whether a named entry was not there.
    L(Vec<V>, bool),
    Map(u16, bool),
}

/// Whether `node` holds for `facts`.
pub(super) fn holds(node: &Node, facts: &Sample) -> bool {
    eval(node, facts) == Some(V::B(true))
}

fn eval(node: &Node, facts: &Sample) -> Option<V> {
    Some(match &node.kind {
        NodeKind::Not(inner) => V::B(!holds(inner, facts)),
        NodeKind::Join(logic, nodes) => {
            let mut values = nodes.iter().map(|node| holds(node, facts));
            V::B(match logic {
                Logic::And => values.all(|value| value),
                Logic::Or => values.any(|value| value),
                Logic::Xor => values.filter(|value| *value).count() % 2 == 1,
            })
        }
        NodeKind::Compare {
            left, op, right, ..
        } => match operand(left, facts) {
            Some(V::L(items, gone)) => {
                let items = items
                    .into_iter()
                    .map(|item| V::B(compare(&item, *op, right)));
                V::L(items.collect(), gone)
            }
            Some(value) => V::B(compare(&value, *op, right)),
            None => V::B(false),
        },
        NodeKind::Alone(one) => return operand(one, facts),
    })
}

fn operand(operand: &Operand, facts: &Sample) -> Option<V> {
    let mut value = match &operand.base {
        Base::Literal(literal) => match &literal.kind {
            LiteralKind::Text { bytes, .. } => V::S(bytes.to_vec()),
            LiteralKind::Bool(value) => V::B(*value),
            LiteralKind::Atom(Atom::Int(int)) => V::I(*int),
            other => panic!("{other:?}"),
        },
        Base::Field(name) => field(name, facts)?,
        Base::Call { name, args, .. } => {
            let args: Vec<Option<V>> = args.iter().map(|arg| eval(arg, facts)).collect();
            call(name, &args)?
        }
    };
    for index in &operand.path {
        value = match (value, &index.kind) {
            (V::Map(id, fold), IndexKind::Name(name)) => {
                let name = if fold {
                    name.to_ascii_lowercase()
                } else {
                    name.to_vec()
                };
                let values = each(facts, id, Some(&name));
                let gone = values.is_empty();
                V::L(values, gone)
            }
            (V::Map(id, _), _) => V::L(each(facts, id, None), false),
            (V::L(items, _), IndexKind::At(at)) => {
                let at = if *at < 0 {
                    items.len() as i64 + i64::from(*at)
                } else {
                    i64::from(*at)
                };
                items.get(usize::try_from(at).ok()?)?.clone()
            }
            (value, _) => value,
        }
    }
    Some(value)
}

fn field(name: &str, facts: &Sample) -> Option<V> {
    let spec = Small.field(name).unwrap();
    match spec.ty {
        Type::Bytes => Facts::bytes(facts, spec.id).map(|value| V::S(value.into_owned())),
        Type::Int => Facts::int(facts, spec.id).map(V::I),
        Type::Ip => Facts::ip(facts, spec.id).map(|ip| V::A(ip.to_canonical())),
        Type::Bool => Facts::bool(facts, spec.id).map(V::B),
        Type::Array => Some(V::L(each(facts, spec.id.0, None), false)),
        Type::Map => Some(V::Map(spec.id.0, spec.names_ignore_case)),
    }
}

fn each(facts: &Sample, id: u16, name: Option<&[u8]>) -> Vec<V> {
    let mut values = Vec::new();
    facts.each(super::FieldId(id), name, &mut |value| {
        values.push(V::S(value.to_vec()));
        ControlFlow::Continue(())
    });
    values
}

fn call(name: &str, args: &[Option<V>]) -> Option<V> {
    let first = args[0].clone()?;
    match (name, first) {
        ("any", V::L(items, _)) => Some(V::B(items.contains(&V::B(true)))),
        ("all", V::L(items, gone)) => Some(V::B(!gone && !items.contains(&V::B(false)))),
        // The generated expressions call `len` of a list only with `[*]`.
        (_, V::L(items, gone)) => {
            let map = |item| call(name, &[&[Some(item)], &args[1..]].concat());
            Some(V::L(items.into_iter().filter_map(map).collect(), gone))
        }
        ("lower", V::S(text)) => Some(V::S(text.to_ascii_lowercase())),
        ("upper", V::S(text)) => Some(V::S(text.to_ascii_uppercase())),
        ("len", V::S(text)) => Some(V::I(text.len() as i64)),
        ("starts_with", V::S(text)) => Some(V::B(text.starts_with(&string(args[1].as_ref()?)))),
        ("ends_with", V::S(text)) => Some(V::B(text.ends_with(&string(args[1].as_ref()?)))),
        (name, first) => panic!("{name} {first:?}"),
    }
}

fn string(value: &V) -> Vec<u8> {
    match value {
        V::S(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn compare(left: &V, op: Op, right: &Right) -> bool {
    match right {
        Right::Set(items) => items.iter().any(|item| is_in(left, item)),
        Right::List { name, .. } => match (lists().get(name).unwrap(), left) {
            (list, V::A(ip)) => list.ips().unwrap().contains(*ip),
            (list, V::S(text)) => list.strings().unwrap().contains(text),
            (list, V::I(int)) => list.ints().unwrap().contains(*int),
            _ => false,
        },
        Right::Value(literal) => compare_value(left, op, literal),
    }
}

fn is_in(left: &V, item: &Literal) -> bool {
    match (left, &item.kind) {
        (V::S(text), LiteralKind::Text { bytes, .. }) => **text == **bytes,
        (V::I(int), LiteralKind::Atom(Atom::Int(one))) => int == one,
        (V::I(int), LiteralKind::Atom(Atom::IntRange(low, high))) => (low..=high).contains(&int),
        (V::A(ip), LiteralKind::Atom(Atom::Ip(one))) => ip == one,
        (V::A(ip), LiteralKind::Atom(Atom::Net(net))) => net.contains(ip),
        (V::A(ip), LiteralKind::Atom(Atom::IpRange(low, high))) => {
            ip.is_ipv4() == low.is_ipv4() && (low..=high).contains(&ip)
        }
        _ => panic!("{left:?} in {item:?}"),
    }
}

fn compare_value(left: &V, op: Op, literal: &Literal) -> bool {
    let right = match &literal.kind {
        LiteralKind::Text { bytes, .. } => V::S(bytes.to_vec()),
        LiteralKind::Bool(value) => V::B(*value),
        LiteralKind::Atom(Atom::Int(int)) => V::I(*int),
        LiteralKind::Atom(Atom::Ip(ip)) => V::A(*ip),
        other => panic!("{other:?}"),
    };
    match (left, op, &right) {
        (_, Op::Eq, _) => *left == right,
        (_, Op::Ne, _) => *left != right,
        (V::S(left), Op::Contains, V::S(right)) => {
            right.is_empty() || left.windows(right.len()).any(|part| part == right)
        }
        (V::S(left), Op::Wildcard, V::S(right)) => {
            wild(&left.to_ascii_lowercase(), &right.to_ascii_lowercase())
        }
        (V::S(left), Op::StrictWildcard, V::S(right)) => wild(left, right),
        (V::S(left), Op::Matches, V::S(right)) => {
            let pattern = std::str::from_utf8(right).unwrap();
            regex::bytes::Regex::new(pattern).unwrap().is_match(left)
        }
        (V::S(left), op, V::S(right)) => ordered(op, left.cmp(right)),
        (V::I(left), Op::BitAnd, V::I(right)) => left & right != 0,
        (V::I(left), op, V::I(right)) => ordered(op, left.cmp(right)),
        _ => panic!("{left:?} {op:?} {right:?}"),
    }
}

fn ordered(op: Op, order: std::cmp::Ordering) -> bool {
    match op {
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
        op => panic!("{op:?}"),
    }
}

/// By the definition: a star takes nothing or one byte more.
fn wild(text: &[u8], pattern: &[u8]) -> bool {
    match (text, pattern) {
        ([], []) => true,
        (_, [b'*', rest @ ..]) => {
            wild(text, rest) || (!text.is_empty() && wild(&text[1..], pattern))
        }
        ([a, text @ ..], [b'\\', b, pattern @ ..]) => a == b && wild(text, pattern),
        ([a, text @ ..], [b, pattern @ ..]) => a == b && wild(text, pattern),
        _ => false,
    }
}
