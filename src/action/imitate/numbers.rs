//! Numbers that vary: a bounded sample, from which others like them are drawn.

use super::dice::Dice;
use crate::clock::Timestamp;

/// How many are remembered.
const KEPT: usize = 16;
/// How far from now a number may be and still tell the time: a day.
const NEAR: u64 = 86_400;

/// Numbers that were seen.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    seen: Vec<i64>,
    /// They tell the time: units a second. What is kept is then how far from now they were.
    clock: Option<u64>,
}

// === impl Numbers ===

impl Numbers {
    pub(super) const NONE: Self = Self {
        seen: Vec::new(),
        clock: None,
    };

    pub(super) fn learn(&mut self, number: i64, now: Timestamp, dice: &mut Dice) {
        if self.seen.is_empty() {
            self.clock = clock(number, now);
        }
        let mut distance = number;
        if let Some(units) = self.clock {
            match clock(number, now) {
                same if same == Some(units) => distance = number - at(now, units),
                _ => *self = Self::default(),
            }
        }
        self.keep(distance, dice);
    }

    /// A number that comes with no clock of its own: it is kept as it is.
    pub(super) fn keep(&mut self, number: i64, dice: &mut Dice) {
        if self.seen.len() < KEPT {
            self.seen.push(number);
        } else if let Some(place) = self.seen.get_mut(dice.below(KEPT)) {
            *place = number;
        }
    }

    /// A number between two that were seen.
    pub(super) fn draw(&self, now: Timestamp, dice: &mut Dice) -> i64 {
        let mut sorted = self.seen.clone();
        sorted.sort_unstable();
        let place = dice.below(sorted.len());
        let one = sorted.get(place).copied().unwrap_or_default();
        let next = sorted.get(place + 1).copied().unwrap_or(one);
        let between = next.saturating_sub(one) as f64 * dice.share();
        let drawn = one.saturating_add(between as i64);
        match self.clock {
            Some(units) => at(now, units).saturating_add(drawn),
            None => drawn,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.capacity() * size_of::<i64>()
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
