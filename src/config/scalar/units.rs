//! Durations (`"500ms"`) and sizes (`"64KiB"`): a whole number and a unit.

use std::time::Duration;

use toml::de::DeValue;

use super::{Parsed, SettingType, ValueError, kind, whole};
use crate::config::schema::{ExampleValue, ValueSchema};

/// The milliseconds in each unit.
const DURATIONS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// The bytes in each unit.
const SIZES: [(&str, u64); 4] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Other spellings of units, for suggestions.
const WORDS: [(&[&str], &str); 7] = [
    (&["sec", "secs", "second", "seconds"], "s"),
    (&["min", "mins", "minute", "minutes"], "m"),
    (&["hr", "hour", "hours"], "h"),
    (&["day", "days"], "d"),
    (&["k", "kb", "ki"], "KiB"),
    (&["mb", "mi"], "MiB"),
    (&["g", "gb", "gi"], "GiB"),
];

const DURATION_HELP: &str = "a whole number and a unit: \"500ms\", \"10s\", \"5m\", \"1h\", \"1d\"";
const SIZE_HELP: &str = "a whole number and a unit: \"100B\", \"64KiB\", \"1MiB\", \"1GiB\"";

/// A duration in the form `"10s"`.
pub(in crate::config) fn duration() -> SettingType<Duration> {
    durations(false, parse_duration)
}

/// A duration, or whole seconds as in Cloudflare's API.
pub(in crate::config) fn duration_or_seconds() -> SettingType<Duration> {
    durations(true, |value| {
        if !value.is_integer() {
            return parse_duration(value);
        }
        u64::try_from(whole(value)?)
            .map(Duration::from_secs)
            .map_err(|_| {
                ValueError::new("this duration is negative or too large").help(DURATION_HELP)
            })
    })
}

/// A duration within bounds.
pub(in crate::config) fn between(
    low: Duration,
    high: Duration,
    mut any: SettingType<Duration>,
) -> SettingType<Duration> {
    if let ValueSchema::Duration {
        low: l, high: h, ..
    } = &mut any.shape
    {
        (*l, *h) = (low, high);
    }
    SettingType::new(any.shape(), move |value| {
        let duration = any.parse(value)?;
        if (low..=high).contains(&duration) {
            return Ok(duration);
        }
        let (low, high) = (duration_text(low), duration_text(high));
        Err(ValueError::new(format!(
            "this duration is not between {low} and {high}"
        )))
    })
    .shown(|duration| ExampleValue::Text(duration_text(*duration)))
}

/// A size in bytes in the form `"64KiB"`; zero needs no unit.
pub(in crate::config) fn size() -> SettingType<u64> {
    size_between(0, u64::MAX)
}

/// A size within bounds, in bytes.
pub(in crate::config) fn size_between(low: u64, high: u64) -> SettingType<u64> {
    let parse = move |value: &DeValue<'_>| {
        let bytes = parse_size(value)?;
        if (low..=high).contains(&bytes) {
            return Ok(bytes);
        }
        Err(ValueError::new(format!(
            "this size is not between {low} and {high} bytes"
        )))
    };
    SettingType::new(ValueSchema::Size { low, high }, parse)
        .shown(|bytes| ExampleValue::Text(show_size(*bytes)))
}

/// Splits `5/min`, or `5r/s` in nginx's syntax, into number and period. `None` if it is not a rate.
pub(in crate::config) fn rate(written: &str) -> Option<(&str, String)> {
    let (number, period) = written.split_once('/')?;
    let (digits, what) = split(number.trim());
    let (times, unit) = split(period.trim());
    let counted = ["", "r", "req", "request", "requests"].contains(&what.trim());
    if digits.is_empty() || !counted {
        return None;
    }
    let times = if times.is_empty() { "1" } else { times };
    Some((
        digits,
        format!("{times}{}", canonical_unit(unit, &DURATIONS)?),
    ))
}

fn durations(
    seconds: bool,
    parse: impl Fn(&DeValue<'_>) -> Parsed<Duration> + 'static,
) -> SettingType<Duration> {
    let shape = ValueSchema::Duration {
        low: Duration::ZERO,
        high: Duration::MAX,
        seconds,
    };
    SettingType::new(shape, parse).shown(|duration| ExampleValue::Text(duration_text(*duration)))
}

fn parse_duration(value: &DeValue<'_>) -> Parsed<Duration> {
    let Some(written) = value.as_str() else {
        return Err(kind("a duration", value).help(DURATION_HELP));
    };
    scaled(written, &DURATIONS)
        .map(Duration::from_millis)
        .ok_or_else(|| refuse(written, "a duration", &DURATIONS).help(DURATION_HELP))
}

fn parse_size(value: &DeValue<'_>) -> Parsed<u64> {
    let Some(written) = value.as_str() else {
        return Err(kind("a size", value).help(SIZE_HELP));
    };
    if written == "0" {
        return Ok(0);
    }
    scaled(written, &SIZES).ok_or_else(|| refuse(written, "a size", &SIZES).help(SIZE_HELP))
}

/// Renders a duration as a user would write it.
pub(in crate::config) fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    in_units(millis, &DURATIONS).unwrap_or("0s".to_owned())
}

/// Renders a size as a user would write it.
fn show_size(bytes: u64) -> String {
    in_units(bytes, &SIZES).unwrap_or("0".to_owned())
}

/// Uses the largest unit that leaves a whole number. `None` for zero.
fn in_units(number: u64, units: &[(&str, u64)]) -> Option<String> {
    let mut units = units.iter().rev();
    let fits = units.find(|(_, scale)| number > 0 && number.is_multiple_of(*scale));
    fits.map(|(unit, scale)| format!("{}{unit}", number / scale))
}

fn scaled(written: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = split(written);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*scale)
}

fn refuse(written: &str, what: &str, units: &[(&str, u64)]) -> ValueError {
    let (digits, unit) = split(written);
    let is_not = format!("`{written}` is not {what}");
    if digits.is_empty() {
        return ValueError::new(is_not);
    }
    if unit.is_empty() {
        return ValueError::new(format!("`{written}` has no unit"));
    }
    if units.iter().any(|(name, _)| *name == unit) {
        return ValueError::new(format!("`{written}` is too large"));
    }
    match canonical_unit(unit, units) {
        Some(name) => ValueError::new(format!("{is_not}; did you mean `{digits}{name}`?")),
        None => ValueError::new(is_not),
    }
}

/// Returns the unit for another spelling of it.
fn canonical_unit<'a>(unit: &str, units: &[(&'a str, u64)]) -> Option<&'a str> {
    let lower = unit.trim().to_ascii_lowercase();
    let word = WORDS.iter().find(|(words, _)| words.contains(&&*lower));
    let lower = word.map_or(&*lower, |(_, name)| name);
    let mut names = units.iter().map(|(name, _)| *name);
    names.find(|name| name.eq_ignore_ascii_case(lower))
}

fn split(written: &str) -> (&str, &str) {
    let end = written.bytes().take_while(u8::is_ascii_digit).count();
    written.split_at_checked(end).unwrap_or((written, ""))
}
