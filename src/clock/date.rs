//! Timestamps as people read them: RFC 3339, UTC, milliseconds. Never reads a clock.

use std::fmt;

use super::Timestamp;

/// Shows a timestamp as `2026-01-02T03:04:05.678Z`.
#[derive(Clone, Copy, Debug)]
pub struct Rfc3339(pub Timestamp);

// === impl Rfc3339 ===

impl Rfc3339 {
    /// The 24 characters.
    pub fn to_bytes(self) -> [u8; 24] {
        let millis = self.0.as_millis();
        let secs = self.0.as_secs();
        let (year, month, day) = civil(secs / 86_400);
        let mut out = *b"0000-00-00T00:00:00.000Z";
        let [
            y0,
            y1,
            y2,
            y3,
            _,
            m0,
            m1,
            _,
            d0,
            d1,
            _,
            h0,
            h1,
            _,
            i0,
            i1,
            ..,
        ] = &mut out;
        digits([y0, y1, y2, y3], year);
        digits([m0, m1], month);
        digits([d0, d1], day);
        digits([h0, h1], secs / 3600 % 24);
        digits([i0, i1], secs / 60 % 60);
        let [.., s0, s1, _, f0, f1, f2, _] = &mut out;
        digits([s0, s1], secs % 60);
        digits([f0, f1, f2], millis % 1000);
        out
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes()
            .iter()
            .try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Eras of 400 years that start on 1 March, so that a leap day is the last day of its year
/// (H. Hinnant, "chrono-compatible low-level date algorithms").
pub(super) fn civil(day: u64) -> (u64, u64, u64) {
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

/// The day counted from 1970-01-01, the reverse of [`civil`].
pub(super) fn days(year: u64, month: u64, day: u64) -> u64 {
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

fn digits<const N: usize>(places: [&mut u8; N], mut value: u64) {
    for place in places.into_iter().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
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
    fn every_day_follows_the_one_before() {
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
}
