//! Comparisons once more, by definition: one value, one operator, one literal at a time.

use super::super::super::ast::{CompareOp, CompareTarget, LiteralKind, LiteralNode};
use super::super::super::literal::UnquotedLiteral;
use super::super::lists;
use super::V;

pub(super) fn compare(left: &V, op: CompareOp, right: &CompareTarget) -> bool {
    if *left == V::Gone {
        return false;
    }
    match right {
        CompareTarget::Set(items) => items.iter().any(|item| is_in(left, item)),
        CompareTarget::List { name, .. } => match (lists().get(name).unwrap(), left) {
            (list, V::A(ip)) => list.ips().unwrap().contains(*ip),
            (list, V::S(text)) => list.strings().unwrap().contains(text),
            (list, V::I(int)) => list.ints().unwrap().contains(*int),
            _ => false,
        },
        CompareTarget::Value(literal) => compare_value(left, op, literal),
    }
}

fn is_in(left: &V, item: &LiteralNode) -> bool {
    match (left, &item.kind) {
        (V::S(text), LiteralKind::Text { bytes, .. }) => **text == **bytes,
        (V::I(int), LiteralKind::Atom(UnquotedLiteral::Int(one))) => int == one,
        (V::I(int), LiteralKind::Atom(UnquotedLiteral::IntRange(low, high))) => {
            (low..=high).contains(&int)
        }
        (V::A(ip), LiteralKind::Atom(UnquotedLiteral::Ip(one))) => ip == one,
        (V::A(ip), LiteralKind::Atom(UnquotedLiteral::Net(net))) => net.contains(ip),
        (V::A(ip), LiteralKind::Atom(UnquotedLiteral::IpRange(low, high))) => {
            ip.is_ipv4() == low.is_ipv4() && (low..=high).contains(&ip)
        }
        _ => panic!("{left:?} in {item:?}"),
    }
}

fn compare_value(left: &V, op: CompareOp, literal: &LiteralNode) -> bool {
    let right = match &literal.kind {
        LiteralKind::Text { bytes, .. } => V::S(bytes.to_vec()),
        LiteralKind::Bool(value) => V::B(*value),
        LiteralKind::Atom(UnquotedLiteral::Int(int)) => V::I(*int),
        LiteralKind::Atom(UnquotedLiteral::Ip(ip)) => V::A(*ip),
        other => panic!("{other:?}"),
    };
    match (left, op, &right) {
        (_, CompareOp::Eq, _) => *left == right,
        (_, CompareOp::Ne, _) => *left != right,
        (V::S(left), CompareOp::Contains, V::S(right)) => {
            right.is_empty() || left.windows(right.len()).any(|part| part == right)
        }
        (V::S(left), CompareOp::Wildcard, V::S(right)) => {
            wild(&left.to_ascii_lowercase(), &right.to_ascii_lowercase())
        }
        (V::S(left), CompareOp::StrictWildcard, V::S(right)) => wild(left, right),
        (V::S(left), CompareOp::Matches, V::S(right)) => {
            let pattern = std::str::from_utf8(right).unwrap();
            regex::bytes::Regex::new(pattern).unwrap().is_match(left)
        }
        (V::S(left), op, V::S(right)) => ordered(op, left.cmp(right)),
        (V::I(left), CompareOp::BitAnd, V::I(right)) => left & right != 0,
        (V::I(left), op, V::I(right)) => ordered(op, left.cmp(right)),
        _ => panic!("{left:?} {op:?} {right:?}"),
    }
}

fn ordered(op: CompareOp, order: std::cmp::Ordering) -> bool {
    match op {
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
        op => panic!("{op:?}"),
    }
}

/// By definition, a star matches nothing or one more byte.
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
