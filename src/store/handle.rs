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

pub use self::leases::LeaseGuard;
use self::leases::RenewedLeases;
use super::fleet::{AsyncCounters, FleetSync};
use super::index_queue::{FailedChanges, IndexChange};
use super::plan_reader::PlanReader;
use super::redis::RedisLink;
use super::shared_plan::{self, SharedPlan};
use super::{Remote, Store, StoreAdmin, StoreError};
use crate::clock::{Clock, Timestamp};
use crate::decision::RuleIndex;
use crate::limit::concurrency::{LEASE_RENEWAL, LeaseId};
use crate::rules::FixedKeys;
use crate::rules::plan::{HeldLeases, Plan, PlanResult};

mod leases;

/// The maximum number of queued operations for a remote store, per core.
const QUEUE_LIMIT: usize = 1024;

/// The maximum number of queued operations that are in flight at once.
const MAX_SENDING: usize = 32;

/// One core's access to the store.
pub struct StoreHandle {
    pub(super) store: Arc<Store>,
    clock: Clock,
    /// The connection to the remote store.
    pub(super) link: Option<RedisLink>,
    queue: RefCell<VecDeque<Deferred>>,
    queued: Notify,
    leases: RefCell<Slab<RenewedLeases>>,
    next_lease: Cell<LeaseId>,
    /// The state of [`StoreHandle::draw`], never zero.
    random: Cell<u64>,
    /// Whether this core exchanges reports and events with the fleet.
    runs_sync: Cell<bool>,
    /// Reads counters instead of charging them. `None` for the handle of a core.
    reader: Option<PlanReader>,
    /// Changes of the index of bans to try again.
    pub(super) failed_changes: FailedChanges,
}

/// Called with the result of a settlement.
pub type OnSettled = Box<dyn FnOnce(&Plan, &PlanResult)>;

/// Work for a remote store that no request waits for.
enum Deferred {
    Settle(Box<Plan>, OnSettled),
    Release(HeldLeases),
    Index(IndexChange),
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

    /// A handle that applies plans without changing anything, on any thread of the process. A core reads the shared store
    /// for it. `keys` are those of the plans that a person has set.
    pub fn read_only(store: Arc<Store>, clock: Clock, keys: FixedKeys) -> Rc<Self> {
        let admin = StoreAdmin::new(store.clone(), clock.clone());
        Rc::new(Self {
            reader: Some(PlanReader::new(admin, keys)),
            ..Self::with_link(store, clock, None)
        })
    }

    /// Whether a read-only handle has read the counters of this process, because the shared store does not reply.
    pub fn has_fallen_back(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(PlanReader::has_fallen_back)
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
            reader: None,
            failed_changes: FailedChanges::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
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
        if let Some(reader) = &self.reader {
            // Boxed, so that the requests of clients have no room for it.
            return Box::pin(reader.read(plan, now, result)).await;
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

    /// Changes the index of bans behind the response.
    pub(super) fn defer_index(&self, change: IndexChange) {
        self.defer(|| Deferred::Index(change));
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
        restores: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        match (&self.link, &self.store.remote) {
            (Some(link), _) => link.renew(leases, restores, now).await,
            #[cfg(test)]
            (None, Some(Remote::Faulty(faulty))) => faulty.renew(leases, now).await,
            _ => Err(StoreError::Unavailable),
        }
    }

    /// Reads what [`StoreHandle::settle`] would find, if the handle is read-only. Otherwise it does nothing.
    pub async fn read_settlement(&self, plan: &mut Plan, now: Timestamp, result: &mut PlanResult) {
        if let Some(reader) = &self.reader {
            _ = reader.read(plan, now, result).await;
        }
    }

    /// Counts a response. If no call is needed, the function writes to `result` and returns `true`. Otherwise, a copy of
    /// `plan` is queued, the callback that `on_settled` creates receives the result, and the function returns `false`. A
    /// read-only handle does nothing and returns `false`.
    pub fn settle(
        &self,
        plan: &mut Plan,
        now: Timestamp,
        result: &mut PlanResult,
        on_settled: impl FnOnce() -> OnSettled,
    ) -> bool {
        if self.reader.is_some() {
            return false;
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
            self.sync_fleet(),
            self.serve_commands()
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
            self.retry_index().await;
        }
    }

    fn next_queued(&self) -> Option<Deferred> {
        self.queue.borrow_mut().pop_front()
    }

    async fn send(&self, work: Deferred) {
        match work {
            Deferred::Release(leases) => _ = self.release_remote(&leases).await,
            Deferred::Index(change) => self.write_index(change).await,
            Deferred::Settle(mut plan, on_settled) => {
                let mut result = PlanResult::default();
                let now = self.clock.now();
                self.apply(&mut plan, now, &mut result).await;
                on_settled(&plan, &result);
            }
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
