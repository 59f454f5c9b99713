//! How long real answers take, and in which pieces they come: those of the last while.

use std::time::Duration;

use super::dice::Dice;

/// How many answers are remembered.
const KEPT: usize = 1024;
/// This many are enough to look at fewer of those that follow.
const ENOUGH: usize = KEPT;
/// How many pieces of a body are told apart; what follows comes with the last.
const PIECES: usize = 4;
/// The whole of a body.
const WHOLE: u32 = 1 << 16;

/// When an answer's parts leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// From the end of the request until the head of the answer is written.
    pub head: Duration,
    body: Pieces,
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
    /// To the head, in microseconds.
    heads: Vec<u32>,
    /// What followed, of each; nothing as long as all of them came at once.
    bodies: Vec<Pieces>,
    /// The oldest.
    next: usize,
}

/// The pieces of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pieces {
    known: [Piece; PIECES],
    count: u8,
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

    /// The same, but so much later.
    pub fn later(mut self, by: Duration) -> Self {
        self.head += by;
        self
    }

    /// Adds a piece that comes so long after the head; no time at all: together with it.
    pub fn add(&mut self, bytes: usize, at: Duration) {
        let before = self.body.known().last().map_or(0, |piece| piece.end);
        let piece = Piece {
            end: before.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX)),
            at: micros(at),
        };
        let place = usize::from(self.body.count).min(PIECES - 1);
        if let Some(known) = self.body.known.get_mut(place) {
            *known = piece;
        }
        self.body.count = self.body.count.saturating_add(1).min(PIECES as u8);
    }

    /// The same for a body of any length.
    pub fn whole(mut self) -> Self {
        let last = self.body.known().last().map_or(0, |piece| piece.end);
        for piece in &mut self.body.known {
            let share = u64::from(piece.end) * u64::from(WHOLE);
            piece.end = share.div_ceil(u64::from(last.max(1))) as u32;
        }
        self
    }

    /// The pieces of a body of this length: where each ends, and when it leaves after the head.
    pub fn pieces(&self, length: usize) -> impl Iterator<Item = (usize, Duration)> {
        let known = self.body.known().iter().map(move |piece| {
            let end = length as u64 * u64::from(piece.end) / u64::from(WHOLE);
            let at = Duration::from_micros(u64::from(piece.at));
            ((end as usize).min(length), at)
        });
        let last = self.body.known().last().map_or(0, |piece| piece.at);
        let rest = (length, Duration::from_micros(u64::from(last)));
        known.chain([rest])
    }

    /// Whether all of it leaves at once.
    pub fn is_one(&self) -> bool {
        self.body.known().iter().all(|piece| piece.at == 0)
    }
}

// === impl Pieces ===

impl Pieces {
    fn known(&self) -> &[Piece] {
        let count = usize::from(self.count);
        self.known.get(..count).unwrap_or(&self.known)
    }

    /// Whether there is nothing to tell of it.
    fn is_plain(&self) -> bool {
        let known = self.known();
        known.len() <= 1 && known.iter().all(|piece| piece.at == 0)
    }
}

// === impl Paces ===

impl Paces {
    pub(super) fn learn(&mut self, pace: Pace) {
        let head = micros(pace.head);
        if !pace.body.is_plain() {
            // Those before had nothing to tell.
            self.bodies.resize(self.heads.len(), Pieces::default());
        }
        let follows = !self.bodies.is_empty() || !pace.body.is_plain();
        if self.heads.len() < KEPT {
            self.heads.push(head);
            self.bodies.extend(follows.then_some(pace.body));
            return;
        }
        if let Some(oldest) = self.heads.get_mut(self.next) {
            *oldest = head;
        }
        if let Some(oldest) = self.bodies.get_mut(self.next) {
            *oldest = pace.body;
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Whether enough of them are known.
    pub(super) fn are_enough(&self) -> bool {
        self.heads.len() >= ENOUGH
    }

    /// A pace that a real answer could have: between two that were seen.
    pub(super) fn draw(&self, dice: &mut Dice) -> Option<Pace> {
        let at = dice.below(self.heads.len());
        let one = *self.heads.get(at)?;
        let longer = self.heads.iter().filter(|head| **head > one);
        let next = longer.min().copied().unwrap_or(one);
        let between = f64::from(next - one) * dice.share();
        Some(Pace {
            head: Duration::from_secs_f64((f64::from(one) + between) / 1e6),
            body: self.bodies.get(at).copied().unwrap_or_default(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>() + self.bodies.capacity() * size_of::<Pieces>()
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
