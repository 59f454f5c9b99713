//! Nine entries in four cache lines.
//!
//! A bucket stores and compares; which of its places to use is decided in [`super::table`].

use crate::limit::State;

/// How many entries a bucket has.
pub(super) const PLACES: usize = 9;

/// Nine entries, field by field, so that looking for a tag reads little. An empty place is all
/// zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    tags: [u64; PLACES],
    expires: [u32; PLACES],
    states: [State; PLACES],
    slots: [u16; PLACES],
    fills: [u8; PLACES],
}

/// What is kept of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// What the key is known by; zero: nothing is here.
    pub(super) tag: u64,
    /// The second since the epoch from which on the entry means nothing.
    pub(super) expires: u32,
    /// The limiter's numbers.
    pub(super) state: State,
    /// The rule's slot.
    pub(super) slot: u16,
    /// How near its limit the key was when it was last written.
    pub(super) fill: u8,
}

/// What a newcomer can find in a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    /// Entries that have not expired.
    pub(super) live: usize,
    /// A place that was never used or has been cleared.
    pub(super) empty: Option<usize>,
    /// A place whose entry has expired.
    pub(super) expired: Option<usize>,
    /// The live entry furthest below its limit, of those the one that expires first.
    pub(super) weakest: Option<Weak>,
}

/// How little would be lost with an entry, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weak {
    fill: u8,
    expires: u32,
    pub(super) place: usize,
}

// === impl Bucket ===

impl Bucket {
    /// Where the entry with this tag is.
    pub(super) fn find(&self, tag: u64) -> Option<usize> {
        self.tags.iter().position(|found| *found == tag)
    }

    /// The numbers at `place`; none if they have expired.
    pub(super) fn state(&self, place: usize, second: u32) -> State {
        let live = self.expires.get(place).is_some_and(|end| *end > second);
        match self.states.get(place) {
            Some(state) if live => *state,
            _ => State::default(),
        }
    }

    /// Writes `entry` at `place`.
    pub(super) fn put(&mut self, place: usize, entry: Entry) {
        set(&mut self.tags, place, entry.tag);
        set(&mut self.expires, place, entry.expires);
        set(&mut self.states, place, entry.state);
        set(&mut self.slots, place, entry.slot);
        set(&mut self.fills, place, entry.fill);
    }

    /// What a newcomer would find.
    pub(super) fn survey(&self, second: u32) -> Survey {
        let mut survey = Survey::default();
        let places = self.tags.iter().zip(&self.expires).zip(&self.fills);
        for (place, ((tag, expires), fill)) in places.enumerate() {
            if *tag == 0 {
                survey.empty.get_or_insert(place);
            } else if *expires <= second {
                survey.expired.get_or_insert(place);
            } else {
                survey.count(Weak {
                    fill: *fill,
                    expires: *expires,
                    place,
                });
            }
        }
        survey
    }

    /// The slots of the entries that have not expired.
    pub(super) fn live_slots(&self, second: u32) -> impl Iterator<Item = u16> {
        let entries = self.expires.iter().zip(&self.slots);
        entries.filter_map(move |(expires, slot)| (*expires > second).then_some(*slot))
    }

    /// Clears the entries whose slot is `unwanted`; says how many.
    pub(super) fn clear_slots(&mut self, unwanted: impl Fn(u16) -> bool) -> usize {
        let mut cleared = 0;
        for place in 0..PLACES {
            let used = self.tags.get(place).is_some_and(|tag| *tag != 0);
            if used && self.slots.get(place).is_some_and(|slot| unwanted(*slot)) {
                self.put(place, Entry::default());
                cleared += 1;
            }
        }
        cleared
    }
}

fn set<T>(fields: &mut [T; PLACES], place: usize, value: T) {
    if let Some(field) = fields.get_mut(place) {
        *field = value;
    }
}

// === impl Survey ===

impl Survey {
    fn count(&mut self, entry: Weak) {
        self.live += 1;
        self.weakest = Some(self.weakest.map_or(entry, |weakest| weakest.min(entry)));
    }
}
