//! The names in an expression, each with its place: for tools that point at one. It never looks a
//! name up, and what stands in a string is none.

use std::ops::Range;

use super::ast::{Base, Node, NodeKind, Operand};
use super::parse;

/// A name as it is written, and where.
pub type Name = (Box<str>, Range<usize>);

/// The functions that a test or a value calls.
pub fn calls(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        Base::Call {
            name, name_span, ..
        } => Some((name.clone(), name_span.clone())),
        _ => None,
    })
}

/// The fields that a test or a value reads.
pub fn reads(source: &str) -> Vec<Name> {
    names(source, |operand| match &operand.base {
        Base::Field(name) => Some((name.clone(), operand.base_span.clone())),
        _ => None,
    })
}

fn names(source: &str, name: impl Fn(&Operand) -> Option<Name>) -> Vec<Name> {
    let mut found = Vec::new();
    if let Ok(node) = parse::predicate(source) {
        each_operand(&node, &mut |operand| found.extend(name(operand)));
    }
    found
}

fn each_operand(node: &Node, visit: &mut dyn FnMut(&Operand)) {
    match &node.kind {
        NodeKind::Not(inner) => each_operand(inner, visit),
        NodeKind::Join(_, nodes) => nodes.iter().for_each(|node| each_operand(node, visit)),
        NodeKind::Alone(operand) | NodeKind::Compare { left: operand, .. } => {
            visit(operand);
            if let Base::Call { args, .. } = &operand.base {
                args.iter().for_each(|arg| each_operand(arg, visit));
            }
        }
    }
}
