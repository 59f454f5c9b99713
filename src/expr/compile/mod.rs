//! The checked tree to closures. One comparison of a field with a literal is one closure; nothing
//! is looked up, decoded or allocated when it runs.
//!
//! Every closure takes one pointer: to the facts and the item that `any` or `all` is looking at.
//! Outside of them the item is empty and nobody reads it.

mod bytes;
mod context;
mod list;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;

use self::list::List;
use super::Value;
use super::json::{self, Step};
use super::term::{Each, Int, IntTest, Ip, IpTest, Source, Term, Test};

pub use context::{Context, Memo};
pub use list::position;

pub(super) type Check = Box<dyn for<'a> Fn(&Context<'a>) -> bool + Send + Sync>;
pub(super) type Get = Box<dyn for<'a> Fn(&Context<'a>) -> Option<Value<'a>> + Send + Sync>;
type GetBytes = Box<dyn for<'a> Fn(&Context<'a>) -> Option<Cow<'a, [u8]>> + Send + Sync>;

/// The tests that are made once for a whole list.
struct Kept(Box<[Check]>);

// === impl Kept ===

impl Kept {
    fn new(tests: Vec<Test>) -> Kept {
        Kept(tests.into_iter().map(test).collect())
    }

    /// Makes the tests; a later one may read what came out of those before it.
    #[inline]
    fn made<'a>(&self, context: &Context<'a>) -> Context<'a> {
        let mut made = *context;
        made.kept = 0;
        for (at, check) in self.0.iter().enumerate() {
            made.kept |= u64::from(check(&made)) << at;
        }
        made
    }
}

/// Compiles a test.
pub(super) fn test(test: Test) -> Check {
    match test {
        Test::Const(value) => Box::new(move |_| value),
        Test::Field(field, value) => {
            Box::new(move |context| context.facts.bool(field) == Some(value))
        }
        Test::Not(inner) => not(*inner),
        Test::And(parts) => and(parts),
        Test::Xor(parts) => xor(parts),
        Test::Or(parts) => or(parts),
        Test::Bytes(term, test) => bytes::test(term, test),
        Test::Int(term, test) => int_test(term, test),
        Test::Ip(term, test) => ip_test(term, test),
        Test::Any(source, inner) => each(source, *inner, true),
        Test::All(source, inner) => each(source, *inner, false),
        Test::Kept(at) => Box::new(move |context| context.kept >> at & 1 == 1),
    }
}

/// Compiles a value.
pub(super) fn value(term: Term) -> Get {
    match term {
        Term::Bytes(term) => {
            let get = bytes::get(term);
            Box::new(move |context| get(context).map(Value::Bytes))
        }
        Term::Int(Int::Field(field)) => {
            Box::new(move |context| context.facts.int(field).map(Value::Int))
        }
        Term::Int(Int::Literal(int)) => Box::new(move |_| Some(Value::Int(int))),
        Term::Int(Int::Len(term)) => {
            let get = bytes::get(*term);
            Box::new(move |context| get(context).map(|value| Value::Int(len(&value))))
        }
        Term::Int(Int::Count(source)) => {
            let list = List::new(source);
            Box::new(move |context| list.count(context).map(Value::Int))
        }
        Term::Int(Int::Json(term, path)) => {
            let get = bytes::get(*term);
            Box::new(move |context| json_int(&get(context)?, &path).map(Value::Int))
        }
        Term::Ip(term) => Box::new(move |context| ip(&term, context).map(Value::Ip)),
        Term::Bool(Test::Field(field, true)) => {
            Box::new(move |context| context.facts.bool(field).map(Value::Bool))
        }
        // The checker gives these no single value.
        Term::Many(..) | Term::List(..) | Term::Map(_) | Term::Regex(_) => Box::new(|_| None),
        Term::Bool(inner) => {
            let inner = test(inner);
            Box::new(move |context| Some(Value::Bool(inner(context))))
        }
    }
}

fn not(inner: Test) -> Check {
    let inner = test(inner);
    Box::new(move |context| !inner(context))
}

fn and(parts: Vec<Test>) -> Check {
    match pair(parts.into_iter().map(test).collect()) {
        Ok((a, b)) => Box::new(move |context| a(context) && b(context)),
        Err(parts) => Box::new(move |context| parts.iter().all(|part| part(context))),
    }
}

fn or(parts: Vec<Test>) -> Check {
    match pair(parts.into_iter().map(test).collect()) {
        Ok((a, b)) => Box::new(move |context| a(context) || b(context)),
        Err(parts) => Box::new(move |context| parts.iter().any(|part| part(context))),
    }
}

fn xor(parts: Vec<Test>) -> Check {
    let parts: Vec<Check> = parts.into_iter().map(test).collect();
    Box::new(move |context| parts.iter().fold(false, |odd, part| odd ^ part(context)))
}

/// Most rules join two tests; they need no loop.
fn pair(parts: Vec<Check>) -> Result<(Check, Check), Box<[Check]>> {
    <[Check; 2]>::try_from(parts)
        .map(|[a, b]| (a, b))
        .map_err(Vec::into_boxed_slice)
}

/// `any` stops at the first value that passes, `all` at the first that fails. A list that is missing
/// fails `all`; one without values does not.
fn each(source: Source, each: Each, any: bool) -> Check {
    let (list, inner, kept) = (List::new(source), test(each.test), Kept::new(each.kept));
    Box::new(move |context| {
        let context = &kept.made(context);
        let mut stopped = false;
        let there = list.each(context, &mut |item| {
            stopped = inner(&context.at(item)) == any;
            if stopped {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if any { stopped } else { there && !stopped }
    })
}

fn int_test(term: Int, test: IntTest) -> Check {
    match test {
        IntTest::Eq(right) => on_int(term, move |left| left == right),
        IntTest::Ne(right) => on_int(term, move |left| left != right),
        IntTest::Order(order, right) => on_int(term, move |left| order.holds(&left, &right)),
        IntTest::In(set) => on_int(term, move |left| set.contains(left)),
        IntTest::Bits(bits) => on_int(term, move |left| left & bits != 0),
    }
}

fn on_int(term: Int, test: impl Fn(i64) -> bool + Send + Sync + 'static) -> Check {
    match term {
        Int::Field(field) => Box::new(move |context| context.facts.int(field).is_some_and(&test)),
        Int::Literal(int) => Box::new(move |_| test(int)),
        Int::Len(term) => bytes::on(*term, move |value| test(len(value))),
        Int::Count(source) => {
            let list = List::new(source);
            Box::new(move |context| list.count(context).is_some_and(&test))
        }
        Int::Json(term, path) => bytes::on(*term, move |value| {
            json_int(value, &path).is_some_and(&test)
        }),
    }
}

fn ip_test(term: Ip, test: IpTest) -> Check {
    match test {
        IpTest::Eq(right) => on_ip(term, move |left| left == right),
        IpTest::Ne(right) => on_ip(term, move |left| left != right),
        IpTest::In(set) => match term {
            // The set takes any form of an address.
            Ip::Field(field) => {
                Box::new(move |context| context.facts.ip(field).is_some_and(|ip| set.contains(ip)))
            }
            term => on_ip(term, move |left| set.contains(left)),
        },
    }
}

fn on_ip(term: Ip, test: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Check {
    Box::new(move |context| ip(&term, context).is_some_and(&test))
}

#[inline]
fn ip(term: &Ip, context: &Context<'_>) -> Option<IpAddr> {
    match *term {
        Ip::Field(field) => Some(context.facts.ip(field)?.to_canonical()),
        Ip::Network(field, v4, v6) => Some(mask(context.facts.ip(field)?, v4, v6)),
    }
}

fn mask(ip: IpAddr, v4: u8, v6: u8) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(v4)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(v6)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
    }
}

fn json_int(text: &[u8], path: &[Step]) -> Option<i64> {
    json::find(text, path)?.int()
}

fn len(value: &[u8]) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}
