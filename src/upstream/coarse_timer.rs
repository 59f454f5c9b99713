//! One coarse timer for all requests of a core that wait for a response. It never fires early and at most
//! two ticks late. A precise timer per request would cost more than it gains.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(50);

/// Wakes tasks after their deadline. It ticks only while a task waits.
#[derive(Default)]
pub(super) struct CoarseTimer {
    ticks: Cell<u64>,
    ticking: Cell<bool>,
    waiting: RefCell<Slab<WaitingTask>>,
}

struct WaitingTask {
    due: u64,
    waker: Waker,
}

/// The deadline of a task. It is removed from the timer when dropped.
pub(super) struct CoarseDeadline {
    timer: Rc<CoarseTimer>,
    limit: Duration,
    due: u64,
    slot: Option<usize>,
}

// === impl CoarseTimer ===

impl CoarseTimer {
    fn add(self: &Rc<Self>, waiting: WaitingTask) -> usize {
        if !self.ticking.replace(true) {
            tokio::task::spawn_local(run(Rc::clone(self)));
        }
        self.waiting.borrow_mut().insert(waiting)
    }

    /// Returns the number of ticks so far.
    #[cfg(test)]
    pub(super) fn ticks(&self) -> u64 {
        self.ticks.get()
    }

    /// Wakes tasks with an expired deadline. Returns `false` if no task waits.
    fn tick(&self) -> bool {
        let now = self.ticks.get() + 1;
        self.ticks.set(now);
        let mut waiting = self.waiting.borrow_mut();
        for (_, waiting) in waiting.iter().filter(|(_, w)| w.due <= now) {
            waiting.waker.wake_by_ref();
        }
        if waiting.is_empty() {
            // Releases the memory after a burst.
            *waiting = Slab::new();
        }
        !waiting.is_empty()
    }

    /// Returns the tick at which `limit` has passed. The current tick is not counted, because it may be about
    /// to end.
    fn due_after(&self, limit: Duration) -> u64 {
        let ticks = limit.as_micros().div_ceil(TICK.as_micros());
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        self.ticks.get().saturating_add(ticks).saturating_add(1)
    }
}

async fn run(timer: Rc<CoarseTimer>) {
    loop {
        tokio::time::sleep(TICK).await;
        if !timer.tick() {
            timer.ticking.set(false);
            return;
        }
    }
}

// === impl CoarseDeadline ===

impl CoarseDeadline {
    /// Creates a deadline `limit` from now.
    pub(super) fn after(limit: Duration, timer: &Rc<CoarseTimer>) -> Self {
        Self {
            timer: Rc::clone(timer),
            limit,
            due: timer.due_after(limit),
            slot: None,
        }
    }

    /// Returns whether the deadline has passed. If not, the task is woken when it has. The deadline restarts on
    /// progress (`restart`), and when it passes while `excuse` is true.
    pub(super) fn has_passed(
        &mut self,
        cx: &mut Context<'_>,
        restart: bool,
        excuse: impl FnOnce() -> bool,
    ) -> bool {
        if restart {
            self.due = self.timer.due_after(self.limit);
        }
        if self.timer.ticks.get() >= self.due {
            if !excuse() {
                return true;
            }
            self.due = self.timer.due_after(self.limit);
        }
        self.wait(cx.waker());
        false
    }

    fn wait(&mut self, waker: &Waker) {
        let Some(slot) = self.slot else {
            let (due, waker) = (self.due, waker.clone());
            self.slot = Some(self.timer.add(WaitingTask { due, waker }));
            return;
        };
        if let Some(waiting) = self.timer.waiting.borrow_mut().get_mut(slot) {
            waiting.due = self.due;
            waiting.waker.clone_from(waker);
        }
    }
}

impl Drop for CoarseDeadline {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.timer.waiting.borrow_mut().try_remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_waiting(deadline: &mut CoarseDeadline) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        !deadline.has_passed(cx, false, || false)
    }

    #[tokio::test(flavor = "local")]
    async fn slots_are_reused_and_the_timer_stops_when_empty() {
        let timer = Rc::new(CoarseTimer::default());
        for _ in 0..10 {
            let mut two = [30, 40].map(|s| CoarseDeadline::after(Duration::from_secs(s), &timer));
            assert!(two.iter_mut().all(is_waiting));
            assert!(two.iter_mut().all(is_waiting));
            assert!(two.iter().all(|deadline| deadline.slot < Some(2)));
        }
        while timer.ticking.get() {
            tokio::time::sleep(TICK).await;
        }
        assert_eq!(timer.waiting.borrow().capacity(), 0);
    }

    #[tokio::test(flavor = "local")]
    async fn no_task_is_woken_early() {
        let timer = Rc::new(CoarseTimer::default());
        let mut deadline = CoarseDeadline::after(2 * TICK, &timer);
        assert!(is_waiting(&mut deadline));
        for _ in 0..2 {
            assert!(timer.tick());
            assert!(is_waiting(&mut deadline));
        }
        assert!(timer.tick());
        assert!(!is_waiting(&mut deadline));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(!deadline.has_passed(cx, false, || true));
        assert!(is_waiting(&mut deadline));
    }
}
