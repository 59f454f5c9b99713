//! `sliding_window` with `slices = N`: a counter for each N-th of a period.
//!
//! The window that ends now covers the elapsed part of the newest slice, the N − 1 whole slices
//! before it, and a part of one more, which is weighted like the older window of `sliding_window`;
//! N = 1 is equivalent to it. Slices are aligned to the Unix epoch: slice `i` begins at
//! `i × period / N`, which need not be a whole number of microseconds. All arithmetic is exact.

use super::math::ratio_up;
use super::reading::until;
use super::sliding_window::{WeightedCount, faded_to};
use super::{Algorithm, CounterReading, Limiter, ShareCounts, was_set};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The number of slices into which a `sliding_log` is converted when there is no memory for it.
pub const SLICES_OF_A_LOG: u16 = 60;

/// The counts of the last N + 1 slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubWindows {
    /// A ring buffer: the oldest slice follows the newest.
    counts: Box<[u32]>,
    /// The position of the newest slice.
    newest: usize,
    /// The newest slice's number since the epoch.
    index: u64,
    /// The sum of the counts.
    total: u64,
}

/// A point in time, relative to the newest slice.
#[derive(Clone, Copy)]
struct Moment {
    /// The period in microseconds, never zero.
    period: u64,
    /// The number of slices per period, never zero.
    slices: u64,
    /// The number of the slice that contains this time.
    index: u64,
    /// The elapsed part of that slice, in `slices`-ths of a microsecond; less than `period`.
    passed: u64,
    /// The number of slices by which the newest is ahead: not zero only if the clock went back.
    behind: u64,
}

// === impl SubWindows ===

impl SubWindows {
    /// Empty sub-windows, as many as `limiter` has.
    pub fn new(limiter: &Limiter) -> Self {
        let slices = match limiter.algorithm {
            Algorithm::SlidingLog => SLICES_OF_A_LOG,
            _ => limiter.slices.max(1),
        };
        Self {
            counts: vec![0; usize::from(slices) + 1].into(),
            newest: 0,
            index: 0,
            total: 0,
        }
    }

    /// Charges `cost` if it fits.
    pub fn admit(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        let moment = self.advance_to(limiter, now);
        let fits = self.fits(limiter, moment, cost);
        if fits {
            self.add(cost);
        }
        self.reading(limiter, moment, fits, cost)
    }

    /// Charges `cost`, even above the limit.
    pub fn charge(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        let moment = self.advance_to(limiter, now);
        let fits = self.fits(limiter, moment, cost);
        self.add(cost);
        self.reading(limiter, moment, fits, cost)
    }

    /// Returns what [`SubWindows::admit`] would return, and charges nothing.
    pub fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        let moment = self.advance_to(limiter, now);
        self.reading(limiter, moment, self.fits(limiter, moment, cost), cost)
    }

    /// The weighted count at `now`.
    pub fn estimate(&mut self, limiter: &Limiter, now: Timestamp) -> WeightedCount {
        let moment = self.advance_to(limiter, now);
        let oldest = u128::from(self.count(self.slices()));
        let faded = oldest * u128::from(moment.into_newest());
        WeightedCount {
            numerator: u128::from(self.total) * u128::from(moment.period) - faded,
            denominator: moment.period,
        }
    }

    /// The heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    /// The start and the count of each slice, oldest first. Charging them to empty sub-windows
    /// restores the counts.
    pub fn entries(&self, limiter: &Limiter) -> impl Iterator<Item = (Timestamp, u32)> {
        let (period, slices) = (limiter.micros(), self.slices());
        let begins = move |index| Timestamp::from_micros(ratio_up(index, period, slices));
        (0..=slices).rev().filter_map(move |age| {
            let index = self.index.checked_sub(age)?;
            Some((begins(index), self.count(age))).filter(|(_, count)| *count > 0)
        })
    }

    /// The number of the newest slice since the epoch and all counts, oldest first: the complete
    /// state.
    pub fn saved(&self) -> (u64, Vec<u32>) {
        let counts = (0..=self.slices()).rev().map(|age| self.count(age));
        (self.index, counts.collect())
    }

    /// Restores the state from [`SubWindows::saved`].
    pub fn restored(index: u64, counts: Vec<u32>) -> Self {
        Self {
            newest: counts.len().saturating_sub(1),
            index,
            total: counts.iter().copied().map(u64::from).sum(),
            counts: counts.into(),
        }
    }

    /// The number of slices per period.
    fn slices(&self) -> u64 {
        self.counts.len().saturating_sub(1).max(1) as u64
    }

    /// Drops the slices that have left the window by `now`. If the clock went back behind the
    /// newest slice, the start of that slice is used instead; if the clock was set back, the newest
    /// slice becomes that of `now`.
    fn advance_to(&mut self, limiter: &Limiter, now: Timestamp) -> Moment {
        let moment = Moment::of(limiter, self.slices(), now);
        if self.total == 0 {
            self.index = moment.index;
            return moment;
        }
        let turns = moment.index.wrapping_sub(self.index) as i64;
        match u64::try_from(turns) {
            Ok(0) => moment,
            Ok(turns) => {
                self.advance(turns);
                moment
            }
            Err(_) => self.rebase(moment, turns.unsigned_abs()),
        }
    }

    fn advance(&mut self, turns: u64) {
        self.index = self.index.wrapping_add(turns);
        for _ in 0..turns.min(self.counts.len() as u64) {
            self.newest += 1;
            if self.newest == self.counts.len() {
                self.newest = 0;
            }
            if let Some(count) = self.counts.get_mut(self.newest) {
                self.total -= u64::from(std::mem::take(count));
            }
        }
    }

    #[cold]
    fn rebase(&mut self, moment: Moment, behind: u64) -> Moment {
        let back = Moment { behind, ..moment };
        if was_set(back.until(0, 0), moment.period) {
            self.index = moment.index;
            return moment;
        }
        back
    }

    fn add(&mut self, cost: u64) {
        let Some(count) = self.counts.get_mut(self.newest) else {
            return;
        };
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        let sum = count.saturating_add(cost);
        self.total += u64::from(sum - *count);
        *count = sum;
    }

    /// The count of the slice that is `age` slices older than the newest, at most N.
    fn count(&self, age: u64) -> u32 {
        let (age, length) = (age as usize, self.counts.len());
        let place = self.newest.checked_sub(age);
        let place = place.unwrap_or_else(|| (self.newest + length).saturating_sub(age));
        self.counts.get(place).copied().unwrap_or(0)
    }

    /// The weighted count, rounded up.
    fn used(&self, moment: Moment) -> u64 {
        let oldest = u64::from(self.count(self.slices()));
        let left = moment.period - moment.into_newest();
        self.total - oldest + ratio_up(oldest, left, moment.period)
    }

    fn fits(&self, limiter: &Limiter, moment: Moment, cost: u64) -> bool {
        self.used(moment).saturating_add(cost) <= limiter.capped()
    }

    fn reading(&self, limiter: &Limiter, moment: Moment, fits: bool, cost: u64) -> CounterReading {
        let retry = || self.retry_after(moment, limiter.capped().checked_sub(cost)?);
        CounterReading {
            fits,
            remaining: limiter.capped().saturating_sub(self.used(moment)),
            reset: self.reset_after(moment),
            delay: if fits { 0 } else { until(retry()) },
            share: ShareCounts::default(),
        }
    }

    /// The time until the youngest slice with a count has left the window.
    fn reset_after(&self, moment: Moment) -> u64 {
        let youngest = (0..=self.slices()).find(|age| self.count(*age) > 0);
        youngest.map_or(0, |age| moment.until(self.slices() + 1 - age, 0))
    }

    /// The time until at most `room` units are counted: drops slices until the whole slices in the
    /// window fit, then waits until the oldest one weighs little enough.
    #[cold]
    fn retry_after(&self, moment: Moment, room: u64) -> Option<u64> {
        let mut whole = self.total;
        (0..=self.slices()).find_map(|turns| {
            let oldest = self.count(self.slices() - turns);
            whole -= u64::from(oldest);
            let room = room.checked_sub(whole)?;
            Some(moment.until(turns, faded_to(oldest, room, moment.period)))
        })
    }
}

// === impl Moment ===

impl Moment {
    fn of(limiter: &Limiter, slices: u64, now: Timestamp) -> Self {
        let period = limiter.micros();
        let (window, elapsed) = (now.as_micros() / period, now.as_micros() % period);
        let (slice, passed) = match elapsed.checked_mul(slices) {
            Some(parts) => (parts / period, parts % period),
            None => {
                let parts = u128::from(elapsed) * u128::from(slices);
                let period = u128::from(period);
                ((parts / period) as u64, (parts % period) as u64)
            }
        };
        Self {
            period,
            slices,
            index: window.wrapping_mul(slices).wrapping_add(slice),
            passed,
            behind: 0,
        }
    }

    /// The elapsed part of the newest slice.
    fn into_newest(self) -> u64 {
        if self.behind == 0 { self.passed } else { 0 }
    }

    /// Microseconds, rounded up, until `turns` more slices have begun and `into` of the last one
    /// has passed.
    fn until(self, turns: u64, into: u64) -> u64 {
        let turns = turns.saturating_add(self.behind);
        let whole = turns.checked_mul(self.period);
        if let Some(parts) = whole.and_then(|whole| whole.checked_add(into)) {
            return parts.saturating_sub(self.passed).div_ceil(self.slices);
        }
        let parts = u128::from(turns) * u128::from(self.period) + u128::from(into);
        let wait = (parts - u128::from(self.passed)).div_ceil(u128::from(self.slices));
        u64::try_from(wait).unwrap_or(u64::MAX)
    }
}
