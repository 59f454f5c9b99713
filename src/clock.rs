//! Reads the time. No other module does, so that tests, `explain` and `replay` can set it. Also formats it
//! for logs (RFC 3339) and HTTP (RFC 9110, section 5.6.7).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// The source of the current time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's clocks.
    #[default]
    System,
    /// A clock that changes only when it is set.
    Manual(ManualClock),
}

/// A clock for tests, `explain` and `replay`. Clones share one time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

/// Formats a timestamp as `2026-01-02T03:04:05.678Z`.
#[derive(Clone, Copy, Debug)]
pub struct Rfc3339(pub Timestamp);

/// Formats a timestamp as `Fri, 02 Jan 2026 03:04:05 GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpDate(pub Timestamp);

// === impl Timestamp ===

impl Timestamp {
    /// Creates a timestamp from nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a timestamp from microseconds since the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a timestamp from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a timestamp from seconds since the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Creates a timestamp from a date (year, month, day) and a time (hours, minutes, seconds) in UTC. Times
    /// before the epoch become the epoch. `None` if there is no such time.
    pub fn from_utc(date: [u64; 3], time: [u64; 3]) -> Option<Self> {
        let ([year, month, day], [hours, minutes, seconds]) = (date, time);
        // A leap second becomes the first second of the next minute.
        let real = (1..=12).contains(&month) && (1..=31).contains(&day);
        if !real || hours > 23 || minutes > 59 || seconds > 60 || year > 9999 {
            return None;
        }
        let seconds = hours * 3600 + minutes * 60 + seconds;
        Some(match year {
            ..1970 => Self::default(),
            _ => Self::from_secs(days(year, month, day) * 86_400 + seconds),
        })
    }

    /// Returns nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns whole microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns whole seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Returns the time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the timestamp plus `duration`, saturating at the maximum.
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
    /// Returns the current time.
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

    /// Returns the time of the monotonic clock, for measuring durations.
    pub fn instant(&self) -> Instant {
        Instant::now()
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// Creates a clock with the time `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(start.as_nanos())))
    }

    /// Returns the time of the clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Acquire))
    }

    /// Sets the time to `now`, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_nanos(), Ordering::Release);
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

// === impl Rfc3339 ===

impl Rfc3339 {
    /// Returns the 24 characters of the formatted timestamp.
    pub fn to_bytes(self) -> [u8; 24] {
        let (secs, millis) = (self.0.as_secs(), self.0.as_millis());
        let (year, month, day) = civil(secs / 86_400);
        let mut out = *b"0000-00-00T00:00:00.000Z";
        let mut write = |place: Range<usize>, mut value: u64| {
            let digits = out.get_mut(place).unwrap_or_default();
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        write(0..4, year);
        write(5..7, month);
        write(8..10, day);
        write(11..13, secs / 3600 % 24);
        write(14..16, secs / 60 % 60);
        write(17..19, secs % 60);
        write(20..23, millis % 1000);
        out
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

// === impl HttpDate ===

impl HttpDate {
    /// Parses the format that [`fmt::Display`] writes. `None` for anything else, including obsolete formats.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let time = httpdate::parse_http_date(text).ok()?;
        let time = time.duration_since(UNIX_EPOCH).ok()?;
        let read = Self(Timestamp::from_secs(time.as_secs()));
        (read.to_string() == text).then_some(read)
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_secs(self.0.as_secs());
        httpdate::HttpDate::from(time).fmt(f)
    }
}

/// Returns the year, month and day of a day counted from 1970-01-01.
///
/// Uses eras of 400 years that start on 1 March, so that a leap day is the last day of its year
/// (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// Returns the day counted from 1970-01-01, the inverse of [`civil`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 {
        year.saturating_sub(1)
    } else {
        year
    };
    let year_of_era = year % 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (year / 400 * 146_097 + of_era).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_234_567_890_001, "2009-02-13T23:31:30.001Z"),
            (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        ] {
            assert_eq!(Rfc3339(Timestamp::from_millis(millis)).to_string(), text);
        }
        let end = Rfc3339(Timestamp::from_nanos(u64::MAX)).to_string();
        assert_eq!(end, "2554-07-21T23:34:33.709Z");
    }

    #[test]
    fn every_day_follows_the_previous_one() {
        let mut last = civil(0);
        for day in 1..213_000 {
            let next = civil(day);
            let (y, m, d) = last;
            assert!(
                [(y, m, d + 1), (y, m + 1, 1), (y + 1, 1, 1)].contains(&next),
                "{last:?} then {next:?}"
            );
            assert!((1..=31).contains(&next.2) && (1..=12).contains(&next.1));
            assert_eq!(days(next.0, next.1, next.2), day);
            last = next;
        }
    }

    #[test]
    fn known_dates_are_formatted_and_parsed() {
        for (secs, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_767_323_045, "Fri, 02 Jan 2026 03:04:05 GMT"),
        ] {
            let date = HttpDate(Timestamp::from_secs(secs));
            assert_eq!(date.to_string(), text);
            assert_eq!(HttpDate::parse(text.as_bytes()), Some(date));
        }
    }

    #[test]
    fn every_day_is_parsed_as_formatted() {
        for day in 0..100_000 {
            let date = HttpDate(Timestamp::from_secs(day * 86_400 + 86_399));
            assert_eq!(HttpDate::parse(date.to_string().as_bytes()), Some(date));
        }
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "now",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 99999999999999 08:49:37 GMT",
            "Sun, 06 Nov 1994 18446744073709551615:49:37 GMT",
            "S\u{fc}n, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(HttpDate::parse(text.as_bytes()), None, "{text}");
        }
    }
}
