//! How long real answers take, and in how many pieces they come: a bounded sample, the newer the
//! likelier.

use std::time::Duration;

use super::dice::Dice;

/// How many answers are remembered.
const KEPT: usize = 256;
/// Pieces are told apart up to this many.
const PIECES: u8 = 16;

/// When an answer's parts leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// From the end of the request to the head of the answer.
    pub head: Duration,
    /// From there to the end of the body.
    pub rest: Duration,
    /// How many pieces the body came in.
    pub pieces: u8,
    /// The first of them came with the head.
    pub early: bool,
}

/// How long real answers took.
#[derive(Debug, Default)]
pub(super) struct Paces(Vec<Pace>);

// === impl Paces ===

impl Paces {
    pub(super) fn learn(&mut self, mut pace: Pace, dice: &mut Dice) {
        pace.pieces = pace.pieces.min(PIECES);
        if self.0.len() < KEPT {
            self.0.push(pace);
        } else if let Some(place) = self.0.get_mut(dice.below(KEPT)) {
            *place = pace;
        }
    }

    /// A pace that a real answer could have: between two that were seen.
    pub(super) fn draw(&self, dice: &mut Dice) -> Option<Pace> {
        let mut sorted = self.0.clone();
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
        self.0.capacity() * size_of::<Pace>()
    }
}
