//! A second, naive implementation of the language: it walks the tree as written, with a list of
//! values for every part. The compiled closures are compared with it.

use std::net::IpAddr;
use std::ops::ControlFlow;

mod compare;
mod functions;

pub(super) use functions::{encode, json_int, json_text};

use super::super::ast::{
    ExprNode, IndexKind, LiteralKind, LogicOp, NodeKind, Operand, OperandBase,
};
use super::super::json::JsonStep;
use super::super::literal::UnquotedLiteral;
use super::super::{FieldFacts, FieldScheme, ValueType};
use super::{Sample, Small};
use compare::compare;

#[derive(Clone, Debug, PartialEq)]
enum V {
    S(Vec<u8>),
    I(i64),
    A(IpAddr),
    B(bool),
    /// A list, and whether a named entry was not there.
    L(Vec<V>, bool),
    /// Each value of a list, after `[*]`.
    E(Vec<V>, bool),
    Map(u16, bool),
    /// A value of a list that a function could not give.
    Gone,
}

/// Whether `node` holds for `facts`.
pub(super) fn holds(node: &ExprNode, facts: &Sample) -> bool {
    eval(node, facts) == Some(V::B(true))
}

fn eval(node: &ExprNode, facts: &Sample) -> Option<V> {
    Some(match &node.kind {
        NodeKind::Not(inner) => map(truth(inner, facts), |value| !value),
        NodeKind::Join(logic, nodes) => {
            let parts: Vec<V> = nodes.iter().map(|node| truth(node, facts)).collect();
            joined(*logic, &parts)
        }
        NodeKind::Compare {
            left, op, right, ..
        } => match operand(left, facts) {
            Some(V::L(items, gone) | V::E(items, gone)) => {
                let items = items
                    .into_iter()
                    .map(|item| V::B(compare(&item, *op, right)));
                V::E(items.collect(), gone)
            }
            Some(value) => V::B(compare(&value, *op, right)),
            None => V::B(false),
        },
        NodeKind::Alone(one) => return operand(one, facts),
    })
}

/// True or false, or a list of them.
fn truth(node: &ExprNode, facts: &Sample) -> V {
    eval(node, facts).unwrap_or(V::B(false))
}

fn map(value: V, change: fn(bool) -> bool) -> V {
    match value {
        V::L(items, gone) | V::E(items, gone) => V::E(
            items.into_iter().map(|item| map(item, change)).collect(),
            gone,
        ),
        value => V::B(change(value == V::B(true))),
    }
}

/// All lists have equal lengths; a part that is not a list applies to each of their values.
fn joined(logic: LogicOp, parts: &[V]) -> V {
    let list = parts.iter().find_map(|part| match part {
        V::L(items, gone) | V::E(items, gone) => Some((items.len(), *gone)),
        _ => None,
    });
    let at = |index: usize| {
        let mut values = parts.iter().map(|part| match part {
            V::L(items, _) | V::E(items, _) => items[index] == V::B(true),
            part => *part == V::B(true),
        });
        V::B(match logic {
            LogicOp::And => values.all(|value| value),
            LogicOp::Or => values.any(|value| value),
            LogicOp::Xor => values.filter(|value| *value).count() % 2 == 1,
        })
    };
    match list {
        Some((len, gone)) => V::E((0..len).map(at).collect(), gone),
        None => at(0),
    }
}

fn operand(operand: &Operand, facts: &Sample) -> Option<V> {
    let mut value = match &operand.base {
        OperandBase::Literal(literal) => match &literal.kind {
            LiteralKind::Text { bytes, .. } => V::S(bytes.to_vec()),
            LiteralKind::Bool(value) => V::B(*value),
            LiteralKind::Atom(UnquotedLiteral::Int(int)) => V::I(*int),
            other => panic!("{other:?}"),
        },
        OperandBase::Field(name) => field(name, facts)?,
        OperandBase::Call { name, args, .. } => {
            let args: Vec<Option<V>> = args.iter().map(|arg| eval(arg, facts)).collect();
            match (&**name, &args[0]) {
                ("has_key", Some(V::Map(id, fold))) => {
                    let name = string(args[1].as_ref()?);
                    V::B(!each(facts, *id, Some(&folded(&name, *fold))).is_empty())
                }
                ("has_value", Some(V::Map(id, _))) => {
                    V::B(each(facts, *id, None).contains(args[1].as_ref()?))
                }
                _ => call(name, &args)?,
            }
        }
    };
    for index in &operand.path {
        value = match (value, &index.kind) {
            (V::Map(id, fold), IndexKind::Name(name)) => {
                let values = each(facts, id, Some(&folded(name, fold)));
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
                let item = items.get(usize::try_from(at).ok()?)?.clone();
                Some(item).filter(|item| *item != V::Gone)?
            }
            (V::L(items, gone), IndexKind::Every) => V::E(items, gone),
            (value, _) => value,
        }
    }
    Some(value)
}

fn folded(name: &[u8], fold: bool) -> Vec<u8> {
    if fold {
        name.to_ascii_lowercase()
    } else {
        name.to_vec()
    }
}

fn field(name: &str, facts: &Sample) -> Option<V> {
    let spec = Small.field(name).unwrap();
    match spec.ty {
        ValueType::Bytes => FieldFacts::bytes(facts, spec.id).map(|value| V::S(value.into_owned())),
        ValueType::Int => FieldFacts::int(facts, spec.id).map(V::I),
        ValueType::Ip => FieldFacts::ip(facts, spec.id).map(|ip| V::A(ip.to_canonical())),
        ValueType::Bool => FieldFacts::bool(facts, spec.id).map(V::B),
        ValueType::Array => Some(V::L(each(facts, spec.id.0, None), false)),
        ValueType::Map => Some(V::Map(spec.id.0, spec.names_ignore_case)),
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
    if name == "concat" {
        return concat(args);
    }
    let first = match (name, args[0].clone()) {
        ("split", None) => return Some(V::L(Vec::new(), true)),
        (_, first) => first?,
    };
    let rest: Vec<&V> = args[1..].iter().flatten().collect();
    let text = |at: usize| string(rest[at]);
    Some(match (name, first) {
        ("any", V::L(items, _) | V::E(items, _)) => V::B(items.contains(&V::B(true))),
        ("all", V::L(items, gone) | V::E(items, gone)) => {
            V::B(!gone && items.iter().all(|item| *item == V::B(true)))
        }
        ("has_value", V::L(items, _)) => V::B(items.contains(&V::S(text(0)))),
        ("join", V::L(_, true)) => return None,
        ("join", V::L(items, _)) => {
            let items = items.iter().filter(|item| **item != V::Gone).map(string);
            V::S(items.collect::<Vec<_>>().join(&*text(0)))
        }
        ("len", V::L(_, true)) => return None,
        ("len", V::L(items, _)) => V::I(items.len() as i64),
        (_, V::E(items, gone)) => {
            let each = |item| call(name, &[&[Some(item)], &args[1..]].concat());
            let items = items.into_iter().map(|item| match item {
                V::Gone => V::Gone,
                item => each(item).unwrap_or(V::Gone),
            });
            V::L(items.collect(), gone)
        }
        ("lower", V::S(text)) => V::S(text.to_ascii_lowercase()),
        ("upper", V::S(text)) => V::S(text.to_ascii_uppercase()),
        ("len", V::S(text)) => V::I(text.len() as i64),
        ("starts_with", V::S(value)) => V::B(value.starts_with(&text(0))),
        ("ends_with", V::S(value)) => V::B(value.ends_with(&text(0))),
        ("to_string", value) => V::S(shown(&value)),
        ("substring", V::S(value)) => V::S(substring(&value, &rest)),
        ("remove_bytes", V::S(mut value)) => {
            value.retain(|byte| !text(0).contains(byte));
            V::S(value)
        }
        ("url_decode", V::S(value)) => V::S(functions::url_decode(
            &value,
            rest.first().map(|options| string(options)),
        )),
        ("decode_base64", V::S(value)) => V::S(functions::decode_base64(&value)?),
        ("lookup_json_string", V::S(value)) => {
            V::S(json_text(std::str::from_utf8(&value).ok()?, &steps(&rest))?.into_bytes())
        }
        ("lookup_json_integer", V::S(value)) => {
            V::I(json_int(std::str::from_utf8(&value).ok()?, &steps(&rest))?)
        }
        ("jwt_claim", V::S(value)) => V::S(functions::jwt_claim(&value, &steps(&rest))?),
        ("regex_replace", V::S(value)) => {
            V::S(functions::regex_replace(&value, &text(0), &text(1)))
        }
        ("wildcard_replace", V::S(value)) => V::S(functions::wildcard_replace(
            &value,
            &text(0),
            &text(1),
            rest.len() < 3,
        )),
        ("split", V::S(value)) => {
            let limit = rest.get(1).map_or(128, |limit| number(limit)) as usize;
            V::L(
                functions::split(&value, &text(0), limit)
                    .into_iter()
                    .map(V::S)
                    .collect(),
                false,
            )
        }
        ("cidr", V::A(ip)) => V::A(functions::network(
            ip,
            number(rest[0]) as u8,
            number(rest[1]) as u8,
        )),
        ("cidr6", V::A(ip)) => V::A(functions::network(ip, 32, number(rest[0]) as u8)),
        (name, first) => panic!("{name} {first:?}"),
    })
}

fn concat(args: &[Option<V>]) -> Option<V> {
    if let Some(Some(V::E(items, gone))) = args.first() {
        // Value by value.
        let each = |item: &V| match item {
            V::Gone => concat(&[&[None], &args[1..]].concat()),
            item => concat(&[&[Some(item.clone())], &args[1..]].concat()),
        };
        return Some(V::L(
            items
                .iter()
                .map(|item| each(item).unwrap_or(V::Gone))
                .collect(),
            *gone,
        ));
    }
    let there: Vec<&V> = args.iter().flatten().collect();
    if let Some(V::L(..)) = there.first() {
        let lists = there.iter().map(|list| match list {
            V::L(items, gone) => (items.clone(), *gone),
            other => panic!("{other:?}"),
        });
        let gone = lists.clone().all(|(_, gone)| gone);
        let items = lists.flat_map(|(items, _)| items);
        return Some(V::L(items.filter(|item| *item != V::Gone).collect(), gone));
    }
    (!there.is_empty()).then(|| V::S(there.iter().flat_map(|value| shown(value)).collect()))
}

fn shown(value: &V) -> Vec<u8> {
    match value {
        V::S(text) => text.clone(),
        V::I(int) => int.to_string().into_bytes(),
        V::A(ip) => ip.to_string().into_bytes(),
        V::B(value) => value.to_string().into_bytes(),
        other => panic!("{other:?}"),
    }
}

fn substring(value: &[u8], ends: &[&V]) -> Vec<u8> {
    let len = value.len() as i64;
    let place = |at: i64| (if at < 0 { len + at } else { at }).clamp(0, len) as usize;
    let from = place(number(ends[0]));
    let to = ends.get(1).map_or(value.len(), |end| place(number(end)));
    value[from..to.max(from)].to_vec()
}

fn steps(values: &[&V]) -> Vec<JsonStep> {
    let step = |value: &&V| match value {
        V::S(name) => JsonStep::Name((**name).into()),
        V::I(at) => JsonStep::At(*at as usize),
        other => panic!("{other:?}"),
    };
    values.iter().map(step).collect()
}

fn number(value: &V) -> i64 {
    match value {
        V::I(int) => *int,
        other => panic!("{other:?}"),
    }
}

fn string(value: &V) -> Vec<u8> {
    match value {
        V::S(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}
