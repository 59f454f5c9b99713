//! The index of bans is written behind the response, and again if a write fails: it is for listings only.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::administer::unban_event;
use super::redis::{FleetKey, PackedEvents};
use super::{ListedBan, StoreHandle};
use crate::clock::Timestamp;

/// The maximum number of changes of the index that wait for another attempt. Further ones are dropped: the ban is in
/// force all the same.
const MAX_WAITING: usize = 1_024;

/// How often a ban is checked whose end has failed, if its record is still there.
const MAX_CHECKS: u8 = 3;

/// A change of the index of bans.
#[derive(Clone, Debug)]
pub(super) enum IndexChange {
    /// Adds a ban with the text of its key.
    Add(Box<ListedBan>, Box<str>),
    /// Removes a ban.
    Remove(FleetKey),
    /// Removes a ban if its record is gone, or else checks it again, at most this many times.
    Check(FleetKey, u8),
}

/// Changes of the index that have failed, oldest first.
#[derive(Debug, Default)]
pub(super) struct FailedChanges(RefCell<VecDeque<IndexChange>>);

// === impl StoreHandle ===

impl StoreHandle {
    /// Adds a ban that a rule has started to the index of the fleet, behind the response. `text` is the key in
    /// listings, with secret parts hashed. Does nothing without a shared store.
    pub fn index_started_ban(&self, ban: ListedBan, text: Box<str>) {
        if self.link.is_some() {
            self.defer_index(IndexChange::Add(Box::new(ban), text));
        }
    }

    /// Adds a ban to the index now.
    pub(super) async fn index(&self, ban: ListedBan, text: &str) {
        self.write_index(IndexChange::Add(Box::new(ban), text.into()))
            .await;
    }

    /// Removes a ban from the index now.
    pub(super) async fn unindex(&self, key: FleetKey) {
        self.write_index(IndexChange::Remove(key)).await;
    }

    /// Writes a change of the index. If that fails, it is tried again later.
    pub(super) async fn write_index(&self, change: IndexChange) {
        let Some(link) = &self.link else {
            return;
        };
        let written = match &change {
            IndexChange::Add(ban, text) => link.index_ban(ban, text).await,
            IndexChange::Remove(key) => link.unindex_ban(*key).await,
            IndexChange::Check(key, left) => return self.check_ban(*key, *left).await,
        };
        let mirror = self.counters().map(|counters| counters.mirror());
        match &change {
            IndexChange::Add(ban, text) => {
                let mut ban = (**ban).clone();
                ban.key = super::ListedKey::Text(text.clone());
                mirror
                    .into_iter()
                    .for_each(|mirror| mirror.add(ban.clone()));
            }
            IndexChange::Remove(key) => {
                mirror
                    .into_iter()
                    .for_each(|mirror| mirror.remove(key.ban_id()));
            }
            IndexChange::Check(..) => {}
        }
        if written.is_err() {
            self.failed_changes.add(change);
        }
    }

    /// Checks a ban later: the call that deletes its record has failed, and the server may still carry it out.
    pub(super) fn check_later(&self, key: FleetKey) {
        self.failed_changes.add(IndexChange::Check(key, MAX_CHECKS));
    }

    /// Removes a ban from the index and announces its end if its record is gone.
    async fn check_ban(&self, key: FleetKey, left: u8) {
        let (Some(link), Some(left)) = (&self.link, left.checked_sub(1)) else {
            return;
        };
        let record = link.read_ban(key).await;
        if !record.is_ok_and(|record| record.until.is_none()) {
            self.failed_changes.add(IndexChange::Check(key, left));
            return;
        }
        let removal = Box::pin(self.unindex(key));
        removal.await;
        let mut events = PackedEvents::default();
        unban_event(key, None).pack(self.fleet_time(), &mut events.bans);
        let counters = self.counters().into_iter();
        counters.for_each(|counters| counters.announce(events.clone()));
    }

    /// Tries again what has failed.
    pub(super) async fn retry_index(&self) {
        let now = self.store_time(self.clock().now());
        for change in self.failed_changes.take(now) {
            if self.connected_link().is_some() {
                self.write_index(change).await;
            } else {
                self.failed_changes.add(change);
            }
        }
    }
}

// === impl FailedChanges ===

impl FailedChanges {
    fn add(&self, change: IndexChange) {
        let mut waiting = self.0.borrow_mut();
        if waiting.len() < MAX_WAITING {
            waiting.push_back(change);
        }
    }

    /// Takes all changes, except those of bans that have ended.
    fn take(&self, now: Timestamp) -> Vec<IndexChange> {
        let waiting = std::mem::take(&mut *self.0.borrow_mut());
        let is_due = |change: &IndexChange| match change {
            IndexChange::Add(ban, _) => ban.until > now,
            IndexChange::Remove(_) | IndexChange::Check(..) => true,
        };
        waiting.into_iter().filter(is_due).collect()
    }
}
