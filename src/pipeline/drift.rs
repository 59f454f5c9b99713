//! How much longer a shadow answer takes than a real one from the moment it is due until it is
//! written: whoever slept wakes into cold caches. It leaves so much earlier.

use std::cell::Cell;
use std::time::Duration;

/// What takes longer than this has another reason, such as a machine under load.
const MOST: Duration = Duration::from_micros(500);

/// How far one time moves what is known.
const STEP: Duration = Duration::from_nanos(500);

/// From the moment an answer is due until its head is written, lately, on one core.
#[derive(Debug, Default)]
pub struct Drift {
    real: Cell<Duration>,
    shadow: Cell<Duration>,
}

// === impl Drift ===

impl Drift {
    /// A real answer took so long.
    pub fn real(&self, time: Duration) {
        take_in(&self.real, time);
    }

    /// A shadow answer took so long.
    pub fn shadow(&self, time: Duration) {
        take_in(&self.shadow, time);
    }

    /// How much earlier a shadow answer must be due.
    pub fn lead(&self) -> Duration {
        self.shadow.get().saturating_sub(self.real.get())
    }
}

/// Moves `known` towards the middle of the times: as many are longer as are shorter. A few that are
/// much longer do not count for more, as they would in a mean.
fn take_in(known: &Cell<Duration>, time: Duration) {
    if time > MOST {
        return;
    }
    let (now, step) = (known.get(), STEP.max(known.get() / 64));
    known.set(match time > now {
        true => now + step,
        false => now.saturating_sub(step),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_middle_and_not_the_mean() {
        let known = Cell::default();
        for at in 0..3_000u64 {
            let micros = match at % 5 {
                4 => 400,
                low => 20 + low,
            };
            take_in(&known, Duration::from_micros(micros));
        }
        let found = known.get().as_micros();
        assert!((20..26).contains(&found), "{found}");
    }
}
