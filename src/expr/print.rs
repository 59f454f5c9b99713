//! The tree back to text, in one spelling: what is printed parses to the same tree.

use super::ast::{
    Base, Index, IndexKind, Literal, LiteralKind, Logic, Node, NodeKind, Op, Operand, Right,
};
use super::text::Reader;
use super::token::Atom;

/// The text of a test.
pub(super) fn test(node: &Node) -> String {
    let mut out = String::new();
    node_into(node, &mut out);
    out
}

fn node_into(node: &Node, out: &mut String) {
    match &node.kind {
        NodeKind::Not(inner) => {
            out.push_str("not ");
            child(inner, matches!(inner.kind, NodeKind::Join(..)), out);
        }
        NodeKind::Join(logic, parts) => {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    out.extend([" ", logic.word(), " "]);
                }
                child(part, loosens(part, *logic), out);
            }
        }
        NodeKind::Compare {
            left, op, right, ..
        } => {
            operand(left, out);
            out.extend([" ", op.word(), " "]);
            right_side(right, *op, out);
        }
        NodeKind::Alone(one) => operand(one, out),
    }
}

fn child(node: &Node, parentheses: bool, out: &mut String) {
    if parentheses {
        out.push('(');
    }
    node_into(node, out);
    if parentheses {
        out.push(')');
    }
}

/// Whether `part` would read otherwise without parentheses inside `outer`.
fn loosens(part: &Node, outer: Logic) -> bool {
    match part.kind {
        NodeKind::Join(inner, _) => strength(inner) <= strength(outer),
        _ => false,
    }
}

fn strength(logic: Logic) -> u8 {
    match logic {
        Logic::Or => 0,
        Logic::Xor => 1,
        Logic::And => 2,
    }
}

fn operand(operand: &Operand, out: &mut String) {
    match &operand.base {
        Base::Field(name) => out.push_str(name),
        Base::Literal(value) => literal(value, Reader::Plain, out),
        Base::Call { name, args, .. } => {
            out.extend([name, "("]);
            for (at, arg) in args.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                node_into(arg, out);
            }
            out.push(')');
        }
    }
    operand.path.iter().for_each(|step| index(step, out));
}

fn index(index: &Index, out: &mut String) {
    out.push('[');
    match &index.kind {
        IndexKind::Name(name) => quoted(name, out),
        IndexKind::At(at) => out.push_str(&at.to_string()),
        IndexKind::Every => out.push('*'),
    }
    out.push(']');
}

fn right_side(right: &Right, op: Op, out: &mut String) {
    match right {
        Right::Value(value) => literal(value, reader(op), out),
        Right::List { name, .. } => out.extend(["$", name]),
        Right::Set(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { " " } else { "{" });
                literal(item, Reader::Plain, out);
            }
            out.push('}');
        }
    }
}

fn reader(op: Op) -> Reader {
    match op {
        Op::Matches => Reader::Regex,
        _ => Reader::Plain,
    }
}

fn literal(value: &Literal, reader: Reader, out: &mut String) {
    match &value.kind {
        LiteralKind::Text { bytes, .. } if reader == Reader::Regex => regex(bytes, out),
        LiteralKind::Text { bytes, .. } => quoted(bytes, out),
        LiteralKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        LiteralKind::Atom(atom) => out.push_str(&match atom {
            Atom::Int(int) => int.to_string(),
            Atom::IntRange(low, high) => format!("{low}..{high}"),
            Atom::Ip(ip) => ip.to_string(),
            Atom::IpRange(low, high) => format!("{low}..{high}"),
            Atom::Net(net) => net.to_string(),
        }),
    }
}

/// A string in quotes. What is not text is written in hexadecimal.
fn quoted(bytes: &[u8], out: &mut String) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if c.is_ascii_control() => hex(c as u8, out),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(*byte, out));
    }
    out.push('"');
}

fn hex(byte: u8, out: &mut String) {
    out.push_str(&format!("\\x{byte:02x}"));
}

/// A regex has its own escapes, so only a raw string can hold a quote after a backslash.
fn regex(bytes: &[u8], out: &mut String) {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains('"') && !text.ends_with('\\') {
        return out.extend(["\"", &text, "\""]);
    }
    let mut hashes = String::new();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    out.extend(["r", &hashes, "\"", &text, "\"", &hashes]);
}
