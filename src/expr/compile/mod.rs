//! Compiles the checked tree to closures. A comparison of a field with a literal is one closure; it
//! looks up, decodes and allocates nothing at run time.
//!
//! Every closure takes one pointer: to the facts and to the current item of `any` or `all`. Outside
//! of these the item is empty and never read.

mod bytes;
mod context;
mod list;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;

use self::list::ListReader;
use super::ScalarValue;
use super::json::{self, JsonStep};
use super::term::{
    BoolTerm, CompiledTerm, EachTerm, IntTerm, IntTest, IpTerm, IpTest, StringSource,
};

pub use context::{EvalContext, FieldMemo};
pub use list::position;

pub(super) type Check = Box<dyn for<'a> Fn(&EvalContext<'a>) -> bool + Send + Sync>;
pub(super) type Get =
    Box<dyn for<'a> Fn(&EvalContext<'a>) -> Option<ScalarValue<'a>> + Send + Sync>;
type GetBytes = Box<dyn for<'a> Fn(&EvalContext<'a>) -> Option<Cow<'a, [u8]>> + Send + Sync>;

/// The tests that are evaluated once for a whole list.
struct SharedTests(Box<[Check]>);

// === impl SharedTests ===

impl SharedTests {
    fn new(tests: Vec<BoolTerm>) -> SharedTests {
        SharedTests(tests.into_iter().map(test).collect())
    }

    /// Evaluates the tests; a later test may read the results of earlier ones.
    #[inline]
    fn made<'a>(&self, context: &EvalContext<'a>) -> EvalContext<'a> {
        let mut made = *context;
        made.kept = 0;
        for (at, check) in self.0.iter().enumerate() {
            made.kept |= u64::from(check(&made)) << at;
        }
        made
    }
}

/// Compiles a test.
pub(super) fn test(test: BoolTerm) -> Check {
    match test {
        BoolTerm::Const(value) => Box::new(move |_| value),
        BoolTerm::Field(field, value) => {
            Box::new(move |context| context.facts.bool(field) == Some(value))
        }
        BoolTerm::Not(inner) => not(*inner),
        BoolTerm::And(parts) => and(parts),
        BoolTerm::Xor(parts) => xor(parts),
        BoolTerm::Or(parts) => or(parts),
        BoolTerm::Bytes(term, test) => bytes::test(term, test),
        BoolTerm::Int(term, test) => int_test(term, test),
        BoolTerm::Ip(term, test) => ip_test(term, test),
        BoolTerm::Any(source, inner) => each(source, *inner, true),
        BoolTerm::All(source, inner) => each(source, *inner, false),
        BoolTerm::Kept(at) => Box::new(move |context| context.kept >> at & 1 == 1),
    }
}

/// Compiles a value.
pub(super) fn value(term: CompiledTerm) -> Get {
    match term {
        CompiledTerm::Bytes(term) => {
            let get = bytes::get(term);
            Box::new(move |context| get(context).map(ScalarValue::Bytes))
        }
        CompiledTerm::Int(IntTerm::Field(field)) => {
            Box::new(move |context| context.facts.int(field).map(ScalarValue::Int))
        }
        CompiledTerm::Int(IntTerm::Literal(int)) => Box::new(move |_| Some(ScalarValue::Int(int))),
        CompiledTerm::Int(IntTerm::Len(term)) => {
            let get = bytes::get(*term);
            Box::new(move |context| get(context).map(|value| ScalarValue::Int(len(&value))))
        }
        CompiledTerm::Int(IntTerm::Count(source)) => {
            let list = ListReader::new(source);
            Box::new(move |context| list.count(context).map(ScalarValue::Int))
        }
        CompiledTerm::Int(IntTerm::Json(term, path)) => {
            let get = bytes::get(*term);
            Box::new(move |context| json_int(&get(context)?, &path).map(ScalarValue::Int))
        }
        CompiledTerm::Ip(term) => Box::new(move |context| ip(&term, context).map(ScalarValue::Ip)),
        CompiledTerm::Bool(BoolTerm::Field(field, true)) => {
            Box::new(move |context| context.facts.bool(field).map(ScalarValue::Bool))
        }
        // The checker never returns these as a single value.
        CompiledTerm::Many(..)
        | CompiledTerm::List(..)
        | CompiledTerm::Map(_)
        | CompiledTerm::Regex(_) => Box::new(|_| None),
        CompiledTerm::Bool(inner) => {
            let inner = test(inner);
            Box::new(move |context| Some(ScalarValue::Bool(inner(context))))
        }
    }
}

fn not(inner: BoolTerm) -> Check {
    let inner = test(inner);
    Box::new(move |context| !inner(context))
}

fn and(parts: Vec<BoolTerm>) -> Check {
    match pair(parts.into_iter().map(test).collect()) {
        Ok((a, b)) => Box::new(move |context| a(context) && b(context)),
        Err(parts) => Box::new(move |context| parts.iter().all(|part| part(context))),
    }
}

fn or(parts: Vec<BoolTerm>) -> Check {
    match pair(parts.into_iter().map(test).collect()) {
        Ok((a, b)) => Box::new(move |context| a(context) || b(context)),
        Err(parts) => Box::new(move |context| parts.iter().any(|part| part(context))),
    }
}

fn xor(parts: Vec<BoolTerm>) -> Check {
    let parts: Vec<Check> = parts.into_iter().map(test).collect();
    Box::new(move |context| parts.iter().fold(false, |odd, part| odd ^ part(context)))
}

/// Most rules join two tests, which need no loop.
fn pair(parts: Vec<Check>) -> Result<(Check, Check), Box<[Check]>> {
    <[Check; 2]>::try_from(parts)
        .map(|[a, b]| (a, b))
        .map_err(Vec::into_boxed_slice)
}

/// `any` stops at the first value that passes, `all` at the first that fails. `all` of a missing
/// list is false; `all` of an empty list is true.
fn each(source: StringSource, each: EachTerm, any: bool) -> Check {
    let (list, inner, kept) = (
        ListReader::new(source),
        test(each.test),
        SharedTests::new(each.kept),
    );
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

fn int_test(term: IntTerm, test: IntTest) -> Check {
    match test {
        IntTest::Eq(right) => on_int(term, move |left| left == right),
        IntTest::Ne(right) => on_int(term, move |left| left != right),
        IntTest::Order(order, right) => on_int(term, move |left| order.holds(&left, &right)),
        IntTest::In(set) => on_int(term, move |left| set.contains(left)),
        IntTest::Bits(bits) => on_int(term, move |left| left & bits != 0),
    }
}

fn on_int(term: IntTerm, test: impl Fn(i64) -> bool + Send + Sync + 'static) -> Check {
    match term {
        IntTerm::Field(field) => {
            Box::new(move |context| context.facts.int(field).is_some_and(&test))
        }
        IntTerm::Literal(int) => Box::new(move |_| test(int)),
        IntTerm::Len(term) => bytes::on(*term, move |value| test(len(value))),
        IntTerm::Count(source) => {
            let list = ListReader::new(source);
            Box::new(move |context| list.count(context).is_some_and(&test))
        }
        IntTerm::Json(term, path) => bytes::on(*term, move |value| {
            json_int(value, &path).is_some_and(&test)
        }),
    }
}

fn ip_test(term: IpTerm, test: IpTest) -> Check {
    match test {
        IpTest::Eq(right) => on_ip(term, move |left| left == right),
        IpTest::Ne(right) => on_ip(term, move |left| left != right),
        IpTest::In(set) => match term {
            // The set accepts addresses in any form.
            IpTerm::Field(field) => {
                Box::new(move |context| context.facts.ip(field).is_some_and(|ip| set.contains(ip)))
            }
            term => on_ip(term, move |left| set.contains(left)),
        },
    }
}

fn on_ip(term: IpTerm, test: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Check {
    Box::new(move |context| ip(&term, context).is_some_and(&test))
}

#[inline]
fn ip(term: &IpTerm, context: &EvalContext<'_>) -> Option<IpAddr> {
    match *term {
        IpTerm::Field(field) => Some(context.facts.ip(field)?.to_canonical()),
        IpTerm::Network(field, v4, v6) => Some(mask(context.facts.ip(field)?, v4, v6)),
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

fn json_int(text: &[u8], path: &[JsonStep]) -> Option<i64> {
    json::find(text, path)?.int()
}

fn len(value: &[u8]) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}
