//! What threads meet at in this store: its locks and atomic numbers, named in one place.
//!
//! Tests take others in their place, which behave the same and which a model checker can steer.

#[cfg(not(test))]
pub(super) use {
    parking_lot::Mutex,
    std::sync::atomic::{AtomicU64, AtomicUsize},
    std::thread::yield_now,
};

#[cfg(test)]
pub(super) use super::steered::{AtomicU64, AtomicUsize, Mutex, yield_now};
