//! Timestamps as HTTP writes them: RFC 9110, section 5.6.7, the preferred form. Never reads a
//! clock.

use std::fmt;

use super::Timestamp;
use super::date::civil;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Shows a timestamp as `Fri, 02 Jan 2026 03:04:05 GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpDate(pub Timestamp);

// === impl HttpDate ===

impl HttpDate {
    /// Reads what [`fmt::Display`] writes; `None`: it is something else.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.get(5..)?.split(' ');
        let day: u64 = words.next()?.parse().ok()?;
        let name = words.next()?;
        let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
        let year: u64 = words.next()?.parse().ok()?;
        let mut time = words
            .next()?
            .split(':')
            .map(|part| part.parse::<u64>().ok());
        let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
        // Nothing that a server sends may overflow what follows.
        if year > 9999 || day > 31 || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = day_of(year, month, day)?;
        let secs = days * 86_400 + hour * 3600 + minute * 60 + second;
        let read = Self(Timestamp::from_secs(secs));
        // Whatever was passed over on the way must be as we would write it.
        (read.to_string() == text).then_some(read)
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        let days = secs / 86_400;
        let (year, month, day) = civil(days);
        let name = |names: &[&'static str], at: u64| names.get(at as usize).copied().unwrap_or("");
        write!(
            f,
            "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
            name(&DAYS, days % 7),
            name(&MONTHS, month.saturating_sub(1)),
            secs / 3600 % 24,
            secs / 60 % 60,
            secs % 60
        )
    }
}

/// The day, counted from 1970-01-01; the reverse of [`civil`].
fn day_of(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..2500).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year - u64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_both_ways() {
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
    fn every_day_is_read_as_it_is_written() {
        for day in 0..100_000 {
            let date = HttpDate(Timestamp::from_secs(day * 86_400 + 86_399));
            assert_eq!(HttpDate::parse(date.to_string().as_bytes()), Some(date));
        }
    }

    #[test]
    fn nothing_else_is_a_date() {
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
