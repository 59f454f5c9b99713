//! Waits that end when they should: tokio's timers count whole milliseconds, in which a near origin
//! answers several times over. One timer of the kernel's a core, armed for whoever is next.

#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;

/// What is left of a wait is spent waiting actively, if it is no more than this.
const SPIN: Duration = Duration::from_micros(80);
/// After that, nobody waits actively for so many times as long: a core that is busy has better
/// things to do.
const REST: u32 = 8;
/// The timer is set to wake us so much too early: it is not always as late, and who is woken is not
/// yet awake.
const EARLY: Duration = Duration::from_micros(40);
/// A timer that is later than this is late for another reason, such as a machine under load.
const LATEST: Duration = Duration::from_micros(500);

/// One core's waits.
pub struct Alarm {
    clock: Clock,
    waiting: RefCell<BTreeMap<Place, Waker>>,
    next: Cell<u64>,
    /// How late the timer wakes us when it is rather late: it is set so much earlier.
    late: Cell<Duration>,
    /// Nobody waits actively before.
    rested: Cell<Option<Instant>>,
    /// When it is set to wake us.
    set: Cell<Option<Instant>>,
    /// Made when first needed; `None`: the kernel gives none, and tokio's timers must do.
    timer: OnceCell<Option<AsyncFd<OwnedFd>>>,
}

/// Who waits: until when, and which of those who wait until then.
type Place = (Instant, u64);

/// A wait; whoever drops it waits no more.
struct Wait<'a> {
    alarm: &'a Alarm,
    place: Place,
}

// === impl Alarm ===

impl Alarm {
    /// Nobody waits.
    pub fn new(clock: Clock) -> Rc<Self> {
        Rc::new(Self {
            clock,
            waiting: RefCell::default(),
            next: Cell::new(0),
            late: Cell::new(Duration::ZERO),
            rested: Cell::new(None),
            set: Cell::new(None),
            timer: OnceCell::new(),
        })
    }

    /// Waits until then.
    pub async fn until(self: &Rc<Self>, then: Instant) {
        if self.start().is_none() {
            return tokio::time::sleep_until(then.into()).await;
        }
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let wait = Wait {
            alarm: self,
            place: (then, number),
        };
        poll_fn(|cx| wait.poll(cx)).await;
    }

    /// The timer, with a task that rings when it is due.
    fn start(self: &Rc<Self>) -> Option<()> {
        let timer = self.timer.get_or_init(|| {
            let timer = timer().ok()?;
            tokio::task::spawn_local(ring_forever(Rc::clone(self)));
            Some(timer)
        });
        timer.as_ref().map(|_| ())
    }

    /// Wakes whose time has come, or is so near that the rest is too short for a timer, and arms it
    /// for who is next.
    fn ring(&self) {
        let now = self.clock.instant();
        self.note(now);
        let near = now + self.spin(now);
        let mut waiting = self.waiting.borrow_mut();
        while let Some(first) = waiting.first_entry()
            && first.key().0 <= near
        {
            first.remove().wake();
        }
        if let Some(((then, _), _)) = waiting.first_key_value() {
            self.arm(*then, now);
        }
    }

    /// How long one may wait actively now.
    fn spin(&self, now: Instant) -> Duration {
        match self.rested.get() {
            Some(rested) if now < rested => Duration::ZERO,
            _ => SPIN,
        }
    }

    /// Waits actively.
    fn spin_until(&self, then: Instant, began: Instant) {
        let mut now = began;
        while now < then {
            std::hint::spin_loop();
            now = self.clock.instant();
        }
        let spun = now.saturating_duration_since(began).min(2 * SPIN);
        self.rested.set(Some(now + spun * REST));
    }

    /// Takes in how late the timer was.
    fn note(&self, now: Instant) {
        let late = self
            .set
            .take()
            .map(|set| now.saturating_duration_since(set));
        if let Some(late) = late {
            let (known, late) = (self.late.get(), late.min(LATEST));
            // Faster up than down: who wakes early can wait, and who wakes late cannot.
            self.late.set(match late > known {
                true => known + (late - known) / 4,
                false => known - (known - late) / 16,
            });
        }
    }

    /// Sets the timer to `then`, or as much earlier as it is late.
    fn arm(&self, then: Instant, now: Instant) {
        let Some(Some(timer)) = self.timer.get() else {
            return;
        };
        let time = then.saturating_duration_since(now);
        // Never all of it: a timer that is early for once is set again, and not again and again.
        let time = time - (self.late.get() + EARLY).min(time / 2);
        self.set.set(Some(now + time));
        let value = Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            // Nothing at all would disarm it.
            tv_nsec: time.subsec_nanos().max(1).into(),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        // It fails only for times that do not exist.
        let _ = timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once);
    }
}

#[expect(
    deprecated,
    reason = "sound here: an `OwnedFd` is open for as long as it lives, and is always the same one"
)]
fn timer() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    AsyncFd::with_interest(fd, Interest::READABLE)
}

async fn ring_forever(alarm: Rc<Alarm>) {
    let Some(Some(timer)) = alarm.timer.get() else {
        return;
    };
    while let Ok(mut due) = timer.readable().await {
        // Reading is what makes it wait for the next time; how often it was due does not matter.
        let _ = rustix::io::read(timer.get_ref(), &mut [0; 8]);
        due.clear_ready();
        alarm.ring();
    }
}

// === impl Wait ===

impl Wait<'_> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let (alarm, then) = (self.alarm, self.place.0);
        let now = alarm.clock.instant();
        if then <= now + alarm.spin(now) {
            if now < then {
                alarm.spin_until(then, now);
            }
            return Poll::Ready(());
        }
        let mut waiting = alarm.waiting.borrow_mut();
        let new = waiting.insert(self.place, cx.waker().clone()).is_none();
        if new && waiting.first_key_value().map(|(place, _)| place) == Some(&self.place) {
            alarm.arm(then, now);
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.alarm.waiting.borrow_mut().remove(&self.place);
    }
}
