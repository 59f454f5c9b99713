//! How long real responses take, and in which pieces their bodies are sent.

use std::time::Duration;

use super::Dice;

/// How many responses are kept.
const KEPT: usize = 1024;
/// How many chunks of a body are timed one by one. Later chunks are sent with the last of them.
const PIECES: usize = 4;
/// The whole of a body.
const WHOLE: u32 = 1 << 16;

/// When the parts of a response are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponsePacing {
    /// Microseconds from the end of the request until the head of the response is sent.
    head: u32,
    pieces: [BodyPiece; PIECES],
    count: u8,
}

/// A piece of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BodyPiece {
    /// Where it ends: bytes while a body is observed, then its share of [`WHOLE`].
    end: u32,
    /// Microseconds after the head. 0: together with the head.
    at: u32,
}

/// The paces of the last responses.
#[derive(Debug, Default)]
pub(super) struct PacingHistory {
    kept: Vec<ResponsePacing>,
    /// The index of the oldest.
    next: usize,
}

// === impl ResponsePacing ===

impl ResponsePacing {
    /// A response whose head is sent after this time, and whose body is not known yet.
    pub fn after(head: Duration) -> Self {
        Self {
            head: micros(head),
            ..Self::default()
        }
    }

    /// From the end of the request until the head of the response is sent.
    pub fn head(&self) -> Duration {
        Duration::from_micros(u64::from(self.head))
    }

    /// Adds a piece that is sent so long after the head; zero: together with it.
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

    /// The same pace for a body of any length.
    pub fn whole(mut self) -> Self {
        let last = self.known().last().map_or(0, |piece| piece.end);
        for piece in &mut self.pieces {
            let share = u64::from(piece.end) * u64::from(WHOLE);
            piece.end = share.div_ceil(u64::from(last.max(1))) as u32;
        }
        self
    }

    /// The pieces of a body of this length: where each ends, and when it is sent after the head.
    pub fn pieces(&self, length: usize) -> impl Iterator<Item = (usize, Duration)> {
        let at = |piece: &BodyPiece| Duration::from_micros(u64::from(piece.at));
        let known = self.known().iter().map(move |piece| {
            let end = length as u64 * u64::from(piece.end) / u64::from(WHOLE);
            ((end as usize).min(length), at(piece))
        });
        let last = self.known().last().map(at).unwrap_or_default();
        known.chain([(length, last)])
    }

    /// Whether all of it is sent at once.
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

    /// Whether there is little more to learn.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= KEPT
    }

    /// A pace that a real response could have: between two that were seen.
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
