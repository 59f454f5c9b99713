//! Numbers that vary: a bounded sample, from which others like them are drawn.

use std::time::Duration;

use super::When;
use super::dice::Dice;
use crate::clock::Timestamp;

/// How many are remembered.
const KEPT: usize = 64;
/// How far from now a number may be and still tell the time: a day.
const NEAR: u64 = 86_400;
/// How much oftener a longer time must go with a higher number than with a lower one, as a share of
/// all pairs, for numbers to tell of that time.
const RELATED: f64 = 0.5;
/// So many that took about as long tell how far numbers are spread.
const ABOUT: usize = 31;
/// How far a slope may be from a power of ten, as a share of it, to be meant as one.
const ALIKE: f64 = 0.05;
/// How many standard deviations lie between the middle and a quarter of what is spread as errors are.
const QUARTER: f64 = 0.6745;

/// Numbers that were seen.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Each with the time that its answer took, in microseconds.
    seen: Vec<(i64, u32)>,
    /// The oldest.
    next: usize,
    /// They tell the time: units a second. What is kept is then how far from now they were.
    clock: Option<u64>,
}

// === impl Numbers ===

impl Numbers {
    pub(super) const NONE: Self = Self {
        seen: Vec::new(),
        next: 0,
        clock: None,
    };

    pub(super) fn learn(&mut self, number: i64, when: When) {
        if self.seen.is_empty() {
            self.clock = clock(number, when.now);
        }
        let mut distance = number;
        if let Some(units) = self.clock {
            match clock(number, when.now) {
                same if same == Some(units) => distance = number - at(when.now, units),
                _ => *self = Self::default(),
            }
        }
        self.keep(distance, when);
    }

    /// A number that comes with no clock of its own: it is kept as it is.
    pub(super) fn keep(&mut self, number: i64, when: When) {
        let took = u32::try_from(when.head.as_micros()).unwrap_or(u32::MAX);
        if self.seen.len() < KEPT {
            self.seen.push((number, took));
        } else if let Some(oldest) = self.seen.get_mut(self.next) {
            *oldest = (number, took);
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// A number that an answer which takes so long could have.
    pub(super) fn draw(&self, when: When, dice: &mut Dice) -> i64 {
        let drawn = match slope(&self.seen) {
            Some(slope) => self.near(slope, when, dice),
            None => self.between(dice),
        };
        match self.clock {
            Some(units) => at(when.now, units).saturating_add(drawn),
            None => drawn,
        }
    }

    /// A number between two that were seen.
    fn between(&self, dice: &mut Dice) -> i64 {
        let mut sorted: Vec<i64> = self.seen.iter().map(|(number, _)| *number).collect();
        sorted.sort_unstable();
        let place = dice.below(sorted.len());
        let one = sorted.get(place).copied().unwrap_or_default();
        let next = sorted.get(place + 1).copied().unwrap_or(one);
        let between = next.saturating_sub(one) as f64 * dice.share();
        one.saturating_add(between as i64)
    }

    /// A number like those of the answers that took about as long.
    fn near(&self, slope: f64, when: When, dice: &mut Dice) -> i64 {
        let took = micros(when.head);
        let mut nearest = self.seen.clone();
        nearest.sort_unstable_by_key(|(_, other)| (f64::from(*other) - took).abs() as u64);
        let beside = |(number, other): &(i64, u32)| *number as f64 - slope * f64::from(*other);
        let beside: Vec<f64> = nearest.iter().take(ABOUT).map(beside).collect();
        let one = beside.get(dice.below(beside.len().min(3)));
        let one = one.copied().unwrap_or_default();
        let blur = slope * micros(when.spread);
        (slope * took + narrowed(one, beside, blur)).round() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.capacity() * size_of::<(i64, u32)>()
    }
}

/// How much numbers grow with the time that their answers took, a microsecond; `None`: they do not.
/// The middle of the slopes from each to the one half of all further on (Theil), for which a few odd
/// ones do no harm.
fn slope(seen: &[(i64, u32)]) -> Option<f64> {
    let mut sorted = seen.to_vec();
    sorted.sort_unstable_by_key(|(_, took)| *took);
    let later = sorted.iter().skip(sorted.len() / 2);
    let slope = |((number, took), (other, later)): (&(i64, u32), &(i64, u32))| {
        let time = f64::from(*later) - f64::from(*took);
        (time > 0.0).then(|| other.saturating_sub(*number) as f64 / time)
    };
    let mut slopes: Vec<f64> = sorted.iter().zip(later).filter_map(slope).collect();
    let count = |sign: fn(&&f64) -> bool| slopes.iter().filter(sign).count() as f64;
    let related = count(|slope| **slope > 0.0) - count(|slope| **slope < 0.0);
    if slopes.is_empty() || related < RELATED * slopes.len() as f64 {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().map(decimal)
}

/// `one` of `all`, nearer to their middle by so much that all of them, with an error of `blur` beside
/// each, are spread as they were without: what is not known of a time would tell itself otherwise.
fn narrowed(one: f64, mut all: Vec<f64>, blur: f64) -> f64 {
    if blur <= 0.0 {
        return one;
    }
    all.sort_unstable_by(f64::total_cmp);
    let part = |of: usize| all.get(all.len() * of / 4).copied().unwrap_or(one);
    let middle = part(2);
    // Times begin sharply and end slowly: each side has a spread of its own.
    let side = if one < middle { part(1) } else { part(3) };
    let spread = (side - middle).abs() / QUARTER;
    let left = (1.0 - (blur / spread).powi(2)).max(0.0).sqrt();
    middle + left * (one - middle)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The power of ten that `slope` is all but equal to: a time is told in seconds, or in a thousandth
/// or a millionth of one, and the rest is the error of a small sample.
fn decimal(slope: f64) -> f64 {
    let round = 10f64.powf(slope.log10().round());
    match (slope / round - 1.0).abs() < ALIKE {
        true => round,
        false => slope,
    }
}

/// The units in which `number` tells the time.
fn clock(number: i64, now: Timestamp) -> Option<u64> {
    let near = |units: &u64| {
        let reach = units.saturating_mul(NEAR);
        number.abs_diff(at(now, *units)) <= reach && now.as_secs() > 10 * NEAR
    };
    [1, 1_000, 1_000_000, 1_000_000_000].into_iter().find(near)
}

fn at(now: Timestamp, units: u64) -> i64 {
    let ticks = u128::from(now.as_nanos()) * u128::from(units) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_runtime_stays_near_its_answer_far_from_what_was_seen() {
        let (mut numbers, mut dice) = (Numbers::NONE, Dice::new());
        let now = Timestamp::from_nanos(0);
        let after = |micros| When::at(now, Duration::from_micros(micros));
        for at in 0..KEPT as u64 {
            let took = 2_000 + 20 * at;
            numbers.keep(took as i64 - 100 - (at % 7) as i64, after(took));
        }
        for took in [500, 2_300, 40_000] {
            let drawn = numbers.draw(after(took), &mut dice);
            assert!((100..107).contains(&(took as i64 - drawn)), "{drawn}");
        }
    }

    #[test]
    fn what_is_not_known_of_a_time_does_not_spread_a_runtime() {
        let (mut numbers, mut dice) = (Numbers::NONE, Dice::new());
        let now = Timestamp::from_nanos(0);
        let after = |took, spread| When {
            spread: Duration::from_micros(spread),
            ..When::at(now, Duration::from_micros(took))
        };
        for at in 0..KEPT as u64 {
            let took = 2_000 + 20 * at;
            numbers.keep(took as i64 - 100 - (at * 7 % 50) as i64, after(took, 0));
        }
        let mut width = |spread| {
            let mut beside: Vec<i64> = (0..2_000)
                .map(|at| 2_000 + at % 1_000)
                .map(|took| took as i64 - numbers.draw(after(took, spread), &mut dice))
                .collect();
            beside.sort_unstable();
            beside[1_800] - beside[200]
        };
        let (sure, less, unsure) = (width(0), width(12), width(60));
        assert!((36..=44).contains(&sure), "{sure}");
        assert!((22..=36).contains(&less), "{less}");
        assert!(unsure < 15, "{unsure}");
    }

    #[test]
    fn only_a_slope_near_a_power_of_ten_is_one() {
        for (slope, meant) in [(0.98, 1.0), (0.00103, 0.001), (0.5, 0.5), (1.2, 1.2)] {
            assert!((decimal(slope) - meant).abs() < 1e-12);
        }
    }
}
