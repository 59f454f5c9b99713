//! One core's access to the store: the calls that a request waits for, and the work that follows its response.
//!
//! Work that follows a response (settling, releasing leases) never delays it. The memory store does it
//! immediately. For a remote store it waits in a bounded queue; work that does not fit is dropped and counted
//! ([`Store::settle_dropped`]). A lease that is not released expires.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;

use super::{Store, StoreError};
use crate::clock::{Clock, Timestamp};
use crate::decision::RuleIndex;
use crate::limit::concurrency::{LEASE_RENEWAL, LeaseId};
use crate::rules::plan::{HeldLeases, Plan, PlanResult};

/// The maximum number of queued operations for a remote store, per core.
const QUEUE_LIMIT: usize = 1024;

/// The timeout of one call to a remote store.
const TIMEOUT: Duration = Duration::from_millis(50);

/// One core's access to the store.
pub struct StoreHandle {
    store: Arc<Store>,
    clock: Clock,
    queue: RefCell<VecDeque<Deferred>>,
    queued: Notify,
    leases: RefCell<Slab<HeldLeases>>,
    next_lease: Cell<LeaseId>,
}

/// Called with the result of a settlement.
pub type OnSettled = Box<dyn FnOnce(&Plan, &PlanResult)>;

/// Work for a remote store that no request waits for.
enum Deferred {
    Settle(Box<Plan>, OnSettled),
    Release(HeldLeases),
}

/// The leases of one request. They are renewed while this exists and released when it is dropped.
pub struct LeaseGuard {
    handle: Rc<StoreHandle>,
    key: usize,
}

// === impl StoreHandle ===

impl StoreHandle {
    /// A handle for the calling core.
    pub fn new(store: Arc<Store>, clock: Clock) -> Rc<Self> {
        Rc::new(Self {
            store,
            clock,
            queue: RefCell::default(),
            queued: Notify::new(),
            leases: RefCell::default(),
            next_lease: Cell::new(getrandom::u64().unwrap_or_default()),
        })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Applies `plan` and adds its results to `result`, which is empty.
    #[inline]
    pub async fn apply(
        &self,
        plan: &Plan,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        if self.store.is_local() || !plan.needs_store() {
            self.store.local().apply(plan, now, result);
            return Ok(());
        }
        in_time(self.store.apply(plan, now, result)).await
    }

    /// Decides without the store: reduces `plan` to the rules that fall back to the counters of this process and
    /// applies it to those. Returns the first rule that responds with 503 instead.
    #[cold]
    pub fn fall_back(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Option<RuleIndex> {
        let closed_rule = plan.keep_local();
        result.steps.clear();
        self.store.local().apply(plan, now, result);
        closed_rule
    }

    /// Counts a response. The memory store writes to `result` immediately and the function returns `true`. For a
    /// remote store, a copy of `plan` is queued, the callback that `on_settled` creates receives the result, and the
    /// function returns `false`.
    pub fn settle(
        &self,
        plan: &Plan,
        now: Timestamp,
        result: &mut PlanResult,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        if self.store.is_local() {
            self.store.local().apply(plan, now, result);
            return true;
        }
        self.defer(|| Deferred::Settle(Box::new(plan.clone()), on_settled()));
        false
    }

    /// An identity for the leases of one request.
    pub fn next_lease(&self) -> LeaseId {
        let id = self.next_lease.get();
        self.next_lease.set(id.wrapping_add(1));
        id
    }

    /// Guards the leases that a plan takes. Called before the plan is applied: if the client disconnects during
    /// the call, the guard is dropped and releases any lease that the store has granted.
    pub fn hold(self: &Rc<Self>, leases: HeldLeases) -> LeaseGuard {
        let key = self.leases.borrow_mut().insert(leases);
        let handle = self.clone();
        LeaseGuard { handle, key }
    }

    /// Renews leases and sends queued work, until the runtime ends.
    pub async fn run(self: Rc<Self>) {
        let mut renewal = tokio::time::interval(LEASE_RENEWAL);
        loop {
            tokio::select! {
                () = self.queued.notified() => self.send_queued().await,
                _ = renewal.tick() => self.renew_leases().await,
            }
        }
    }

    /// Sends all queued work.
    pub async fn send_queued(&self) {
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                None => return,
                Some(Deferred::Release(leases)) => {
                    _ = in_time(self.store.release(&leases)).await;
                }
                Some(Deferred::Settle(mut plan, on_settled)) => {
                    let mut result = PlanResult::default();
                    let now = self.clock.now();
                    if self.apply(&plan, now, &mut result).await.is_err() {
                        self.fall_back(&mut plan, now, &mut result);
                    }
                    on_settled(&plan, &result);
                }
            }
        }
    }

    /// Renews every lease that is held.
    pub async fn renew_leases(&self) {
        let keys: Vec<usize> = self.leases.borrow().iter().map(|(key, _)| key).collect();
        for key in keys {
            let leases = self.leases.borrow().get(key).cloned();
            if let Some(leases) = leases {
                let now = self.clock.now();
                self.store.local().renew(&leases, now);
                if !self.store.is_local() {
                    _ = in_time(self.store.renew(&leases, now)).await;
                }
            }
        }
    }

    fn release(&self, key: usize) {
        let Some(leases) = self.leases.borrow_mut().try_remove(key) else {
            return;
        };
        // With a remote store, leases are local if a rule fell back to the counters of this process.
        self.store.local().release(&leases);
        if !self.store.is_local() {
            self.defer(|| Deferred::Release(leases));
        }
    }

    fn defer(&self, work: impl FnOnce() -> Deferred) {
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= QUEUE_LIMIT {
            self.store.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.push_back(work());
        self.queued.notify_one();
    }
}

// === impl LeaseGuard ===

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.handle.release(self.key);
    }
}

/// Waits for a reply, at most [`TIMEOUT`].
async fn in_time(call: impl Future<Output = Result<(), StoreError>>) -> Result<(), StoreError> {
    let reply = tokio::time::timeout(TIMEOUT, call).await;
    reply.unwrap_or(Err(StoreError::Timeout))
}
