//! A run of letters and digits that varies: its length, its letters, or the number that it is.

use super::When;
use super::dice::Dice;
use super::numbers::Numbers;

/// How many letters at its beginning are known apart: versions and kinds stand there.
const LEAD: usize = 2;
/// The longest run that is a number for us.
const DIGITS: usize = 18;

/// Runs that were seen at one place of a value.
#[derive(Debug)]
pub(super) struct Run {
    lead: [u128; LEAD],
    rest: u128,
    shortest: u16,
    longest: u16,
    /// While all of them are plain numbers.
    numbers: Option<Numbers>,
}

// === impl Run ===

impl Run {
    pub(super) const fn new() -> Self {
        Self {
            lead: [0; LEAD],
            rest: 0,
            shortest: u16::MAX,
            longest: 0,
            numbers: Some(Numbers::NONE),
        }
    }

    /// Takes in ASCII text.
    pub(super) fn learn(&mut self, text: &[u8], when: When) {
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.shortest = self.shortest.min(length);
        self.longest = self.longest.max(length);
        for (place, byte) in text.iter().enumerate() {
            let letters = self.lead.get_mut(place).unwrap_or(&mut self.rest);
            *letters |= 1u128.checked_shl(u32::from(*byte)).unwrap_or(0);
        }
        match (plain_number(text), &mut self.numbers) {
            (Some(number), Some(numbers)) => numbers.learn(number, when),
            _ => self.numbers = None,
        }
    }

    /// Text like that which was seen.
    pub(super) fn make(&self, out: &mut String, when: When, dice: &mut Dice) {
        if let Some(numbers) = &self.numbers {
            out.push_str(&numbers.draw(when, dice).max(0).to_string());
            return;
        }
        let spread = usize::from(self.longest.saturating_sub(self.shortest));
        let length = usize::from(self.shortest) + dice.below(spread + 1);
        for place in 0..length {
            let letters = self.lead.get(place).unwrap_or(&self.rest);
            out.push(letter(*letters, dice));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.numbers.as_ref().map_or(0, Numbers::bytes)
    }
}

/// One of `letters`.
fn letter(letters: u128, dice: &mut Dice) -> char {
    let known = (0..128u8).filter(|byte| letters >> byte & 1 == 1);
    let at = dice.below(letters.count_ones() as usize);
    known.map(char::from).nth(at).unwrap_or('0')
}

/// Digits without a leading zero, few enough to reckon with.
fn plain_number(text: &[u8]) -> Option<i64> {
    let leading_zero = text.len() > 1 && text.first() == Some(&b'0');
    if text.len() > DIGITS || leading_zero || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
