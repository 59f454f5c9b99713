//! How much longer a shadow answer takes than a real one from the moment it is due until it is
//! written: whoever slept wakes into cold caches. It leaves so much earlier.

use std::cell::Cell;
use std::time::Duration;

/// What takes longer than this has another reason, such as a machine under load.
const MOST: Duration = Duration::from_micros(500);

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

fn take_in(known: &Cell<Duration>, time: Duration) {
    if time <= MOST {
        known.set(known.get() - known.get() / 16 + time / 16);
    }
}
