//! The counters of one shard, in buckets. Every key has two candidate buckets.
//!
//! The table is allocated once and never grows. Expired entries stay until a new key replaces them. When both
//! buckets are full, the entry furthest below its limit is evicted, because its loss changes least. Leases of
//! requests in flight are evicted last.
//!
//! Large counters are kept elsewhere: a method that overwrites an entry returns its handle, and the caller frees
//! the counter.

use super::bucket::{BucketSurvey, EntryData, ExpiryRange, PLACES, TableBucket, TableEntry};
use super::capacity::SlotCapacity;
use super::hash::KeyTag;

/// The number of seconds by which timestamps of concurrent requests may differ. A larger difference means that
/// the clock was set back.
const SLACK: u32 = 10;

/// A bucket with at most this many live entries counts as empty.
const HALF: usize = PLACES / 2;

/// Buckets of one shard.
#[derive(Debug)]
pub(super) struct CounterTable {
    buckets: Box<[TableBucket]>,
    /// The maximum lifetime of an entry, in seconds.
    longest: u32,
}

/// The entry that a new one has replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DisplacedEntry {
    /// Whether it had not expired.
    pub(super) live: bool,
    /// Its handle, if it had a large counter.
    pub(super) handle: Option<u32>,
}

/// The position of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySlot {
    bucket: usize,
    place: usize,
}

// === impl CounterTable ===

impl CounterTable {
    /// Creates a table with `buckets` buckets, at least one.
    pub(super) fn new(buckets: usize) -> Self {
        Self {
            buckets: vec![TableBucket::default(); buckets.max(1)].into(),
            longest: 0,
        }
    }

    /// Returns the position of the key's entry, expired or not.
    #[inline(always)]
    pub(super) fn find(&self, key: KeyTag) -> Option<EntrySlot> {
        let count = self.buckets.len();
        let first = self.find_in(key.bucket(count), key.get());
        first.or_else(|| self.find_in(key.other_bucket(count), key.get()))
    }

    #[inline(always)]
    fn find_in(&self, bucket: usize, tag: u64) -> Option<EntrySlot> {
        let place = self.buckets.get(bucket)?.find(tag)?;
        Some(EntrySlot { bucket, place })
    }

    /// Returns the key's entry, expired or not, to be updated in place.
    #[inline(always)]
    pub(super) fn find_mut(&mut self, key: KeyTag) -> Option<&mut EntryData> {
        self.find(key).and_then(|spot| self.entry_mut(spot))
    }

    /// Returns a copy of the entry at `spot`, expired or not.
    pub(super) fn entry(&self, spot: EntrySlot) -> TableEntry {
        let bucket = self.buckets.get(spot.bucket);
        bucket.map_or_else(TableEntry::default, |bucket| bucket.entry(spot.place))
    }

    /// Writes `entry` at `spot`; returns the handle that was there.
    #[must_use = "the handle stands for something"]
    pub(super) fn put(&mut self, spot: EntrySlot, entry: TableEntry) -> Option<u32> {
        let bucket = self.buckets.get_mut(spot.bucket)?;
        let handle = bucket.entry(spot.place).handle();
        bucket.put(spot.place, entry);
        handle
    }

    /// Returns the entry at `spot`, expired or not, to be updated in place.
    #[inline(always)]
    pub(super) fn entry_mut(&mut self, spot: EntrySlot) -> Option<&mut EntryData> {
        self.buckets.get_mut(spot.bucket)?.entry_mut(spot.place)
    }

    /// Clears `spot`, which must be in use; returns the handle that was there.
    #[must_use = "the handle stands for something"]
    pub(super) fn clear(&mut self, spot: EntrySlot, room: &SlotCapacity) -> Option<u32> {
        room.give(1);
        self.put(spot, TableEntry::default())
    }

    /// Writes a new entry for `key`.
    pub(super) fn insert(
        &mut self,
        key: KeyTag,
        entry: TableEntry,
        second: u32,
        room: &SlotCapacity,
    ) -> DisplacedEntry {
        let span = self.span(second);
        let mut surveys = key
            .buckets(self.buckets.len())
            .map(|bucket| (bucket, self.survey(bucket, span)));
        // Lookups read the first bucket first, so prefer it while both buckets have free slots.
        surveys.sort_by_key(|(_, survey)| survey.live.max(HALF));
        if let Some(spot) = find_free_slot(&surveys, |survey| survey.vacant(room)) {
            let handle = self.put(spot, entry);
            return DisplacedEntry {
                handle,
                live: false,
            };
        }
        if let Some(spot) = weakest(&surveys) {
            let handle = self.put(spot, entry);
            return DisplacedEntry { handle, live: true };
        }
        // Other buckets use all of the capacity: exceed it by one rather than leave a key uncounted.
        let spot = find_free_slot(&surveys, |survey| survey.squeezed(room));
        let handle = spot.and_then(|spot| self.put(spot, entry));
        DisplacedEntry {
            handle,
            live: false,
        }
    }

    /// Returns all entries that have not expired.
    pub(super) fn live(&self, second: u32) -> impl Iterator<Item = TableEntry> {
        let span = self.span(second);
        let entries = self.buckets.iter().flat_map(TableBucket::entries);
        entries.filter(move |entry| entry.is_live(span))
    }

    /// Clears all entries for which `unwanted` returns `true`; returns their handles.
    #[must_use = "the handles stand for something"]
    pub(super) fn clear_all(
        &mut self,
        unwanted: impl Fn(&TableEntry) -> bool,
        room: &SlotCapacity,
    ) -> Vec<u32> {
        let mut handles = Vec::new();
        for bucket in &mut self.buckets {
            for place in 0..PLACES {
                let entry = bucket.entry(place);
                if entry.tag != 0 && unwanted(&entry) {
                    handles.extend(entry.handle());
                    bucket.put(place, TableEntry::default());
                    room.give(1);
                }
            }
        }
        handles
    }

    /// Returns the valid expiry times at `second`.
    pub(super) fn span(&self, second: u32) -> ExpiryRange {
        let last = second.saturating_add(self.longest).saturating_add(SLACK);
        ExpiryRange { second, last }
    }

    /// Raises the maximum lifetime of entries to this many seconds.
    pub(super) fn allow(&mut self, seconds: u32) {
        self.longest = self.longest.max(seconds);
    }

    /// Returns the maximum lifetime of entries, in seconds.
    pub(super) fn longest(&self) -> u32 {
        self.longest
    }

    /// Returns the size of the buckets, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    fn survey(&self, bucket: usize, span: ExpiryRange) -> BucketSurvey {
        let bucket = self.buckets.get(bucket);
        bucket.map_or_else(BucketSurvey::default, |bucket| bucket.survey(span))
    }
}

fn find_free_slot(
    surveys: &[(usize, BucketSurvey)],
    pick: impl Fn(&BucketSurvey) -> Option<usize>,
) -> Option<EntrySlot> {
    surveys.iter().find_map(|(bucket, survey)| {
        let place = pick(survey)?;
        let bucket = *bucket;
        Some(EntrySlot { bucket, place })
    })
}

fn weakest(surveys: &[(usize, BucketSurvey)]) -> Option<EntrySlot> {
    let weak = surveys.iter().filter_map(|(bucket, survey)| {
        let weakest = survey.weakest?;
        Some((weakest, *bucket))
    });
    let (weakest, bucket) = weak.min()?;
    let place = weakest.place;
    Some(EntrySlot { bucket, place })
}

// === impl BucketSurvey ===

impl BucketSurvey {
    /// Returns a slot that needs no eviction: an expired entry, or an empty slot within the capacity.
    fn vacant(&self, room: &SlotCapacity) -> Option<usize> {
        let empty = || self.empty.filter(|_| room.take());
        self.expired.or_else(empty)
    }

    /// Returns an empty slot, even above the capacity.
    fn squeezed(&self, room: &SlotCapacity) -> Option<usize> {
        self.empty.inspect(|_| room.squeeze())
    }
}
