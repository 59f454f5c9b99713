//! Values that a rule and its candidate share: how requests are counted, and what one costs.

use std::time::Duration;

use toml::de::DeValue;

use super::{LONGEST, MILLISECOND};
use crate::config::Spanned;
use crate::config::defaults;
use crate::config::file::Cost;
use crate::config::scalar::{
    Scalar, between, choice, duration_or_seconds, filled, header_name, integer, kind,
};
use crate::config::schema::{Shape, Value};
use crate::config::section::Section;
use crate::limit::Algorithm;

/// The algorithms by name.
pub(super) const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("sliding_window", Algorithm::SlidingWindow),
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_log", Algorithm::SlidingLog),
    ("token_bucket", Algorithm::TokenBucket),
    ("leaky_bucket", Algorithm::LeakyBucket),
    ("gcra", Algorithm::Gcra),
    ("concurrency", Algorithm::Concurrency),
];

const MOST_SLICES: u16 = 3_600;
const LONGEST_QUEUE: u32 = 1_000_000;

pub(super) fn algorithm() -> Scalar<Algorithm> {
    choice(ALGORITHMS, &[])
}

pub(super) fn period() -> Scalar<Duration> {
    between(MILLISECOND, LONGEST, duration_or_seconds())
}

pub(super) fn burst() -> Scalar<u32> {
    integer(1..=u32::MAX)
}

pub(super) fn slices() -> Scalar<u16> {
    integer(1..=MOST_SLICES)
}

pub(super) fn queue() -> Scalar<u32> {
    integer(0..=LONGEST_QUEUE)
}

/// A number, an expression, or a table that names a header of the response.
pub(super) fn cost(s: &mut Section<'_, '_>) -> Spanned<Cost> {
    let default = Cost::Fixed(defaults::COST);
    s.value_or_table("cost", number_or_expression(), default, |s| {
        let name = s.required("response_header", header_name(), "\"x-cost\"")?;
        Some(Cost::Header(name.value))
    })
}

fn number_or_expression() -> Scalar<Cost> {
    let (number, text) = (integer(1..=u32::MAX), filled());
    let shape = Shape::Either(vec![number.shape(), text.shape()]);
    Scalar::new(shape, move |value| match value {
        DeValue::Integer(_) => number.parse(value).map(Cost::Fixed),
        DeValue::String(_) => text.parse(value).map(Cost::Expression),
        other => Err(kind("an integer, an expression or a table", other)
            .help("for example `cost = 5` or `cost = { response_header = \"x-cost\" }`")),
    })
    .shown(|cost| match cost {
        Cost::Fixed(units) => Value::Integer(i64::from(*units)),
        Cost::Expression(text) => Value::Text(text.clone()),
        Cost::Header(name) => Value::Text(name.to_string()),
    })
}
