//! Runs of letters and digits that vary between responses: their letters and lengths, or their numbers. A
//! bounded sample of numbers is kept, from which similar ones are drawn.

use std::time::Duration;

use super::{Dice, SendSchedule};
use crate::clock::Timestamp;

/// The number of leading characters that are learned individually, because versions and types are there.
const LEAD: usize = 2;
/// The maximum length of a run that is read as an integer.
const INTEGER_DIGITS: usize = 18;
/// The maximum number of digits before and after the point of a decimal.
const DECIMAL_DIGITS: usize = 9;
/// Units that follow a number directly, as in `12.5ms`. Each has a letter that is no hexadecimal digit.
const UNITS: [&str; 10] = ["s", "ms", "us", "ns", "sec", "kb", "kB", "KB", "mb", "MB"];
/// The number of kept numbers.
const KEPT: usize = 64;
/// The maximum distance from now, in seconds, of a number that is a timestamp: a day.
const NEAR: u64 = 86_400;
/// Numbers depend on the duration of their responses if a longer duration goes with a higher number this much
/// more often than with a lower one, as a share of all pairs.
const RELATED: f64 = 0.5;
/// The maximum distance of a slope from a power of ten, as a share of that power, to be taken for it.
const ALIKE: f64 = 0.05;

/// The runs observed at one position of a value.
#[derive(Debug)]
pub(super) struct RunPattern {
    lead: [u128; LEAD],
    rest: u128,
    shortest: u16,
    longest: u16,
    /// The observed numbers. `None` once a run was not a number.
    numbers: Option<SeenNumbers>,
}

/// Observed numbers.
#[derive(Debug, Default)]
pub(super) struct SeenNumbers {
    /// Each number with the duration of its response, in microseconds.
    seen: Vec<(f64, f64)>,
    /// The index of the oldest number.
    next: usize,
    /// Units per second, if the numbers are timestamps. In this case, their distances from the time of their
    /// responses are kept.
    clock: Option<u64>,
    /// The maximum number of digits after the point.
    places: usize,
    /// Whether numbers have different numbers of digits after the point: trailing zeros are not written.
    places_vary: bool,
}

// === impl RunPattern ===

impl RunPattern {
    /// Learns the common features of `texts`, which are ASCII.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>, when: SendSchedule) -> Self {
        let mut run = Self {
            lead: [0; LEAD],
            rest: 0,
            shortest: u16::MAX,
            longest: 0,
            numbers: Some(SeenNumbers::default()),
        };
        for text in texts {
            run.learn(text, when);
        }
        run
    }

    /// Returns whether `text` fits the position of this run. Only decimals have a point.
    pub(super) fn fits(&self, text: &str) -> bool {
        match &self.numbers {
            Some(numbers) if numbers.places > 0 => parse(text).is_some(),
            Some(_) => true,
            None => !text.contains('.'),
        }
    }

    pub(super) fn learn(&mut self, text: &str, when: SendSchedule) {
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.shortest = self.shortest.min(length);
        self.longest = self.longest.max(length);
        for (position, byte) in text.bytes().enumerate() {
            let letters = self.lead.get_mut(position).unwrap_or(&mut self.rest);
            *letters |= 1u128.checked_shl(u32::from(byte)).unwrap_or(0);
        }
        match (parse(text), &mut self.numbers) {
            (Some((number, places)), Some(numbers)) => numbers.learn(number, places, when),
            _ => self.numbers = None,
        }
    }

    /// Appends a run similar to the observed ones.
    pub(super) fn write(&self, out: &mut String, when: SendSchedule, dice: &mut Dice) {
        if let Some(numbers) = &self.numbers {
            return numbers.write(out, when, dice);
        }
        let spread = usize::from(self.longest.saturating_sub(self.shortest));
        let length = usize::from(self.shortest) + dice.below(spread + 1);
        for position in 0..length {
            let letters = self.lead.get(position).unwrap_or(&self.rest);
            out.push(letter(*letters, dice));
        }
    }
}

/// Draws one of `letters`.
fn letter(letters: u128, dice: &mut Dice) -> char {
    let known = (0..128u8).filter(|byte| letters >> byte & 1 == 1);
    let at = dice.below(letters.count_ones() as usize);
    known.map(char::from).nth(at).unwrap_or('0')
}

// === impl SeenNumbers ===

impl SeenNumbers {
    fn learn(&mut self, number: f64, places: usize, when: SendSchedule) {
        let first = self.seen.is_empty();
        self.places_vary |= !first && self.places != places;
        self.places = self.places.max(places);
        let clock = clock(number, places, when.now);
        if first {
            self.clock = clock;
        } else if self.clock.is_some() && self.clock != clock {
            // The earlier numbers were not timestamps either, but only their distances are known.
            self.seen.clear();
            (self.next, self.clock) = (0, None);
        }
        let origin = self.clock.map_or(0, |units| ticks(when.now, units));
        self.keep(number - origin as f64, when);
    }

    /// Keeps a number unchanged.
    pub(super) fn keep(&mut self, number: f64, when: SendSchedule) {
        let entry = (number, micros(when.head));
        if self.seen.len() < KEPT {
            self.seen.push(entry);
        } else if let Some(oldest) = self.seen.get_mut(self.next) {
            *oldest = entry;
            self.next = (self.next + 1) % KEPT;
        }
    }

    fn write(&self, out: &mut String, when: SendSchedule, dice: &mut Dice) {
        let drawn = self.draw(when, dice);
        let places = self.places;
        let digits = match self.clock {
            Some(units) => ticks(when.now, units)
                .saturating_add(drawn as i64)
                .to_string(),
            None => format!("{:.places$}", drawn.max(0.0)),
        };
        out.push_str(if self.places_vary {
            digits.trim_end_matches('0').trim_end_matches('.')
        } else {
            &digits
        });
    }

    /// Draws a number for a response that takes `when.head`, relative to its clock.
    pub(super) fn draw(&self, when: SendSchedule, dice: &mut Dice) -> f64 {
        match slope(&self.seen) {
            Some(slope) => self.draw_by_slope(slope, micros(when.head), dice),
            None => self.draw_between(dice),
        }
    }

    /// Draws a number between two that were observed.
    fn draw_between(&self, dice: &mut Dice) -> f64 {
        let mut sorted: Vec<f64> = self.seen.iter().map(|(number, _)| *number).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let index = dice.below(sorted.len());
        let one = sorted.get(index).copied().unwrap_or_default();
        let next = sorted.get(index + 1).copied().unwrap_or(one);
        let between = (next - one) * dice.share();
        match self.places {
            0 => one + between.floor(),
            _ => one + between,
        }
    }

    /// Draws a number like that of one of the three responses with the nearest duration.
    fn draw_by_slope(&self, slope: f64, took: f64, dice: &mut Dice) -> f64 {
        let mut nearest = self.seen.clone();
        nearest.sort_unstable_by(|a, b| (a.1 - took).abs().total_cmp(&(b.1 - took).abs()));
        let one = nearest.get(dice.below(nearest.len().min(3)));
        let (number, other) = one.copied().unwrap_or_default();
        let drawn = number + slope * (took - other);
        match self.places {
            0 => drawn.round(),
            _ => drawn,
        }
    }
}

/// Returns how much numbers grow with the duration of their responses, per microsecond. `None` if they do not.
/// It is the median of the slopes between pairs (Theil), which a few outliers do not change.
fn slope(seen: &[(f64, f64)]) -> Option<f64> {
    let mut sorted = seen.to_vec();
    sorted.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let later = sorted.iter().skip(sorted.len() / 2);
    let pairs = sorted.iter().zip(later).filter(|(a, b)| b.1 > a.1);
    let mut slopes: Vec<f64> = pairs.map(|(a, b)| (b.0 - a.0) / (b.1 - a.1)).collect();
    let count = |sign: fn(&&f64) -> bool| slopes.iter().filter(sign).count() as f64;
    let related = count(|slope| **slope > 0.0) - count(|slope| **slope < 0.0);
    if slopes.is_empty() || related < RELATED * slopes.len() as f64 {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().map(decimal)
}

/// Returns the power of ten that `slope` is almost equal to, or `slope`. Durations are written in seconds,
/// milliseconds or microseconds, and the rest is the error of a small sample.
fn decimal(slope: f64) -> f64 {
    let round = 10f64.powf(slope.log10().round());
    if (slope / round - 1.0).abs() < ALIKE {
        round
    } else {
        slope
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the units per second in which `number` is a timestamp near `now`. `None` if there are none.
fn clock(number: f64, places: usize, now: Timestamp) -> Option<u64> {
    let near = |units: &u64| {
        let distance = (number - ticks(now, *units) as f64).abs();
        distance <= (units * NEAR) as f64 && now.as_secs() > 10 * NEAR
    };
    let mut units = [1, 1_000, 1_000_000, 1_000_000_000].into_iter();
    units.find(near).filter(|_| places == 0)
}

fn ticks(now: Timestamp, units: u64) -> i64 {
    let ticks = u128::from(now.as_nanos()) * u128::from(units) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

/// Parses an integer without leading zeros, or a decimal; also returns the number of digits after its point.
fn parse(text: &str) -> Option<(f64, usize)> {
    let is_digits = |part: &str| digits(part) == part.len();
    let (is_number, places) = match text.split_once('.') {
        Some((whole, places)) => (is_digits(whole) && is_digits(places), places.len()),
        None => {
            let leading_zero = text.len() > 1 && text.starts_with('0');
            let short = text.len() <= INTEGER_DIGITS && !leading_zero;
            (is_digits(text) && short, 0)
        }
    };
    let number = text.parse().ok().filter(|_| is_number)?;
    Some((number, places))
}

/// Returns whether two runs may share a position: a decimal only with another number.
pub(super) fn are_alike(one: &str, other: &str) -> bool {
    let are_numbers = parse(one).is_some() && parse(other).is_some();
    are_numbers || !(one.contains('.') || other.contains('.'))
}

/// Returns the length of the number at the start of `text` if it is a decimal or has a unit. `None` for versions
/// and addresses, and for digits that follow a point.
pub(super) fn number_length(text: &str, after_point: bool) -> Option<usize> {
    let whole = digits(text);
    let tail = text.get(whole..)?;
    if !(1..=DECIMAL_DIGITS).contains(&whole) {
        return None;
    }
    if unit(tail).is_some() {
        return Some(whole);
    }
    let fraction = tail.strip_prefix('.').filter(|_| !after_point)?;
    let places = digits(fraction);
    let rest = fraction.get(places..)?;
    let ends = !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '.');
    let is_decimal = (1..=DECIMAL_DIGITS).contains(&places) && (ends || unit(rest).is_some());
    is_decimal.then_some(whole + 1 + places)
}

/// Returns the unit at the start of `text`, if it is a whole word.
pub(super) fn unit(text: &str) -> Option<&'static str> {
    let length = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let word = text.get(..length)?;
    UNITS.iter().copied().find(|unit| *unit == word)
}

fn digits(text: &str) -> usize {
    let other = |byte: u8| !byte.is_ascii_digit();
    text.bytes().position(other).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_runtime_follows_the_response_time_outside_the_learned_range() {
        let (mut numbers, mut dice) = (SeenNumbers::default(), Dice::default());
        let now = Timestamp::from_nanos(0);
        let after = |micros| SendSchedule {
            now,
            head: Duration::from_micros(micros),
        };
        for at in 0..KEPT as u64 {
            let took = 2_000 + 20 * at;
            numbers.keep(took as f64 - 100.0 - (at % 7) as f64, after(took));
        }
        for took in [500, 2_300, 40_000] {
            let drawn = numbers.draw(after(took), &mut dice);
            assert!((100.0..107.0).contains(&(took as f64 - drawn)), "{drawn}");
        }
    }

    #[test]
    fn a_slope_is_rounded_only_to_a_nearby_power_of_ten() {
        for (slope, meant) in [(0.98, 1.0), (0.00103, 0.001), (0.5, 0.5), (1.2, 1.2)] {
            assert!((decimal(slope) - meant).abs() < 1e-12);
        }
    }
}
