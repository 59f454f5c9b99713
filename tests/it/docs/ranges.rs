//! The bounds of numbers, durations and sizes: the tables of keys say what the code accepts.

use std::time::Duration;

use lockgate::config::schema::{self, ValueSchema};

use super::pages::key_rows;
use super::shapes::each_value;

#[test]
fn the_tables_state_every_range() {
    let rows = key_rows();
    let mut found = Vec::new();
    each_value(&schema::root(), &mut |path, shape| {
        found.extend(range(shape).map(|range| (path.to_owned(), range)));
    });
    assert!(found.len() > 40, "only {} keys have bounds", found.len());
    let mut missing = Vec::new();
    for (path, range) in found {
        let row = rows.iter().find(|row| row.path() == path);
        if !row.is_some_and(|row| row.meaning.contains(&range)) {
            missing.push(format!("{path}: {range}"));
        }
    }
    assert!(
        missing.is_empty(),
        "docs/configuration.md does not say\n{}",
        missing.join("\n")
    );
}

/// The bounds as the tables write them; what has none but those of its type has none.
fn range(shape: &ValueSchema) -> Option<String> {
    match shape {
        ValueSchema::Integer { low, high } if (*low, *high) != (i64::MIN, i64::MAX) => {
            Some(format!("{low} to {}", with_commas(*high)))
        }
        ValueSchema::Number { low, high } => Some(format!("{low:?} to {high:?}")),
        ValueSchema::Duration { low, high, .. } if *high < Duration::MAX => {
            Some(format!("`\"{}\"` to `\"{}\"`", time(*low), time(*high)))
        }
        ValueSchema::Size { low, high } if *high < u64::MAX => {
            Some(format!("`\"{}\"` to `\"{}\"`", size(*low), size(*high)))
        }
        _ => None,
    }
}

fn with_commas(number: i64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len() > 4 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

fn time(duration: Duration) -> String {
    let units = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    in_units(duration.as_millis() as u64, &units).unwrap_or("0s".to_owned())
}

fn size(bytes: u64) -> String {
    let units = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("B", 1),
    ];
    in_units(bytes, &units).unwrap_or("0".to_owned())
}

fn in_units(number: u64, units: &[(&str, u64)]) -> Option<String> {
    let (unit, scale) = units
        .iter()
        .find(|(_, scale)| number >= *scale && number.is_multiple_of(*scale))?;
    Some(format!("{}{unit}", number / scale))
}
