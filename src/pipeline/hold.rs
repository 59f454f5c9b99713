//! Holds requests before their decision is carried out, with a limit on their number.
//!
//! Their bodies are not read in the meantime, except what was inspected before. A client that disconnects frees its slot; for an HTTP/1 client
//! with a body that has not arrived yet, the disconnect is only detected when the wait is over.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{sleep, sleep_until};

use super::CoreState;
use super::request_context::RequestContext;
use crate::clock::Clock;
use crate::snapshot::Snapshot;

/// The last part of a precise wait, for which tokio's timer is too coarse.
const FINE: Duration = Duration::from_millis(2);

/// A slot among the requests that are held. Dropping it frees the slot.
pub struct HeldSlot {
    core: Rc<CoreState>,
    /// The maximum wait of a request once the gateway drains: half of the drain timeout, so that the other half
    /// is left for its response.
    drain_wait: Duration,
}

/// Holds a request until the decided time has passed since its rules ran. If too many requests are held already, it
/// does not wait, and the decision changes.
pub async fn hold(request: &mut RequestContext<'_, '_>) {
    let (state, time) = (request.state, request.decision.hold);
    if time.is_zero() {
        return;
    }
    let Some(slot) = HeldSlot::take(&state.core, &state.snapshot) else {
        state.snapshot.rules.cannot_hold(&mut request.decision);
        if !request.decision.verdict.is_served() {
            state.release_leases();
        }
        return;
    };
    slot.until_drained(sleep_until((request.ready_at + time).into()))
        .await;
    request.released_at = slot.now();
}

// === impl HeldSlot ===

impl HeldSlot {
    /// Takes a slot. `None` if too many requests are held already.
    pub fn take(core: &Rc<CoreState>, snapshot: &Snapshot) -> Option<Self> {
        let more = |taken| (taken < snapshot.settings.max_held).then_some(taken + 1);
        let held = &core.live.process.held;
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self {
            core: core.clone(),
            drain_wait: snapshot.settings.drain_timeout / 2,
        })
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.core.instant()
    }

    /// Waits until `then`, to a fraction of a millisecond.
    pub async fn until(&self, then: Instant) {
        let clock = &self.core.live.process.clock;
        self.until_drained(sleep_precisely(then, clock)).await;
    }

    /// Waits for `wait`, but during a drain at most for `drain_wait`.
    async fn until_drained(&self, wait: impl Future<Output = ()>) {
        let drained = async {
            self.core.drain.started().await;
            sleep(self.drain_wait).await;
        };
        tokio::select! {
            () = wait => {}
            () = drained => {}
        }
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        self.core.live.process.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sleeps until `then`. Tokio's timer counts whole milliseconds, in which an origin server may send several
/// pieces of a body, so a kernel timer ends the wait.
async fn sleep_precisely(then: Instant, clock: &Clock) {
    if then.saturating_duration_since(clock.instant()) > FINE {
        sleep_until((then - FINE).into()).await;
    }
    let rest = then.saturating_duration_since(clock.instant());
    if rest.is_zero() {
        return;
    }
    match kernel_timer(rest) {
        // It becomes readable once, when it expires.
        Ok(timer) => drop(timer.readable().await),
        Err(_) => sleep(rest).await,
    }
}

/// Creates a kernel timer that expires once, after `time`, which is below a second.
#[expect(
    deprecated,
    reason = "sound here: an `OwnedFd` is open for as long as it lives, and is always the same one"
)]
fn kernel_timer(time: Duration) -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    AsyncFd::with_interest(timer, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_precise_sleep_is_never_early() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = Clock::System;
            sleep_precisely(clock.instant() - Duration::from_secs(1), &clock).await;
            for micros in [0, 1, 50, 300, 900, 1500, 5000, 20, 700] {
                let then = clock.instant() + Duration::from_micros(micros);
                sleep_precisely(then, &clock).await;
                assert!(clock.instant() >= then, "{micros} µs");
            }
        });
    }
}
