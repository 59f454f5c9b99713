//! Sorted ranges with an index: the span from the least to the greatest value is cut into about as
//! many slots as there are ranges, and a search looks only at the ranges that begin in the value's
//! slot. Ranges that crowd into one slot cost a binary search among them, no more.

use std::sync::Arc;

use super::SCAN;

/// The index has at most this many slots, as a power of two: 256 KiB.
const MOST_SLOTS: u32 = 16;

/// Inclusive ranges: sorted, disjoint.
#[derive(Clone, Debug)]
pub(super) struct Ranges<T> {
    ranges: Arc<[(T, T)]>,
    index: Option<Index<T>>,
}

#[derive(Clone, Debug)]
struct Index<T> {
    least: T,
    most: T,
    shift: u32,
    /// How many ranges begin before each slot, and before the end.
    before: Arc<[u32]>,
}

/// A value that has a place among others.
pub(super) trait Point: Copy + Ord {
    /// How many bits the distance between the two has.
    fn distance_bits(least: Self, most: Self) -> u32;
    /// The distance from `least`, without its last `shift` bits.
    fn slot(self, least: Self, shift: u32) -> usize;
}

// === impl Ranges ===

impl<T: Point> Ranges<T> {
    pub(super) fn new(mut ranges: Vec<(T, T)>) -> Ranges<T> {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ranges {
            index: Index::new(&merged),
            ranges: merged.into(),
        }
    }

    /// The least value and the greatest.
    pub(super) fn bounds(&self) -> Option<(T, T)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }

    /// The ranges, if they are at most `most`.
    pub(super) fn few(&self, most: usize) -> Option<&[(T, T)]> {
        Some(&*self.ranges).filter(|ranges| ranges.len() <= most)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// A number that only copies share.
    pub(super) fn id(&self) -> usize {
        Arc::as_ptr(&self.ranges).cast::<()>().addr()
    }

    #[inline]
    pub(super) fn contains(&self, value: T) -> bool {
        match &self.index {
            Some(index) => self.find(index, value),
            None => {
                let mut ranges = self.ranges.iter();
                ranges.any(|&(low, high)| low <= value && value <= high)
            }
        }
    }

    fn find(&self, index: &Index<T>, value: T) -> bool {
        let Some((from, to)) = index.slot(value) else {
            return false;
        };
        let Some(near) = self.ranges.get(from..to) else {
            return false;
        };
        let after = from + near.partition_point(|&(low, _)| low <= value);
        after
            .checked_sub(1)
            .and_then(|at| self.ranges.get(at))
            .is_some_and(|&(_, high)| value <= high)
    }
}

// === impl Index ===

impl<T: Point> Index<T> {
    /// `None`: so few ranges that a scan is cheaper.
    fn new(ranges: &[(T, T)]) -> Option<Self> {
        let (least, most) = (ranges.first()?.0, ranges.last()?.1);
        if ranges.len() <= SCAN || u32::try_from(ranges.len()).is_err() {
            return None;
        }
        let bits = ranges.len().ilog2().min(MOST_SLOTS);
        let shift = T::distance_bits(least, most).saturating_sub(bits);
        let mut before = Vec::with_capacity((1 << bits) + 1);
        for (count, (low, _)) in (0..).zip(ranges) {
            let slot = low.slot(least, shift);
            before.resize(before.len().max(slot + 1), count);
        }
        before.resize((1 << bits) + 1, ranges.len() as u32);
        Some(Index {
            least,
            most,
            shift,
            before: before.into(),
        })
    }

    /// Which ranges begin in the slot of `value`; `None` if it is before or after them all.
    #[inline]
    fn slot(&self, value: T) -> Option<(usize, usize)> {
        if value < self.least || value > self.most {
            return None;
        }
        let slot = value.slot(self.least, self.shift);
        let (from, to) = (self.before.get(slot)?, self.before.get(slot + 1)?);
        Some((*from as usize, *to as usize))
    }
}

// === impl Point ===

macro_rules! points {
    ($($int:ty)*) => {$(
        impl Point for $int {
            fn distance_bits(least: Self, most: Self) -> u32 {
                <$int>::BITS - most.abs_diff(least).leading_zeros()
            }

            #[inline]
            fn slot(self, least: Self, shift: u32) -> usize {
                (self.abs_diff(least) >> shift) as usize
            }
        }
    )*};
}

points!(u32 u128 i64);
