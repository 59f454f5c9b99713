//! What is known of one kind of answer. Shared by cores behind a lock that is held for as long as
//! it takes to look at one head.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use parking_lot::Mutex;

use super::dice::Dice;
use super::pace::{Pace, Paces};
use super::shape::{self, Shape};
use super::{Imitation, Seen, When};
use crate::action::Asked;
use crate::clock::Timestamp;

/// Sequences of names that are looked at beside each other.
const SHAPES: usize = 3;
/// Once an answer is known, one in so many is looked at.
const SAMPLED: u32 = 8;
/// And one in so many milliseconds: an answer that tells its own time is told from a shadow by what
/// is left beside it, and that changes with the load of the machine.
const WHILE: u64 = 5;
/// After a surprise, so many answers are looked at one by one.
const ATTENTION: u32 = 128;
/// After so many answers, what was seen counts half.
const HALF_LIFE: u32 = 1024;

/// What is known of one kind of answer.
#[derive(Debug)]
pub struct Memory {
    /// It is known, and did not change lately.
    settled: AtomicBool,
    passed: AtomicU32,
    /// When it was last looked because a while had passed.
    looked: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    shapes: Vec<Shape>,
    paces: Paces,
    attention: u32,
    dice: Dice,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            settled: AtomicBool::new(false),
            passed: AtomicU32::new(0),
            looked: AtomicU64::new(0),
            known: Mutex::new(Known {
                shapes: Vec::new(),
                paces: Paces::default(),
                attention: 0,
                dice: Dice::new(),
            }),
        }
    }

    /// Whether the next answer is worth a look: each one until enough is known, then one in a few,
    /// and one in a while.
    pub fn is_curious(&self, now: Timestamp) -> bool {
        let settled = self.settled.load(Ordering::Relaxed);
        let passed = self.passed.fetch_add(1, Ordering::Relaxed);
        if self.is_due(now) {
            // The answer after this one: those that end a long silence find everything asleep, and
            // would be looked at too often.
            self.passed.store(0, Ordering::Relaxed);
        }
        !settled || passed.is_multiple_of(SAMPLED)
    }

    /// Whether nothing was looked at for a while.
    fn is_due(&self, now: Timestamp) -> bool {
        let (now, last) = (now.as_millis(), self.looked.load(Ordering::Relaxed));
        // A clock that was set back must not make it blind.
        let due = now >= last.saturating_add(WHILE) || now < last;
        if due {
            self.looked.store(now, Ordering::Relaxed);
        }
        due
    }

    /// Takes in the head of a real success.
    pub fn learn(&self, seen: &Seen<'_>) {
        if shape::entries(seen.headers).count() > shape::FIELDS {
            return;
        }
        let settled = self.known.lock().learn(seen);
        self.settled.store(settled, Ordering::Relaxed);
    }

    /// Takes in how long a real success took.
    pub fn learn_pace(&self, pace: Pace) {
        self.known.lock().paces.learn(pace);
    }

    /// When a real success would come; `None`: not enough is known.
    pub fn pace(&self) -> Option<Pace> {
        self.known.lock().pace()
    }

    /// What a real success that comes then would look like; `None`: not enough is known.
    pub fn imitate(&self, asked: &Asked<'_>, when: When) -> Option<Imitation> {
        self.known.lock().imitate(asked, when)
    }

    /// What it takes of memory, about.
    pub fn bytes(&self) -> usize {
        let known = self.known.lock();
        let shapes = known.shapes.iter().map(Shape::bytes).sum::<usize>();
        size_of::<Self>() + shapes + known.paces.bytes()
    }
}

// === impl Known ===

impl Known {
    /// `true`: all is known and nothing is new.
    fn learn(&mut self, seen: &Seen<'_>) -> bool {
        let surprise = match self.shape_of(seen.headers) {
            Some(at) => match self.shapes.get_mut(at) {
                Some(shape) => shape.learn(seen),
                None => true,
            },
            None => true,
        };
        self.attention = match surprise {
            true => ATTENTION,
            false => self.attention.saturating_sub(1),
        };
        if self.shapes.iter().any(|shape| shape.count >= HALF_LIFE) {
            self.shapes.iter_mut().for_each(|shape| shape.count /= 2);
        }
        let known = self.shapes.iter().any(Shape::is_well_known);
        self.attention == 0 && known && self.paces.are_enough()
    }

    /// The place of the shape with these names, which may take that of the least common one;
    /// `None`: there is no room for it yet.
    fn shape_of(&mut self, headers: &HeaderMap) -> Option<usize> {
        let known = self.shapes.iter().position(|shape| shape.is_of(headers));
        if known.is_some() {
            return known;
        }
        if self.shapes.len() < SHAPES {
            self.shapes.push(Shape::new(headers));
            return Some(self.shapes.len() - 1);
        }
        let places = self.shapes.iter_mut().enumerate();
        let (at, least) = places.min_by_key(|(_, shape)| shape.count)?;
        least.count = least.count.saturating_sub(1);
        if least.count > 0 {
            return None;
        }
        *least = Shape::new(headers);
        Some(at)
    }

    fn pace(&mut self) -> Option<Pace> {
        let known = self.shapes.iter().any(Shape::is_known);
        let pace = self.paces.draw(&mut self.dice);
        pace.filter(|_| known)
    }

    fn imitate(&mut self, asked: &Asked<'_>, when: When) -> Option<Imitation> {
        let gzip = accepts_gzip(asked.headers);
        let known = self.shapes.iter().filter(|shape| shape.is_known());
        let shape = known.max_by_key(|shape| (shape.suits(gzip), shape.count))?;
        let coded = gzip && shape.coding() == Some(b"gzip");
        let fields = shape.fields.iter();
        let fields = fields.filter(|field| coded || field.name != CONTENT_ENCODING);
        let dice = &mut self.dice;
        Some(Imitation {
            fields: fields
                .map(|field| (field.name.clone(), field.value(asked, when, dice)))
                .collect(),
            gzip: coded,
            streamed: shape.is_streamed(),
        })
    }
}

// === impl Shape ===

impl Shape {
    /// Whether a client that takes gzip, or does not, can be sent such an answer.
    fn suits(&self, gzip: bool) -> bool {
        self.coding().is_none_or(|coding| gzip && coding == b"gzip")
    }
}

/// RFC 9110, section 12.5.3, as far as it concerns one coding.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        let refused = |part: &[u8]| part.strip_prefix(b"q=").is_some_and(is_zero);
        named && !parts.any(refused)
    })
}

fn is_zero(quality: &[u8]) -> bool {
    quality.iter().all(|byte| matches!(byte, b'0' | b'.'))
}
