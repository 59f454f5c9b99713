//! The memory that inspected request bodies may take in the whole process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// The maximum number of bytes of all inspected bodies together.
const MAX_BYTES: usize = 64 << 20;

/// The bytes that inspected bodies take. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct BodyBudget(Arc<AtomicUsize>);

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub struct BodyReservation {
    budget: BodyBudget,
    bytes: usize,
}

/// Bytes with their part of the budget.
struct ReservedBytes {
    bytes: Vec<u8>,
    _reservation: BodyReservation,
}

// === impl BodyBudget ===

impl BodyBudget {
    /// Reserves `bytes`. `None` if the budget does not have them.
    pub fn reserve(&self, bytes: usize) -> Option<BodyReservation> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= MAX_BYTES);
        let reserved = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        reserved.is_ok().then(|| BodyReservation {
            budget: self.clone(),
            bytes,
        })
    }

    /// The number of reserved bytes.
    pub fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl BodyReservation ===

impl BodyReservation {
    /// Reserves more, so that it is `bytes` in all. Returns whether the budget has them.
    pub fn extend_to(&mut self, bytes: usize) -> bool {
        let Some(mut more) = self.budget.reserve(bytes.saturating_sub(self.bytes)) else {
            return false;
        };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }

    /// Returns `bytes` such that their part of the budget is freed with their memory. Frees the rest now.
    pub fn hold(mut self, mut bytes: Vec<u8>) -> Bytes {
        bytes.shrink_to_fit();
        let spare = self.bytes.saturating_sub(bytes.len());
        self.bytes -= spare;
        self.budget.0.fetch_sub(spare, Ordering::Relaxed);
        Bytes::from_owner(ReservedBytes {
            bytes,
            _reservation: self,
        })
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

// === impl ReservedBytes ===

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_reserves_nothing_more() {
        let budget = BodyBudget::default();
        let most = budget.reserve(MAX_BYTES - 1);
        assert!(budget.reserve(2).is_none());
        assert!(budget.reserve(usize::MAX).is_none());
        assert!(budget.reserve(1).is_some());
        drop(most);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_reservation_grows_within_the_budget() {
        let budget = BodyBudget::default();
        let mut one = budget.reserve(10).unwrap();
        assert!(one.extend_to(MAX_BYTES - 1));
        let mut other = budget.reserve(1).unwrap();
        assert!(!other.extend_to(2));
        assert_eq!(budget.used(), MAX_BYTES);
        drop(one);
        assert!(other.extend_to(2) && other.extend_to(1));
        assert_eq!(budget.used(), 2);
        drop(other);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_reservation_ends_with_the_last_clone_of_the_bytes() {
        let budget = BodyBudget::default();
        let reserved = budget.reserve(1000).unwrap();
        let bytes = reserved.hold(b"user=alice".to_vec());
        assert_eq!(budget.used(), 10);
        let clone = bytes.slice(5..);
        drop(bytes);
        assert_eq!(budget.used(), 10);
        assert_eq!(&clone[..], b"alice");
        drop(clone);
        assert_eq!(budget.used(), 0);
    }
}
