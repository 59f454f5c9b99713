//! Nine entries in four cache lines.
//!
//! A bucket stores and compares entries; [`super::table`] decides which of its slots to use.

use crate::clock::Timestamp;
use crate::limit::State;

/// The number of entries per bucket.
pub(super) const PLACES: usize = 9;

/// Nine entries with their tags in a separate array, so that a lookup reads little. An empty slot is all zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct TableBucket {
    tags: [u64; PLACES],
    places: [EntryData; PLACES],
}

/// An entry without its tag; the fields mirror [`TableEntry`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntryData {
    expires: u32,
    state: State,
    slot: u16,
    fill: u8,
    kind: EntryKind,
}

/// The meaning of an entry's words, and how it is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryKind {
    /// The limiter's state.
    #[default]
    Words,
    /// The first word is a handle of a large counter outside the table.
    Handle,
    /// A handle of leases. Their requests are in flight, so they are evicted last.
    Leases,
}

/// The expiry times that a valid entry can have. An entry that ends later was written before the clock was set
/// back, and counts as expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiryRange {
    pub(super) second: u32,
    pub(super) last: u32,
}

/// The state of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableEntry {
    /// The key's tag. Zero if the slot is empty.
    pub(super) tag: u64,
    /// The second since the epoch at which the entry expires.
    pub(super) expires: u32,
    /// The limiter's state, or a handle.
    pub(super) state: State,
    /// The rule's slot.
    pub(super) slot: u16,
    /// The key's usage relative to its limit at the last write.
    pub(super) fill: u8,
    /// The meaning of the words.
    pub(super) kind: EntryKind,
}

/// The slots that a bucket offers to a new key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BucketSurvey {
    /// The number of entries that have not expired.
    pub(super) live: usize,
    /// A slot that was never used or has been cleared.
    pub(super) empty: Option<usize>,
    /// A slot with an expired entry.
    pub(super) expired: Option<usize>,
    /// The live entry furthest below its limit; among equals, the one that expires first.
    pub(super) weakest: Option<EvictionRank>,
}

/// The order of eviction: the lowest rank goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    in_flight: bool,
    fill: u8,
    expires: u32,
    pub(super) place: usize,
}

// === impl TableBucket ===

impl TableBucket {
    /// Returns the position of the entry with this tag.
    #[inline]
    pub(super) fn find(&self, tag: u64) -> Option<usize> {
        self.tags.iter().position(|found| *found == tag)
    }

    /// Returns the entry at `place`, to be updated.
    #[inline(always)]
    pub(super) fn entry_mut(&mut self, place: usize) -> Option<&mut EntryData> {
        self.places.get_mut(place)
    }

    /// Returns a copy of the entry at `place`.
    #[inline]
    pub(super) fn entry(&self, place: usize) -> TableEntry {
        let tag = self.tags.get(place).copied().unwrap_or_default();
        let place = self.places.get(place).copied().unwrap_or_default();
        TableEntry {
            tag,
            expires: place.expires,
            state: place.state,
            slot: place.slot,
            fill: place.fill,
            kind: place.kind,
        }
    }

    /// Writes `entry` at `place`.
    #[inline]
    pub(super) fn put(&mut self, place: usize, entry: TableEntry) {
        if let Some(tag) = self.tags.get_mut(place)
            && let Some(place) = self.places.get_mut(place)
        {
            *tag = entry.tag;
            *place = EntryData {
                expires: entry.expires,
                state: entry.state,
                slot: entry.slot,
                fill: entry.fill,
                kind: entry.kind,
            };
        }
    }

    /// Returns the slots that are available to a new key.
    pub(super) fn survey(&self, span: ExpiryRange) -> BucketSurvey {
        let mut survey = BucketSurvey::default();
        for place in 0..PLACES {
            let entry = self.entry(place);
            if entry.tag == 0 {
                survey.empty.get_or_insert(place);
            } else if !entry.is_live(span) {
                survey.expired.get_or_insert(place);
            } else {
                survey.count(EvictionRank {
                    in_flight: entry.kind == EntryKind::Leases,
                    fill: entry.fill,
                    expires: entry.expires,
                    place,
                });
            }
        }
        survey
    }

    /// Returns all entries, including empty slots.
    pub(super) fn entries(&self) -> impl Iterator<Item = TableEntry> {
        (0..PLACES).map(|place| self.entry(place))
    }
}

// === impl EntryData ===

impl EntryData {
    /// Returns whether the entry has expired.
    #[inline(always)]
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        u64::from(self.expires) * 1_000_000_000 <= now.as_nanos()
    }

    /// Returns the words, expired or not.
    #[inline(always)]
    pub(super) fn words(&self) -> &State {
        &self.state
    }

    /// Writes the counter's new state.
    #[inline(always)]
    pub(super) fn update(&mut self, state: State, slot: u16, expires: u32, fill: u8) {
        self.state = state;
        self.slot = slot;
        self.refresh(expires, fill);
    }

    /// Postpones the expiry to the second `expires`, if that is later.
    pub(super) fn extend(&mut self, expires: u32) {
        self.expires = self.expires.max(expires);
    }

    /// Writes the expiry and the usage relative to the limit.
    #[inline(always)]
    pub(super) fn refresh(&mut self, expires: u32, fill: u8) {
        self.expires = expires;
        self.fill = fill;
    }
}

// === impl TableEntry ===

impl TableEntry {
    /// Returns the handle. `None` if the words are a limiter's state.
    pub(super) fn handle(&self) -> Option<u32> {
        let [handle, ..] = self.state;
        (self.kind != EntryKind::Words).then_some(handle)
    }

    /// Returns whether the entry is in use and has not expired.
    pub(super) fn is_live(&self, span: ExpiryRange) -> bool {
        self.tag != 0 && self.expires > span.second && self.expires <= span.last
    }
}

// === impl BucketSurvey ===

impl BucketSurvey {
    fn count(&mut self, entry: EvictionRank) {
        self.live += 1;
        self.weakest = Some(self.weakest.map_or(entry, |weakest| weakest.min(entry)));
    }
}
