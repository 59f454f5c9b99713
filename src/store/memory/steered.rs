//! Locks and atomics for tests. They are the real ones; within a model of shuttle, its scheduler chooses the
//! next thread before each use.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::atomic::{AtomicU64 as RealU64, AtomicUsize as RealUsize};

use shuttle::current::try_get_current_task;
use shuttle::sync::atomic::AtomicBool;

/// A lock.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    real: parking_lot::Mutex<T>,
    /// Serializes threads of a model: they share one real thread, so they must wait here.
    turn: Option<shuttle::sync::Mutex<()>>,
}

/// A lock that is held. The fields are in the order in which they must be dropped.
pub(crate) struct Guard<'a, T> {
    real: parking_lot::MutexGuard<'a, T>,
    _turn: Option<shuttle::sync::MutexGuard<'a, ()>>,
}

/// An atomic number. Naming it is a point where another thread may go first.
#[derive(Debug)]
pub(crate) struct Atomic<A> {
    real: A,
    point: Option<AtomicBool>,
}

pub(crate) type AtomicU64 = Atomic<RealU64>;
pub(crate) type AtomicUsize = Atomic<RealUsize>;

/// Lets others go first.
pub(crate) fn yield_now() {
    if in_model() {
        shuttle::thread::yield_now()
    } else {
        std::thread::yield_now()
    }
}

fn in_model() -> bool {
    try_get_current_task().is_some()
}

// === impl Mutex ===

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            real: parking_lot::Mutex::new(value),
            turn: in_model().then(Default::default),
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let turn = self.turn.as_ref();
        let _turn = turn.map(|turn| turn.lock().unwrap());
        let real = self.real.lock();
        Guard { real, _turn }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

// === impl Guard ===

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.real
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.real
    }
}

// === impl Atomic ===

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self::over(RealU64::new(value))
    }
}

impl AtomicUsize {
    pub(crate) fn new(value: usize) -> Self {
        Self::over(RealUsize::new(value))
    }
}

impl<A> Atomic<A> {
    fn over(real: A) -> Self {
        let point = in_model().then(|| AtomicBool::new(false));
        Self { real, point }
    }
}

impl<A> Deref for Atomic<A> {
    type Target = A;

    fn deref(&self) -> &A {
        if let Some(point) = &self.point {
            point.load(Ordering::SeqCst);
        }
        &self.real
    }
}
