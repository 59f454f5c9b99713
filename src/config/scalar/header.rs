//! Parts of a response: header names and values, the status.

use http::{HeaderName, HeaderValue};
use toml::de::DeValue;

use super::{Parsed, Scalar, Wrong, short, string, whole};
use crate::config::schema::{HEADER_NAME, HEADER_VALUE, Shape, Value};

/// The name of a header, in lower case.
pub(in crate::config) fn header_name() -> Scalar<HeaderName> {
    Scalar::new(Shape::like(HEADER_NAME, &[]), |value| {
        parse_header_name(string(value, "a header name")?)
    })
    .shown(|name| Value::Text(name.to_string()))
}

/// A header name as text, also where it stands as a key.
pub(in crate::config) fn parse_header_name(written: &str) -> Parsed<HeaderName> {
    HeaderName::from_bytes(written.as_bytes()).map_err(|_| {
        Wrong::new(format!("`{written}` is not a header name"))
            .help("for example \"x-forwarded-for\"")
    })
}

/// The value of a header.
pub(in crate::config) fn header_value() -> Scalar<HeaderValue> {
    Scalar::new(Shape::like(HEADER_VALUE, &[]), |value| {
        let written = string(value, "a header value")?;
        HeaderValue::from_str(written).map_err(|_| {
            Wrong::new("a header value cannot hold control characters").help("use one line of text")
        })
    })
    .shown(|value| Value::Text(String::from_utf8_lossy(value.as_bytes()).into_owned()))
}

/// The status of a final response.
pub(in crate::config) fn status() -> Scalar<u16> {
    let (low, high) = (200, 599);
    let parse = move |value: &DeValue<'_>| {
        let number = whole(value)?;
        let fits = (low..=high).contains(&number);
        let status = u16::try_from(number).ok().filter(|_| fits);
        status.ok_or_else(|| {
            Wrong::new(format!("{number} is not a status between {low} and {high}"))
                .help("for example `status = 200`")
        })
    };
    let shape = Shape::Integer {
        low: short(low),
        high: short(high),
    };
    Scalar::new(shape, parse).shown(|status| Value::Integer(i64::from(*status)))
}
