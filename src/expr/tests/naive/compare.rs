//! Comparisons once more, by definition: one value, one operator, one literal at a time.

use super::super::super::ast::{Literal, LiteralKind, Op, Right};
use super::super::super::literal::Atom;
use super::super::lists;
use super::V;

pub(super) fn compare(left: &V, op: Op, right: &Right) -> bool {
    if *left == V::Gone {
        return false;
    }
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
