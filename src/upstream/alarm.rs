//! One coarse timer for all the requests of a core that wait for an answer. Never early, and late
//! by two ticks at most: a timer of its own costs each request more than it is worth.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// How often the alarm looks at who waits.
const TICK: Duration = Duration::from_millis(50);

/// Wakes those whose time is over. It ticks only while somebody waits.
#[derive(Default)]
pub(super) struct Alarm {
    ticks: Cell<u64>,
    ticking: Cell<bool>,
    waiting: RefCell<Vec<Option<Waiting>>>,
    free: RefCell<Vec<usize>>,
}

struct Waiting {
    due: u64,
    waker: Waker,
}

/// A place among those who wait; given up when dropped.
pub(super) struct Deadline {
    alarm: Rc<Alarm>,
    limit: Duration,
    due: u64,
    slot: Option<usize>,
}

// === impl Alarm ===

impl Alarm {
    fn enter(self: &Rc<Self>, waiting: Waiting) -> usize {
        if !self.ticking.replace(true) {
            tokio::task::spawn_local(tick(Rc::clone(self)));
        }
        let mut places = self.waiting.borrow_mut();
        let free = self.free.borrow_mut().pop();
        match free.and_then(|slot| places.get_mut(slot).map(|place| (slot, place))) {
            Some((slot, place)) => {
                *place = Some(waiting);
                slot
            }
            None => {
                places.push(Some(waiting));
                places.len() - 1
            }
        }
    }

    fn leave(&self, slot: usize) {
        if let Some(place) = self.waiting.borrow_mut().get_mut(slot) {
            *place = None;
            self.free.borrow_mut().push(slot);
        }
    }

    /// How often it has looked.
    #[cfg(test)]
    pub(super) fn ticks(&self) -> u64 {
        self.ticks.get()
    }

    /// Wakes whose time has come; `false`: nobody waits.
    fn ring(&self) -> bool {
        let now = self.ticks.get() + 1;
        self.ticks.set(now);
        let mut places = self.waiting.borrow_mut();
        for waiting in places.iter().flatten().filter(|w| w.due <= now) {
            waiting.waker.wake_by_ref();
        }
        let anybody = places.iter().any(Option::is_some);
        if !anybody {
            *places = Vec::new();
            *self.free.borrow_mut() = Vec::new();
        }
        anybody
    }
}

async fn tick(alarm: Rc<Alarm>) {
    loop {
        tokio::time::sleep(TICK).await;
        if !alarm.ring() {
            alarm.ticking.set(false);
            return;
        }
    }
}

// === impl Deadline ===

impl Deadline {
    /// `limit` from now.
    pub(super) fn after(limit: Duration, alarm: &Rc<Alarm>) -> Self {
        Self {
            alarm: Rc::clone(alarm),
            limit,
            due: due(alarm, limit),
            slot: None,
        }
    }

    /// Whether the time is over; if not, the task is woken when it is.
    pub(super) fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if self.alarm.ticks.get() >= self.due {
            return true;
        }
        self.wait(cx.waker());
        false
    }

    /// Begins anew, from now.
    pub(super) fn restart(&mut self) {
        self.due = due(&self.alarm, self.limit);
    }

    /// Gives the same time once more, from now.
    pub(super) fn extend(&mut self, cx: &mut Context<'_>) {
        self.restart();
        self.wait(cx.waker());
    }

    fn wait(&mut self, waker: &Waker) {
        let Some(slot) = self.slot else {
            let (due, waker) = (self.due, waker.clone());
            self.slot = Some(self.alarm.enter(Waiting { due, waker }));
            return;
        };
        if let Some(Some(waiting)) = self.alarm.waiting.borrow_mut().get_mut(slot) {
            waiting.due = self.due;
            waiting.waker.clone_from(waker);
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.alarm.leave(slot);
        }
    }
}

/// The current tick may be about to end, so it does not count.
fn due(alarm: &Alarm, limit: Duration) -> u64 {
    let ticks = limit.as_micros().div_ceil(TICK.as_micros());
    let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
    alarm.ticks.get().saturating_add(ticks).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "local")]
    async fn places_are_used_again_and_the_ticking_ends() {
        let alarm = Rc::new(Alarm::default());
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..10 {
            let mut two = [30, 40].map(|s| Deadline::after(Duration::from_secs(s), &alarm));
            assert!(two.iter_mut().all(|deadline| !deadline.is_over(cx)));
            assert!(two.iter_mut().all(|deadline| !deadline.is_over(cx)));
        }
        assert_eq!(alarm.waiting.borrow().len(), 2);
        while alarm.ticking.get() {
            tokio::time::sleep(TICK).await;
        }
        assert!(alarm.waiting.borrow().is_empty() && alarm.free.borrow().is_empty());
    }

    #[tokio::test(flavor = "local")]
    async fn nobody_is_called_early() {
        let alarm = Rc::new(Alarm::default());
        let cx = &mut Context::from_waker(Waker::noop());
        let mut deadline = Deadline::after(2 * TICK, &alarm);
        assert!(!deadline.is_over(cx));
        for _ in 0..2 {
            assert!(alarm.ring());
            assert!(!deadline.is_over(cx));
        }
        assert!(alarm.ring());
        assert!(deadline.is_over(cx));
        deadline.extend(cx);
        assert!(!deadline.is_over(cx));
    }
}
