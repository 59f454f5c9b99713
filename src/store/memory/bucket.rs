//! Nine entries in four cache lines.
//!
//! A bucket stores and compares; which of its places to use is decided in [`super::table`].

use crate::clock::Timestamp;
use crate::limit::State;

/// How many entries a bucket has.
pub(super) const PLACES: usize = 9;

/// Nine entries, their tags apart, so that looking for one reads little. An empty place is all zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct TableBucket {
    tags: [u64; PLACES],
    places: [EntryData; PLACES],
}

/// An entry without its tag; the fields are those of [`TableEntry`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntryData {
    expires: u32,
    state: State,
    slot: u16,
    fill: u8,
    kind: EntryKind,
}

/// What the words of an entry mean, and what becomes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryKind {
    /// The limiter's numbers.
    #[default]
    Words,
    /// The first is a handle: the counter itself is kept beside the table.
    Handle,
    /// A handle of leases. Their requests are in flight, so they make room last.
    Leases,
}

/// From when to when an entry's end may lie. One that ends later than anything could that was
/// counted by now is from before the clock was set back: it means no more than an expired one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpiryRange {
    pub(super) second: u32,
    pub(super) last: u32,
}

/// What is kept of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableEntry {
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
    /// What the words are.
    pub(super) kind: EntryKind,
}

/// What a newcomer can find in a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BucketSurvey {
    /// Entries that have not expired.
    pub(super) live: usize,
    /// A place that was never used or has been cleared.
    pub(super) empty: Option<usize>,
    /// A place whose entry has expired.
    pub(super) expired: Option<usize>,
    /// The live entry furthest below its limit, of those the one that expires first.
    pub(super) weakest: Option<EvictionRank>,
}

/// How little would be lost with an entry, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    in_flight: bool,
    fill: u8,
    expires: u32,
    pub(super) place: usize,
}

// === impl TableBucket ===

impl TableBucket {
    /// Where the entry with this tag is.
    #[inline]
    pub(super) fn find(&self, tag: u64) -> Option<usize> {
        self.tags.iter().position(|found| *found == tag)
    }

    /// The entry at `place`, to be updated.
    #[inline(always)]
    pub(super) fn entry_mut(&mut self, place: usize) -> Option<&mut EntryData> {
        self.places.get_mut(place)
    }

    /// All that is at `place`.
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

    /// What a newcomer would find.
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

    /// All that is in it, empty places too.
    pub(super) fn entries(&self) -> impl Iterator<Item = TableEntry> {
        (0..PLACES).map(|place| self.entry(place))
    }
}

// === impl EntryData ===

impl EntryData {
    /// Whether the words mean nothing any more.
    #[inline(always)]
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        u64::from(self.expires) * 1_000_000_000 <= now.as_nanos()
    }

    /// The words, expired or not.
    #[inline(always)]
    pub(super) fn words(&self) -> &State {
        &self.state
    }

    /// Writes what was counted.
    #[inline(always)]
    pub(super) fn update(&mut self, state: State, slot: u16, expires: u32, fill: u8) {
        self.state = state;
        self.slot = slot;
        self.refresh(expires, fill);
    }

    /// Lets it last until the second `expires`, if that is later than it does.
    pub(super) fn extend(&mut self, expires: u32) {
        self.expires = self.expires.max(expires);
    }

    /// Writes when it expires and how near its limit it is.
    #[inline(always)]
    pub(super) fn refresh(&mut self, expires: u32, fill: u8) {
        self.expires = expires;
        self.fill = fill;
    }
}

// === impl TableEntry ===

impl TableEntry {
    /// Its handle, if that is what its words are.
    pub(super) fn handle(&self) -> Option<u32> {
        let [handle, ..] = self.state;
        (self.kind != EntryKind::Words).then_some(handle)
    }

    /// Whether it means something.
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
