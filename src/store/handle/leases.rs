//! The leases that requests hold: renewed while they are held, released when their guard is dropped.

use std::rc::Rc;

use super::{Deferred, StoreHandle};
use crate::clock::Timestamp;
use crate::limit::concurrency::{LEASE_LIFETIME, LeaseId};
use crate::rules::plan::HeldLeases;

/// The leases of a request, and how long the remote store has them.
#[derive(Clone)]
pub(super) struct RenewedLeases {
    held: HeldLeases,
    /// The end of the leases after the last renewal. `None` before the first one: the store may have refused them.
    until: Option<Timestamp>,
}

/// The leases of one request. They are renewed while this exists and released when it is dropped.
pub struct LeaseGuard {
    handle: Rc<StoreHandle>,
    key: usize,
}

// === impl StoreHandle ===

impl StoreHandle {
    /// An identity for the leases of one request.
    pub fn next_lease(&self) -> LeaseId {
        let id = self.next_lease.get();
        self.next_lease.set(id.wrapping_add(1));
        id
    }

    /// Guards the leases that a plan takes. Called before the plan is applied: if the client disconnects during
    /// the call, the guard is dropped and releases any lease that the store has granted.
    pub fn hold(self: &Rc<Self>, leases: HeldLeases) -> LeaseGuard {
        let leases = RenewedLeases {
            held: leases,
            until: None,
        };
        let key = self.leases.borrow_mut().insert(leases);
        let handle = self.clone();
        LeaseGuard { handle, key }
    }

    /// Renews every lease that is held.
    pub async fn renew_leases(&self) {
        let keys: Vec<usize> = self.leases.borrow().iter().map(|(key, _)| key).collect();
        for key in keys {
            let leases = self.leases.borrow().get(key).cloned();
            if let Some(leases) = leases {
                let now = self.clock.now();
                self.store.local().renew(&leases.held, now);
                if !self.store.is_local() {
                    self.renew_held(key, leases, now).await;
                }
            }
        }
    }

    /// Renews leases of the remote store. It may have evicted those that it had at the last renewal.
    async fn renew_held(&self, key: usize, leases: RenewedLeases, now: Timestamp) {
        let restores = leases.until.is_some_and(|until| now < until);
        let renewed = self.renew_remote(&leases.held, restores, now).await;
        let mut held = self.leases.borrow_mut();
        let current = held.get_mut(key);
        match current.filter(|current| current.held.id == leases.held.id) {
            Some(current) if renewed == Ok(true) => current.until = Some(now.plus(LEASE_LIFETIME)),
            Some(_) => {}
            // The request has ended meanwhile. Its release may have overtaken the renewal.
            None if restores => self.defer(|| Deferred::Release(leases.held)),
            None => {}
        }
    }

    fn release(&self, key: usize) {
        let Some(leases) = self.leases.borrow_mut().try_remove(key) else {
            return;
        };
        if self.reader.is_some() {
            return;
        }
        // With a remote store, leases are local if a rule fell back to the counters of this process.
        self.store.local().release(&leases.held);
        if !self.store.is_local() {
            self.defer(|| Deferred::Release(leases.held));
        }
    }
}

// === impl LeaseGuard ===

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.handle.release(self.key);
    }
}
