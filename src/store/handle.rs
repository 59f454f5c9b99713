//! One core's access to the store: the calls that a request waits for, and the work that follows its response.
//!
//! Work that follows a response (settling, releasing leases) never delays it. The memory store does it
//! immediately. For a remote store it waits in a bounded queue; work that does not fit is dropped and counted
//! ([`Store::settle_dropped`]). A lease that is not released expires.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use slab::Slab;
use tokio::sync::Notify;

use super::fleet::{AsyncCounters, FleetSync};
use super::redis::{FleetKey, NameHash, RedisLink, UnbanEvent};
use super::shared_plan::{self, SharedPlan};
use super::{Remote, Store, StoreError, memory};
use crate::clock::{Clock, Timestamp};
use crate::decision::RuleIndex;
use crate::limit::concurrency::{LEASE_RENEWAL, LeaseId};
use crate::rules::plan::{HeldLeases, Plan, PlanResult, RuleId};

/// The maximum number of queued operations for a remote store, per core.
const QUEUE_LIMIT: usize = 1024;

/// The maximum number of queued operations that are in flight at once.
const MAX_SENDING: usize = 32;

/// One core's access to the store.
pub struct StoreHandle {
    store: Arc<Store>,
    clock: Clock,
    /// The connection to the remote store.
    link: Option<RedisLink>,
    queue: RefCell<VecDeque<Deferred>>,
    queued: Notify,
    leases: RefCell<Slab<HeldLeases>>,
    next_lease: Cell<LeaseId>,
    /// The state of [`StoreHandle::draw`], never zero.
    random: Cell<u64>,
    /// Whether this core exchanges reports and events with the fleet.
    runs_sync: Cell<bool>,
    /// Whether the handle only peeks at counters.
    is_read_only: bool,
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
        let link = match &store.remote {
            Some(Remote::Redis(shared)) => Some(RedisLink::new(shared.clone(), clock.clone())),
            _ => None,
        };
        Rc::new(Self::with_link(store, clock, link))
    }

    /// A handle that applies plans to the counters of this process without changing them.
    pub fn read_only(store: Arc<Store>, clock: Clock) -> Rc<Self> {
        Rc::new(Self {
            is_read_only: true,
            ..Self::with_link(store, clock, None)
        })
    }

    fn with_link(store: Arc<Store>, clock: Clock, link: Option<RedisLink>) -> Self {
        Self {
            store,
            clock,
            link,
            queue: RefCell::default(),
            queued: Notify::new(),
            leases: RefCell::default(),
            next_lease: Cell::new(getrandom::u64().unwrap_or_default()),
            random: Cell::new(getrandom::u64().unwrap_or_default() | 1),
            runs_sync: Cell::new(false),
            is_read_only: false,
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The counters of async mode. `None` without a shared store.
    pub(super) fn counters(&self) -> Option<&AsyncCounters> {
        self.store.counters.as_ref()
    }

    /// Applies `plan` and adds its results to `result`, which is empty. During a store outage, each rule uses its
    /// fallback. Returns the first rule that then responds with 503, unless an earlier one ends evaluation.
    #[inline]
    pub async fn apply(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Option<RuleIndex> {
        if self.is_read_only {
            self.store.local().peek_plan(plan, now, result);
            return None;
        }
        if self.store.is_local() || !plan.needs_store() {
            self.store.local().apply(plan, now, result);
            return None;
        }
        SharedPlan::new(self, plan, now, result).apply().await
    }

    /// The remote store's time at `now`, as far as it is known.
    pub(super) fn store_time(&self, now: Timestamp) -> Timestamp {
        match (&self.link, &self.store.remote) {
            (Some(link), _) => link.server_time(now),
            #[cfg(test)]
            (None, Some(Remote::Faulty(faulty))) => faulty.store_time(now),
            _ => now,
        }
    }

    /// A random number, at least 0 and below 1. xorshift64: async mode needs no better one.
    pub(super) fn draw(&self) -> f64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Charges the steps of `plan` behind the response.
    pub(super) fn charge_later(&self, plan: Plan) {
        self.defer(|| Deferred::Settle(Box::new(plan), Box::new(|_, _| ())));
    }

    /// Calls the remote store for some steps of a plan.
    pub(super) async fn call(
        &self,
        plan: &Plan,
        steps: Range<usize>,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        match (&self.link, &self.store.remote) {
            (Some(link), _) => link.apply(plan, steps, now, result).await,
            #[cfg(test)]
            (None, Some(Remote::Faulty(faulty))) => faulty.apply(plan, steps, now, result).await,
            _ => Err(StoreError::Unavailable),
        }
    }

    /// Ends the ban of a key on all gateways, and forgets its counter and its offences. Without a connection to the
    /// shared store, only on this one.
    pub async fn unban(&self, id: RuleId, key: &[u8]) -> Result<(), StoreError> {
        let fleet_key = FleetKey::new(id, key);
        let deleted = match &self.link {
            Some(link) => link.delete_record(fleet_key).await,
            None => Ok(()),
        };
        self.store.local().unban(id, key);
        if let Some(counters) = self.counters() {
            counters.remove(fleet_key);
            if deleted.is_ok() {
                let shown = NameHash::of(key.get(..memory::SHOWN).unwrap_or(key));
                let event = UnbanEvent {
                    key: fleet_key,
                    shown,
                };
                counters.announce_unban(event, self.store_time(self.clock.now()));
            }
        }
        deleted
    }

    pub(super) async fn release_remote(&self, leases: &HeldLeases) -> Result<(), StoreError> {
        match (&self.link, &self.store.remote) {
            (Some(link), _) => link.release(leases).await,
            #[cfg(test)]
            (None, Some(Remote::Faulty(faulty))) => faulty.release(leases).await,
            _ => Err(StoreError::Unavailable),
        }
    }

    pub(super) async fn renew_remote(
        &self,
        leases: &HeldLeases,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match (&self.link, &self.store.remote) {
            (Some(link), _) => link.renew(leases, now).await,
            #[cfg(test)]
            (None, Some(Remote::Faulty(faulty))) => faulty.renew(leases, now).await,
            _ => Err(StoreError::Unavailable),
        }
    }

    /// Counts a response. If no call is needed, the function writes to `result` and returns `true`. Otherwise, a copy of
    /// `plan` is queued, the callback that `on_settled` creates receives the result, and the function returns `false`.
    pub fn settle(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        result: &mut PlanResult,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        if self.is_read_only {
            self.store.local().peek_plan(plan, now, result);
            return true;
        }
        if self.store.is_local() {
            self.store.local().apply(plan, now, result);
            return true;
        }
        if shared_plan::is_async(plan) {
            SharedPlan::new(self, plan, now, result).apply_async(0);
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

    /// Waits until the first attempt to connect to the remote store has ended, with or without success.
    pub async fn first_attempt(&self) {
        if let Some(link) = &self.link {
            link.first_attempt().await;
        }
    }

    /// Keeps the connection to the remote store, renews leases and sends queued work, until the runtime ends.
    pub async fn run(self: Rc<Self>) {
        let supervise = async {
            if let Some(link) = &self.link {
                link.supervise().await;
            }
        };
        tokio::join!(
            supervise,
            self.send_work(true),
            self.renew_forever(),
            self.sync_fleet()
        );
    }

    /// Exchanges reports and events with the fleet, on one core of the process.
    async fn sync_fleet(&self) {
        if let Some(sync) = self.fleet_sync()
            && sync.counters.claim()
        {
            self.runs_sync.set(true);
            sync.run().await;
        }
    }

    fn fleet_sync(&self) -> Option<FleetSync<'_>> {
        let (counters, link) = (self.counters()?, self.link.as_ref()?);
        let local = self.store.local();
        Some(FleetSync::new(counters, local, link, &self.clock))
    }

    /// Sends all queued work before the process ends, and leaves the fleet.
    pub async fn finish(&self) {
        self.send_queued().await;
        if let Some(sync) = self.fleet_sync().filter(|_| self.runs_sync.get()) {
            sync.leave().await;
        }
    }

    /// Sends all queued work.
    pub async fn send_queued(&self) {
        self.send_work(false).await;
    }

    /// Sends queued work; with `waits`, also what is queued later, until the runtime ends. A client's next request can
    /// need the slot that its last one releases, so work does not wait for the reply to earlier work.
    async fn send_work(&self, waits: bool) {
        let mut sending = FuturesUnordered::new();
        loop {
            while sending.len() < MAX_SENDING
                && let Some(work) = self.next_queued()
            {
                sending.push(self.send(work));
            }
            tokio::select! {
                Some(()) = sending.next() => {}
                () = self.queued.notified(), if waits => {}
                else => return,
            }
        }
    }

    async fn renew_forever(&self) {
        let mut renewal = tokio::time::interval(LEASE_RENEWAL);
        loop {
            renewal.tick().await;
            self.renew_leases().await;
        }
    }

    fn next_queued(&self) -> Option<Deferred> {
        self.queue.borrow_mut().pop_front()
    }

    async fn send(&self, work: Deferred) {
        match work {
            Deferred::Release(leases) => _ = self.release_remote(&leases).await,
            Deferred::Settle(mut plan, on_settled) => {
                let mut result = PlanResult::default();
                let now = self.clock.now();
                self.apply(&mut plan, now, &mut result).await;
                on_settled(&plan, &result);
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
                    _ = self.renew_remote(&leases, now).await;
                }
            }
        }
    }

    fn release(&self, key: usize) {
        let Some(leases) = self.leases.borrow_mut().try_remove(key) else {
            return;
        };
        if self.is_read_only {
            return;
        }
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
