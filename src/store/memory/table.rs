//! One shard's counters: buckets, of which every key has two.
//!
//! The allocation is made once and never grows. Expired entries stay until a newcomer takes their
//! place. When neither bucket has a place, the entry furthest below its limit makes room: it is
//! the one whose loss changes least.

use super::bucket::{Bucket, Entry, Survey};
use super::hash::KeyHash;
use super::room::Room;
use crate::limit::State;

/// Buckets of one shard.
#[derive(Debug)]
pub(super) struct Table {
    buckets: Box<[Bucket]>,
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
        }
    }

    /// Where the key's entry is, expired or not.
    pub(super) fn find(&self, key: KeyHash) -> Option<Spot> {
        key.buckets(self.buckets.len())
            .into_iter()
            .find_map(|bucket| {
                let place = self.buckets.get(bucket)?.find(key.tag)?;
                Some(Spot { bucket, place })
            })
    }

    /// The numbers at `spot`; none if they have expired.
    pub(super) fn state(&self, spot: Spot, second: u32) -> State {
        let bucket = self.buckets.get(spot.bucket);
        bucket.map_or_else(State::default, |bucket| bucket.state(spot.place, second))
    }

    /// Writes `entry` at `spot`.
    pub(super) fn put(&mut self, spot: Spot, entry: Entry) {
        if let Some(bucket) = self.buckets.get_mut(spot.bucket) {
            bucket.put(spot.place, entry);
        }
    }

    /// Empties `spot`, which was in use.
    pub(super) fn clear(&mut self, spot: Spot, room: &Room) {
        self.put(spot, Entry::default());
        room.give(1);
    }

    /// Writes a new entry for `key`. Says whether one that still meant something had to go.
    pub(super) fn insert(&mut self, key: KeyHash, entry: Entry, second: u32, room: &Room) -> bool {
        let mut surveys = key
            .buckets(self.buckets.len())
            .map(|bucket| (bucket, self.survey(bucket, second)));
        surveys.sort_by_key(|(_, survey)| survey.live);
        if let Some(spot) = find_place(&surveys, |survey| survey.vacant(room)) {
            self.put(spot, entry);
            return false;
        }
        if let Some(spot) = weakest(&surveys) {
            self.put(spot, entry);
            return true;
        }
        // Every entry that there may be is elsewhere: better one too many than one uncounted.
        if let Some(spot) = find_place(&surveys, |survey| survey.squeezed(room)) {
            self.put(spot, entry);
        }
        false
    }

    /// The slots of all entries that have not expired.
    pub(super) fn live_slots(&self, second: u32) -> impl Iterator<Item = u16> {
        let buckets = self.buckets.iter();
        buckets.flat_map(move |bucket| bucket.live_slots(second))
    }

    /// Clears all entries whose slot is `unwanted`.
    pub(super) fn clear_slots(&mut self, unwanted: impl Fn(u16) -> bool, room: &Room) {
        for bucket in &mut self.buckets {
            room.give(bucket.clear_slots(&unwanted));
        }
    }

    /// How much memory the buckets take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    fn survey(&self, bucket: usize, second: u32) -> Survey {
        let bucket = self.buckets.get(bucket);
        bucket.map_or_else(Survey::default, |bucket| bucket.survey(second))
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
