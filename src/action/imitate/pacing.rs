//! The timing of real responses, and the pieces in which their bodies are sent.

use std::time::Duration;

use super::Dice;

/// The number of responses that are kept.
const KEPT: usize = 1024;
/// The number of body chunks that are timed individually. Later chunks are sent with the last of them.
const PIECES: usize = 4;
/// The end of a body in relative units.
const WHOLE: u32 = 1 << 16;

/// The timing of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponsePacing {
    /// The microseconds from the end of the request until the head of the response is sent.
    head: u32,
    pieces: [BodyPiece; PIECES],
    count: u8,
}

/// A piece of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BodyPiece {
    /// The end of the piece: in bytes while a body is observed, then as a share of [`WHOLE`].
    end: u32,
    /// The microseconds after the head. 0 if it is sent together with the head.
    at: u32,
}

/// The timings of the last responses.
#[derive(Debug, Default)]
pub(super) struct PacingHistory {
    kept: Vec<ResponsePacing>,
    /// The index of the oldest timing.
    next: usize,
}

// === impl ResponsePacing ===

impl ResponsePacing {
    /// Creates the timing of a response with its head sent after this time and no body yet.
    pub fn after(head: Duration) -> Self {
        Self {
            head: micros(head),
            ..Self::default()
        }
    }

    /// Returns the time from the end of the request until the head of the response is sent.
    pub fn head(&self) -> Duration {
        Duration::from_micros(u64::from(self.head))
    }

    /// Adds a piece that is sent `at` after the head; zero means together with it.
    pub fn add(&mut self, bytes: usize, at: Duration) {
        let before = self.known().last().map_or(0, |piece| piece.end);
        let piece = BodyPiece {
            end: before.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX)),
            at: micros(at),
        };
        let index = usize::from(self.count).min(PIECES - 1);
        if let Some(known) = self.pieces.get_mut(index) {
            *known = piece;
        }
        self.count = self.count.saturating_add(1).min(PIECES as u8);
    }

    /// Converts the pieces to shares, for a body of any length.
    pub fn whole(mut self) -> Self {
        let last = self.known().last().map_or(0, |piece| piece.end);
        for piece in &mut self.pieces {
            let share = u64::from(piece.end) * u64::from(WHOLE);
            piece.end = share.div_ceil(u64::from(last.max(1))) as u32;
        }
        self
    }

    /// Returns, for a body of this length, where each piece ends and how long after the head it is sent.
    pub fn pieces(&self, length: usize) -> impl Iterator<Item = (usize, Duration)> {
        let at = |piece: &BodyPiece| Duration::from_micros(u64::from(piece.at));
        let known = self.known().iter().map(move |piece| {
            let end = length as u64 * u64::from(piece.end) / u64::from(WHOLE);
            ((end as usize).min(length), at(piece))
        });
        let last = self.known().last().map(at).unwrap_or_default();
        known.chain([(length, last)])
    }

    /// Returns whether the whole body is sent with the head.
    pub fn is_one(&self) -> bool {
        self.known().iter().all(|piece| piece.at == 0)
    }

    fn known(&self) -> &[BodyPiece] {
        let known = self.pieces.get(..usize::from(self.count));
        known.unwrap_or(&self.pieces)
    }
}

// === impl PacingHistory ===

impl PacingHistory {
    pub(super) fn learn(&mut self, pace: ResponsePacing) {
        if self.kept.len() < KEPT {
            self.kept.push(pace);
        } else if let Some(oldest) = self.kept.get_mut(self.next) {
            *oldest = pace;
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// Returns whether the history is full.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= KEPT
    }

    /// Draws a realistic timing: between two that were observed. `None` if there are none.
    pub(super) fn draw(&self, dice: &mut Dice) -> Option<ResponsePacing> {
        let one = *self.kept.get(dice.below(self.kept.len()))?;
        let heads = self.kept.iter().map(|pace| pace.head);
        let next = heads.filter(|head| *head > one.head).min();
        let gap = next.map_or(0, |next| next - one.head);
        let head = one.head + dice.below(gap as usize) as u32;
        Some(ResponsePacing { head, ..one })
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
