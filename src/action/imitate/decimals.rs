//! Numbers with a point, as times are told.

use super::When;
use super::dice::Dice;
use super::numbers::Numbers;

/// Digits after the point that are kept.
const PLACES: usize = 9;
/// Digits before it.
const WHOLE: usize = 9;
const SCALE: i64 = 1_000_000_000;
/// What is joined to a number, as in `12.5ms`. Each has a letter that no hexadecimal number has.
const UNITS: [&str; 10] = ["s", "ms", "us", "ns", "sec", "kb", "kB", "KB", "mb", "MB"];

/// A number with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// In billionths.
    value: i64,
    /// Digits after the point.
    places: usize,
}

/// Such numbers that were seen at one place of a value.
#[derive(Debug, Default)]
pub(super) struct Decimals {
    values: Numbers,
    places: usize,
    /// Not all had as many digits: zeros at the end are not written.
    varies: bool,
    seen: bool,
}

// === impl Decimal ===

impl Decimal {
    /// The one at the beginning of `text`, with its length. A version or an address is none.
    pub(super) fn read(text: &str) -> Option<(usize, Self)> {
        let whole = digits(text);
        let after = text.get(whole..)?.strip_prefix('.')?;
        let places = digits(after);
        let rest = after.get(places..)?;
        let ends = !continues(rest) && !rest.starts_with('.');
        if !(ends || unit(rest).is_some())
            || !(1..=WHOLE).contains(&whole)
            || !(1..=PLACES).contains(&places)
        {
            return None;
        }
        let mut value = text.get(..whole)?.to_owned() + after.get(..places)?;
        value.extend((places..PLACES).map(|_| '0'));
        let value = value.parse().ok()?;
        Some((whole + 1 + places, Self { value, places }))
    }

    /// The same number without a point.
    pub(super) fn whole(text: &str) -> Option<Self> {
        let is_number = digits(text) == text.len() && (1..=WHOLE).contains(&text.len());
        let value = text.parse::<i64>().ok().filter(|_| is_number)?;
        Some(Self {
            value: value.saturating_mul(SCALE),
            places: 0,
        })
    }
}

// === impl Decimals ===

impl Decimals {
    pub(super) fn learn(&mut self, decimal: Decimal, when: When) {
        self.varies |= self.seen && self.places != decimal.places;
        self.places = self.places.max(decimal.places);
        self.seen = true;
        self.values.keep(decimal.value, when);
    }

    pub(super) fn make(&self, out: &mut String, when: When, dice: &mut Dice) {
        let value = self.values.draw(when, dice).max(0);
        let mut digits = format!("{}.{:09}", value / SCALE, value % SCALE);
        digits.truncate(digits.len() - PLACES.saturating_sub(self.places));
        let written = match self.varies {
            true => digits.trim_end_matches('0').trim_end_matches('.'),
            false => &digits,
        };
        out.push_str(written);
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.values.bytes()
    }
}

/// How long the number is at the beginning of `text` to which a unit is joined.
pub(super) fn with_unit(text: &str) -> Option<usize> {
    let length = digits(text);
    let measured = (1..=WHOLE).contains(&length) && unit(text.get(length..)?).is_some();
    measured.then_some(length)
}

/// The unit at the beginning of `text`, if that is a whole word.
pub(super) fn unit(text: &str) -> Option<&'static str> {
    let mut units = UNITS.iter().copied();
    units.find(|unit| text.strip_prefix(unit).is_some_and(|rest| !continues(rest)))
}

/// Whether a word goes on.
fn continues(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn digits(text: &str) -> usize {
    let other = |byte: u8| !byte.is_ascii_digit();
    text.bytes().position(other).unwrap_or(text.len())
}
