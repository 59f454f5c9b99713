//! How long real answers take, and in which pieces they come: those of the last while.

use std::time::Duration;

use super::dice::Dice;

/// How many answers are remembered.
const KEPT: usize = 256;
/// How many pieces of a body are told apart; what follows comes with the last.
const PIECES: usize = 4;
/// The whole of a body.
const WHOLE: u32 = 1 << 16;

/// When an answer's parts leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// From the end of the request to the head of the answer.
    pub head: Duration,
    pieces: [Piece; PIECES],
    count: u8,
}

/// A piece of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece {
    /// Where it ends: bytes while a body is watched, then its share of [`WHOLE`].
    end: u32,
    /// From the head, in microseconds; 0: with it.
    at: u32,
}

/// How long real answers took.
#[derive(Debug, Default)]
pub(super) struct Paces {
    kept: Vec<Pace>,
    /// The oldest.
    next: usize,
}

// === impl Pace ===

impl Pace {
    /// An answer whose head comes after this time, and of whose body nothing is known.
    pub fn after(head: Duration) -> Self {
        Self {
            head,
            ..Self::default()
        }
    }

    /// Adds a piece that comes so long after the head; no time at all: together with it.
    pub fn add(&mut self, bytes: usize, at: Duration) {
        let last = usize::from(self.count).min(PIECES);
        let before = last.checked_sub(1).and_then(|last| self.pieces.get(last));
        let before = before.map_or(0, |piece| piece.end);
        let piece = Piece {
            end: before.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX)),
            at: u32::try_from(at.as_micros()).unwrap_or(u32::MAX),
        };
        let place = last.min(PIECES - 1);
        if let Some(known) = self.pieces.get_mut(place) {
            *known = piece;
        }
        self.count = self.count.saturating_add(1).min(PIECES as u8);
    }

    /// The same for a body of any length.
    pub fn whole(mut self) -> Self {
        let last = self.known().last().map_or(0, |piece| piece.end);
        for piece in &mut self.pieces {
            let share = u64::from(piece.end) * u64::from(WHOLE);
            piece.end = share.div_ceil(u64::from(last.max(1))) as u32;
        }
        self
    }

    /// The pieces of a body of this length: where each ends, and when it leaves after the head.
    pub fn pieces(&self, length: usize) -> impl Iterator<Item = (usize, Duration)> {
        let known = self.known().iter().map(move |piece| {
            let end = length as u64 * u64::from(piece.end) / u64::from(WHOLE);
            let at = Duration::from_micros(u64::from(piece.at));
            ((end as usize).min(length), at)
        });
        let last = self.known().last().map_or(0, |piece| piece.at);
        let rest = (length, Duration::from_micros(u64::from(last)));
        known.chain([rest])
    }

    /// Whether all of it leaves at once.
    pub fn is_one(&self) -> bool {
        self.known().iter().all(|piece| piece.at == 0)
    }

    fn known(&self) -> &[Piece] {
        let count = usize::from(self.count);
        self.pieces.get(..count).unwrap_or(&self.pieces)
    }
}

// === impl Paces ===

impl Paces {
    pub(super) fn learn(&mut self, pace: Pace) {
        if self.kept.len() < KEPT {
            self.kept.push(pace);
        } else if let Some(oldest) = self.kept.get_mut(self.next) {
            *oldest = pace;
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// A pace that a real answer could have: between two that were seen.
    pub(super) fn draw(&self, dice: &mut Dice) -> Option<Pace> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable_by_key(|pace| pace.head);
        let at = dice.below(sorted.len());
        let one = *sorted.get(at)?;
        let next = sorted.get(at + 1).unwrap_or(&one);
        let between = next.head.saturating_sub(one.head).mul_f64(dice.share());
        Some(Pace {
            head: one.head + between,
            ..one
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Pace>()
    }
}
