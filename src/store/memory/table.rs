//! One shard's counters: buckets, of which every key has two.
//!
//! The allocation is made once and never grows. Expired entries stay until a newcomer takes their
//! place. When neither bucket has a place, the entry furthest below its limit makes room: it is
//! the one whose loss changes least. Requests in flight make room last.
//!
//! What an entry's handle stands for is kept elsewhere: whatever overwrites an entry hands its
//! handle to the caller, who frees it.

use super::bucket::{Bucket, Entry, PLACES, Place, Span, Survey};
use super::capacity::Room;
use super::hash::Tag;

/// By how many seconds the time may differ between requests before it means that the clock was set
/// back.
const SLACK: u32 = 10;

/// Up to so many entries a bucket is as good as an empty one.
const HALF: usize = PLACES / 2;

/// Buckets of one shard.
#[derive(Debug)]
pub(super) struct Table {
    buckets: Box<[Bucket]>,
    /// How many seconds after it was written an entry may expire, at the most.
    longest: u32,
}

/// What had to go for a new entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Displaced {
    /// It still meant something.
    pub(super) live: bool,
    /// Its handle.
    pub(super) handle: Option<u32>,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    bucket: usize,
    place: usize,
}

// === impl Table ===

impl Table {
    /// A table with `buckets` buckets, at least one.
    pub(super) fn new(buckets: usize) -> Self {
        Self {
            buckets: vec![Bucket::default(); buckets.max(1)].into(),
            longest: 0,
        }
    }

    /// Where the key's entry is, expired or not.
    #[inline(always)]
    pub(super) fn find(&self, key: Tag) -> Option<Spot> {
        let count = self.buckets.len();
        let first = self.find_in(key.bucket(count), key.get());
        first.or_else(|| self.find_in(key.other_bucket(count), key.get()))
    }

    #[inline(always)]
    fn find_in(&self, bucket: usize, tag: u64) -> Option<Spot> {
        let place = self.buckets.get(bucket)?.find(tag)?;
        Some(Spot { bucket, place })
    }

    /// The key's entry, expired or not, to be updated in place.
    #[inline(always)]
    pub(super) fn find_mut(&mut self, key: Tag) -> Option<&mut Place> {
        self.find(key).and_then(|spot| self.place_mut(spot))
    }

    /// All that is at `spot`, expired or not.
    pub(super) fn entry(&self, spot: Spot) -> Entry {
        let bucket = self.buckets.get(spot.bucket);
        bucket.map_or_else(Entry::default, |bucket| bucket.entry(spot.place))
    }

    /// Writes `entry` at `spot`; returns the handle that was there.
    #[must_use = "the handle stands for something"]
    pub(super) fn put(&mut self, spot: Spot, entry: Entry) -> Option<u32> {
        let bucket = self.buckets.get_mut(spot.bucket)?;
        let handle = bucket.entry(spot.place).handle();
        bucket.put(spot.place, entry);
        handle
    }

    /// What is at `spot`, expired or not, to be updated in place.
    #[inline(always)]
    pub(super) fn place_mut(&mut self, spot: Spot) -> Option<&mut Place> {
        self.buckets.get_mut(spot.bucket)?.place_mut(spot.place)
    }

    /// Empties `spot`, which was in use; returns the handle that was there.
    #[must_use = "the handle stands for something"]
    pub(super) fn clear(&mut self, spot: Spot, room: &Room) -> Option<u32> {
        room.give(1);
        self.put(spot, Entry::default())
    }

    /// Writes a new entry for `key`.
    pub(super) fn insert(&mut self, key: Tag, entry: Entry, second: u32, room: &Room) -> Displaced {
        let span = self.span(second);
        let mut surveys = key
            .buckets(self.buckets.len())
            .map(|bucket| (bucket, self.survey(bucket, span)));
        // The first is looked at first, so it is taken as long as that leaves room in both.
        surveys.sort_by_key(|(_, survey)| survey.live.max(HALF));
        if let Some(spot) = find_place(&surveys, |survey| survey.vacant(room)) {
            let handle = self.put(spot, entry);
            return Displaced {
                handle,
                live: false,
            };
        }
        if let Some(spot) = weakest(&surveys) {
            let handle = self.put(spot, entry);
            return Displaced { handle, live: true };
        }
        // Every entry that there may be is elsewhere: better one too many than one uncounted.
        let spot = find_place(&surveys, |survey| survey.squeezed(room));
        let handle = spot.and_then(|spot| self.put(spot, entry));
        Displaced {
            handle,
            live: false,
        }
    }

    /// All entries that have not expired.
    pub(super) fn live(&self, second: u32) -> impl Iterator<Item = Entry> {
        let span = self.span(second);
        let entries = self.buckets.iter().flat_map(Bucket::entries);
        entries.filter(move |entry| entry.is_live(span))
    }

    /// Clears all entries that `unwanted` names; returns their handles.
    #[must_use = "the handles stand for something"]
    pub(super) fn clear_all(&mut self, unwanted: impl Fn(&Entry) -> bool, room: &Room) -> Vec<u32> {
        let mut handles = Vec::new();
        for bucket in &mut self.buckets {
            for place in 0..PLACES {
                let entry = bucket.entry(place);
                if entry.tag != 0 && unwanted(&entry) {
                    handles.extend(entry.handle());
                    bucket.put(place, Entry::default());
                    room.give(1);
                }
            }
        }
        handles
    }

    /// Where the ends of entries that mean something lie at `second`.
    pub(super) fn span(&self, second: u32) -> Span {
        let last = second.saturating_add(self.longest).saturating_add(SLACK);
        Span { second, last }
    }

    /// Lets entries last this many seconds.
    pub(super) fn allow(&mut self, seconds: u32) {
        self.longest = self.longest.max(seconds);
    }

    /// How many seconds entries may last.
    pub(super) fn longest(&self) -> u32 {
        self.longest
    }

    /// How much memory the buckets take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    fn survey(&self, bucket: usize, span: Span) -> Survey {
        let bucket = self.buckets.get(bucket);
        bucket.map_or_else(Survey::default, |bucket| bucket.survey(span))
    }
}

fn find_place(
    surveys: &[(usize, Survey)],
    pick: impl Fn(&Survey) -> Option<usize>,
) -> Option<Spot> {
    surveys.iter().find_map(|(bucket, survey)| {
        let place = pick(survey)?;
        let bucket = *bucket;
        Some(Spot { bucket, place })
    })
}

fn weakest(surveys: &[(usize, Survey)]) -> Option<Spot> {
    let weak = surveys.iter().filter_map(|(bucket, survey)| {
        let weakest = survey.weakest?;
        Some((weakest, *bucket))
    });
    let (weakest, bucket) = weak.min()?;
    let place = weakest.place;
    Some(Spot { bucket, place })
}

// === impl Survey ===

impl Survey {
    /// A place that costs nobody anything.
    fn vacant(&self, room: &Room) -> Option<usize> {
        let empty = || self.empty.filter(|_| room.take());
        self.expired.or_else(empty)
    }

    /// An empty place, past the bound.
    fn squeezed(&self, room: &Room) -> Option<usize> {
        self.empty.inspect(|_| room.squeeze())
    }
}
