//! The locks and atomics of the memory store.
//!
//! Tests use replacements that behave alike and that a model checker can schedule.

#[cfg(not(test))]
pub(super) use {
    parking_lot::Mutex,
    std::sync::atomic::{AtomicU64, AtomicUsize},
    std::thread::yield_now,
};

#[cfg(test)]
pub(super) use super::steered::{AtomicU64, AtomicUsize, Mutex, yield_now};
