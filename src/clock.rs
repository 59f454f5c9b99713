//! Time. The only module that reads it, so that tests, `explain` and `replay` can set it.

mod date;
mod http_date;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use date::Rfc3339;
pub use http_date::HttpDate;

/// Nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// Where the gateway reads the time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clocks.
    #[default]
    System,
    /// A clock that stands still until it is set.
    Manual(ManualClock),
}

/// A clock for tests, `explain` and `replay`. Clones share the same time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

// === impl Timestamp ===

impl Timestamp {
    /// A timestamp from nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A timestamp from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A timestamp from seconds since the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// A timestamp from a date (year, month, day) and a time (hours, minutes, seconds) in UTC; what
    /// lies before the epoch is the epoch. `None`: there is no such time.
    pub fn from_utc(date: [u64; 3], time: [u64; 3]) -> Option<Self> {
        let ([year, month, day], [hours, minutes, seconds]) = (date, time);
        // A leap second is the first of the next minute.
        let real = (1..=12).contains(&month) && (1..=31).contains(&day);
        if !real || hours > 23 || minutes > 59 || seconds > 60 || year > 9999 {
            return None;
        }
        let seconds = hours * 3600 + minutes * 60 + seconds;
        Some(match year {
            ..1970 => Self::default(),
            _ => Self::from_secs(date::days(year, month, day) * 86_400 + seconds),
        })
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self` moved forward, stopping at the end of time.
    pub const fn plus(self, duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        let nanos = if nanos > u64::MAX as u128 {
            u64::MAX
        } else {
            nanos as u64
        };
        Self(self.0.saturating_add(nanos))
    }
}

// === impl Clock ===

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => Timestamp::from_nanos(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
            ),
            Clock::Manual(manual) => manual.now(),
        }
    }

    /// The monotonic clock, for measuring how long something took.
    pub fn instant(&self) -> Instant {
        Instant::now()
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(start.as_nanos())))
    }

    /// The time it stands at.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Acquire))
    }

    /// Moves it to `now`, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_nanos(), Ordering::Release);
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}
