//! `sliding_log`: the time of every unit. Counts the units in (now − period, now] exactly.
//!
//! A log takes 12 bytes for every time at which units were counted. It keeps only units that can
//! matter: of those charged above the limit, the newest ones, one more than the limit. The store
//! limits the memory of all logs together and falls back to [`UnitLog::to_slices`].

use std::collections::VecDeque;

use super::reading::until;
use super::slices::SubWindows;
use super::{CounterReading, Limiter, ShareCounts, was_set};
use crate::clock::Timestamp;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// The units of the last period and their times.
#[derive(Clone, Debug, Default)]
pub struct UnitLog {
    /// Oldest first.
    entries: VecDeque<LogEntry>,
    /// The sum of their units.
    total: u64,
    /// The latest time of an operation: the log is complete for the period before it.
    at: u64,
}

/// Units that were counted at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogEntry {
    /// Microseconds since the epoch, in two halves, so that an entry takes 12 bytes instead of 16.
    at: [u32; 2],
    units: u32,
}

// === impl UnitLog ===

impl UnitLog {
    /// Charges `cost` if it fits.
    pub fn admit(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        self.advance(limiter, now);
        let fits = self.fits(limiter, cost);
        if fits {
            self.add(limiter, cost);
        }
        self.reading(limiter, now, fits, cost)
    }

    /// Charges `cost`, even above the limit.
    pub fn charge(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        self.advance(limiter, now);
        let fits = self.fits(limiter, cost);
        self.add(limiter, cost);
        self.reading(limiter, now, fits, cost)
    }

    /// Returns what [`UnitLog::admit`] would return, and charges nothing.
    pub fn peek(&mut self, limiter: &Limiter, now: Timestamp, cost: u64) -> CounterReading {
        self.advance(limiter, now);
        self.reading(limiter, now, self.fits(limiter, cost), cost)
    }

    /// The heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<LogEntry>()
    }

    /// Converts the log to sub-windows, with the precision that they have.
    pub fn to_slices(&self, limiter: &Limiter, now: Timestamp) -> SubWindows {
        let mut slices = SubWindows::new(limiter);
        for (at, units) in self.entries() {
            slices.charge(limiter, at, u64::from(units));
        }
        slices.peek(limiter, now, 0);
        slices
    }

    /// The times and units, oldest first. Charging them to an empty log restores it.
    pub fn entries(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        let entries = self.entries.iter();
        entries.map(|entry| (Timestamp::from_micros(entry.at()), entry.units))
    }

    /// The latest time of an operation.
    pub fn latest_time(&self) -> Timestamp {
        Timestamp::from_micros(self.at)
    }

    /// Restores a log from [`UnitLog::entries`] and [`UnitLog::latest_time`]. Entries that are out
    /// of order move to the nearest valid time.
    pub fn restored(asked: Timestamp, entries: &[(Timestamp, u32)]) -> Self {
        let mut log = Self::default();
        for (at, units) in entries {
            log.at = log.at.max(at.as_micros()).min(asked.as_micros());
            log.push(u64::from(*units));
        }
        log.at = asked.as_micros();
        log
    }

    /// Drops the entries that have left the window by `now`. If the clock went back, the latest
    /// time of an operation is used; if the clock was set back, all entries move with it.
    fn advance(&mut self, limiter: &Limiter, now: Timestamp) {
        let (now, period) = (now.as_micros(), limiter.micros());
        if now >= self.at || self.entries.is_empty() {
            self.at = now;
            self.drop_before(period);
            self.shrink();
        } else if was_set(self.at - now, period) {
            self.move_back(self.at - now);
        }
    }

    fn shrink(&mut self) {
        if self.entries.capacity() > 8 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    fn drop_before(&mut self, period: u64) {
        while let Some(oldest) = self.entries.front() {
            if self.at.saturating_sub(oldest.at()) < period {
                break;
            }
            self.total -= u64::from(oldest.units);
            self.entries.pop_front();
        }
    }

    #[cold]
    fn move_back(&mut self, by: u64) {
        self.at -= by;
        for entry in &mut self.entries {
            *entry = LogEntry::new(entry.at().saturating_sub(by), entry.units);
        }
    }

    fn fits(&self, limiter: &Limiter, cost: u64) -> bool {
        self.total.saturating_add(cost) <= limiter.capped()
    }

    /// Counts `cost` units now, and drops old units that no longer matter: while the newest
    /// `limit + 1` units are in the window nothing fits, and when one of them leaves, all older
    /// units have left.
    fn add(&mut self, limiter: &Limiter, cost: u64) {
        let most = limiter.capped() + 1;
        self.push(cost.min(most));
        while let Some(oldest) = self.entries.front_mut() {
            let surplus = self.total.saturating_sub(most);
            if surplus < u64::from(oldest.units) {
                oldest.units -= surplus as u32;
                self.total -= surplus;
                break;
            }
            self.total -= u64::from(oldest.units);
            self.entries.pop_front();
        }
    }

    fn push(&mut self, mut units: u64) {
        self.total += units;
        while units > 0 {
            match self.entries.back_mut() {
                Some(newest) if newest.at() == self.at && newest.units < u32::MAX => {
                    let more = u32::try_from(units).unwrap_or(u32::MAX);
                    let more = more.min(u32::MAX - newest.units);
                    newest.units += more;
                    units -= u64::from(more);
                }
                _ => self.entries.push_back(LogEntry::new(self.at, 0)),
            }
        }
    }

    fn reading(&self, limiter: &Limiter, now: Timestamp, fits: bool, cost: u64) -> CounterReading {
        let leaves = |entry: &LogEntry| {
            let end = entry.at().saturating_add(limiter.micros());
            end.saturating_sub(now.as_micros())
        };
        CounterReading {
            fits,
            remaining: limiter.capped().saturating_sub(self.total),
            reset: self.entries.back().map_or(0, leaves),
            delay: if fits {
                0
            } else {
                until(self.last_blocking_entry(limiter, cost).map(leaves))
            },
            share: ShareCounts::default(),
        }
    }

    /// The entry that has to leave before `cost` fits. `None` if it never fits.
    #[cold]
    fn last_blocking_entry(&self, limiter: &Limiter, cost: u64) -> Option<&LogEntry> {
        let room = limiter.capped().checked_sub(cost)?;
        let mut left = self.total;
        self.entries.iter().find(|entry| {
            left -= u64::from(entry.units);
            left <= room
        })
    }
}

// === impl LogEntry ===

impl LogEntry {
    fn new(at: u64, units: u32) -> Self {
        Self {
            at: [at as u32, (at >> 32) as u32],
            units,
        }
    }

    fn at(&self) -> u64 {
        let [low, high] = self.at;
        u64::from(high) << 32 | u64::from(low)
    }
}
