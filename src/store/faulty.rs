//! A remote store for tests: a memory store behind a network that is slow, down or loses replies, with a clock of
//! its own.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::memory::MemoryStore;
use super::{BanEntry, Remote, Store, StoreBounds, StoreError};
use crate::clock::Timestamp;
use crate::rules::plan::{HeldLeases, Plan, PlanResult};

/// The timeout of one call.
const TIMEOUT: Duration = Duration::from_millis(50);

/// A store that fails on demand.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: MemoryStore,
    faults: Faults,
}

/// What is wrong with the store.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// How long the network takes before the store sees a call, in milliseconds.
    pub(crate) latency: AtomicU64,
    /// Calls fail at once, and nothing is applied.
    pub(crate) is_down: AtomicBool,
    /// Every other call fails at once, and nothing is applied.
    pub(crate) fails_every_other: AtomicBool,
    /// The number of next calls that are applied and lose their reply.
    pub(crate) lost_replies: AtomicUsize,
    /// How far the store's clock is ahead of the caller's, in milliseconds.
    pub(crate) skew: AtomicI64,
    /// The number of calls so far.
    pub(crate) calls: AtomicUsize,
}

impl Store {
    /// Creates a store with remote counters behind a faulty network, and local counters.
    pub(crate) fn faulty(bounds: StoreBounds) -> Self {
        let inner = MemoryStore::new(bounds);
        Self {
            remote: Some(Remote::Faulty(Box::new(FaultyStore {
                inner,
                faults: Faults::default(),
            }))),
            ..Self::memory(bounds)
        }
    }

    /// Whether the next call to it fails.
    pub(super) fn next_call_fails(&self) -> bool {
        let Some(Remote::Faulty(faulty)) = &self.remote else {
            return false;
        };
        let calls = faulty.faults.calls.load(Ordering::SeqCst);
        let fails_every_other = faulty.faults.fails_every_other.load(Ordering::SeqCst);
        fails_every_other && calls.is_multiple_of(2)
    }

    /// What is wrong with it.
    pub(crate) fn faults(&self) -> &Faults {
        match self.remote.as_ref().unwrap() {
            Remote::Faulty(faulty) => &faulty.faults,
            Remote::Redis(_) => unreachable!("a faulty store"),
        }
    }
}

// === impl FaultyStore ===

impl FaultyStore {
    pub(super) async fn apply(
        &self,
        plan: &Plan,
        steps: Range<usize>,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        self.call(|| {
            let mut called = plan.clone();
            called.steps = plan.steps[steps.clone()].into();
            let mut applied = PlanResult::default();
            self.inner
                .apply(&called, self.store_time(now), &mut applied);
            for done in &mut applied.steps {
                done.step += u16::try_from(steps.start).unwrap();
            }
            applied.offences = self.offences(plan, &applied);
            *result = applied;
        })
        .await
    }

    /// The store's time when the caller's clock shows `now`.
    pub(super) fn store_time(&self, now: Timestamp) -> Timestamp {
        self.faults.clock(now)
    }

    /// The offences of the banned keys in `result`, as a remote store reports them.
    fn offences(&self, plan: &Plan, result: &PlanResult) -> Vec<(u16, u32)> {
        let bans = self.inner.bans(result.at);
        let offence = |step: u16| {
            let planned = &plan.steps[usize::from(step)];
            let of_key = |ban: &&BanEntry| ban.id == planned.id && *ban.key == *plan.key(planned);
            bans.iter().find(of_key).map(|ban| (step, ban.offence))
        };
        let steps = result.steps.iter().map(|done| done.step);
        steps.filter_map(offence).collect()
    }

    pub(super) async fn release(&self, leases: &HeldLeases) -> Result<(), StoreError> {
        self.call(|| self.inner.release(leases)).await
    }

    pub(super) async fn renew(
        &self,
        leases: &HeldLeases,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let now = self.faults.clock(now);
        self.call(|| self.inner.renew(leases, now)).await?;
        Ok(true)
    }

    /// Applies a call, or fails after [`TIMEOUT`].
    async fn call(&self, apply: impl FnOnce()) -> Result<(), StoreError> {
        let reply = tokio::time::timeout(TIMEOUT, self.transmit(apply)).await;
        reply.unwrap_or(Err(StoreError::Timeout))
    }

    async fn transmit(&self, apply: impl FnOnce()) -> Result<(), StoreError> {
        let calls = self.faults.calls.fetch_add(1, Ordering::SeqCst);
        let fails_now =
            calls.is_multiple_of(2) && self.faults.fails_every_other.load(Ordering::SeqCst);
        if fails_now || self.faults.is_down.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable);
        }
        let latency = self.faults.latency.load(Ordering::SeqCst);
        if latency > 0 {
            tokio::time::sleep(Duration::from_millis(latency)).await;
        }
        apply();
        let lost = &self.faults.lost_replies;
        let fewer = |left: usize| left.checked_sub(1);
        if lost
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
            .is_ok()
        {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

// === impl Faults ===

impl Faults {
    fn clock(&self, now: Timestamp) -> Timestamp {
        shifted(now, self.skew.load(Ordering::SeqCst))
    }

    /// The caller's time when the store's clock shows `at`.
    pub(crate) fn caller_time(&self, at: Timestamp) -> Timestamp {
        shifted(at, -self.skew.load(Ordering::SeqCst))
    }
}

/// `time` plus `skew` milliseconds.
fn shifted(time: Timestamp, skew: i64) -> Timestamp {
    let whole = Timestamp::from_millis(time.as_millis());
    let millis = time.as_millis().saturating_add_signed(skew);
    Timestamp::from_millis(millis).plus(time.since(whole))
}
