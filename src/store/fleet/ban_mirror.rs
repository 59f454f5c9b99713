//! A local copy of the fleet's index of bans, for listings. It is read at most every few seconds, and only while
//! someone lists bans. Changes that this gateway makes or hears of apply to it at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::rules::BanId;
use crate::store::ListedBan;

/// How old the copy can be.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The number of changes after which the copy is dropped, because bans were not listed for long.
const MAX_CHANGES: usize = 10_000;

/// The local copy of the index.
#[derive(Debug, Default)]
pub(in crate::store) struct BanMirror(Mutex<MirrorState>);

#[derive(Debug, Default)]
struct MirrorState {
    /// When the copy was read. `None` if it never was.
    read_at: Option<Instant>,
    bans: Arc<HashMap<BanId, ListedBan>>,
    /// Whether a core reads the index now.
    is_reading: bool,
    /// The changes since the copy was read.
    changes: BanChanges,
    /// The changes since the reading of the next copy has started: it may or may not have them.
    newer: BanChanges,
}

/// Bans that were added or removed: `None` for a removed one.
type BanChanges = HashMap<BanId, Option<ListedBan>>;

/// The copy, with the changes since it was read.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct MirroredBans {
    bans: Arc<HashMap<BanId, ListedBan>>,
    changes: BanChanges,
}

// === impl BanMirror ===

impl BanMirror {
    /// Returns whether the caller must read the index now. It then calls [`BanMirror::finish`].
    pub(in crate::store) fn start(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let is_old = |read_at: Instant| now.saturating_duration_since(read_at) >= MAX_AGE;
        let is_due = state.read_at.is_none_or(is_old) && !state.is_reading;
        state.is_reading |= is_due;
        is_due
    }

    /// Replaces the copy. `None` keeps it, because the index could not be read.
    pub(in crate::store) fn finish(&self, bans: Option<HashMap<BanId, ListedBan>>, now: Instant) {
        let mut state = self.0.lock();
        state.is_reading = false;
        let newer = std::mem::take(&mut state.newer);
        if let Some(bans) = bans {
            state.read_at = Some(now);
            state.bans = Arc::new(bans);
            state.changes = newer;
        }
    }

    /// Adds a ban that was added to the index.
    pub(in crate::store) fn add(&self, ban: ListedBan) {
        self.change(ban.ban_id, Some(ban));
    }

    /// Removes a ban that was removed from the index.
    pub(in crate::store) fn remove(&self, id: BanId) {
        self.change(id, None);
    }

    fn change(&self, id: BanId, ban: Option<ListedBan>) {
        let mut state = self.0.lock();
        if state.is_reading {
            state.newer.insert(id, ban.clone());
        } else if state.read_at.is_none() {
            return;
        }
        if state.changes.len() < MAX_CHANGES {
            state.changes.insert(id, ban);
        } else {
            state.read_at = None;
            state.bans = Arc::default();
            state.changes.clear();
        }
    }

    /// Returns the bans as they are known now.
    pub(in crate::store) fn bans(&self) -> MirroredBans {
        let state = self.0.lock();
        MirroredBans {
            bans: state.bans.clone(),
            changes: state.changes.clone(),
        }
    }
}

// === impl MirroredBans ===

impl MirroredBans {
    /// Returns all bans, and the ids of those that were removed.
    pub(in crate::store) fn all(&self) -> impl Iterator<Item = &ListedBan> {
        let is_current = |ban: &&ListedBan| !self.changes.contains_key(&ban.ban_id);
        let added = self.changes.values().flatten();
        self.bans.values().filter(is_current).chain(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::RuleId;
    use crate::store::fixture::at;
    use crate::store::{BanAuthor, ChangeScope, ListedKey};

    fn ban(number: u8, offence: u32) -> ListedBan {
        ListedBan {
            rule: RuleId::unregistered(1),
            ban_id: BanId::from_bytes([number; 16]),
            key: ListedKey::Text("k".into()),
            until: at(60),
            offence,
            since: at(0),
            by: BanAuthor::Rule,
            cause: None,
            scope: ChangeScope::Fleet,
        }
    }

    fn copy(bans: &[ListedBan]) -> Option<HashMap<BanId, ListedBan>> {
        Some(bans.iter().map(|ban| (ban.ban_id, ban.clone())).collect())
    }

    fn known(mirror: &BanMirror) -> Vec<(u8, u32)> {
        let bans = mirror.bans();
        let mut known: Vec<_> = bans
            .all()
            .map(|ban| (ban.ban_id.to_bytes()[0], ban.offence))
            .collect();
        known.sort();
        known
    }

    #[test]
    fn the_index_is_read_at_most_every_five_seconds() {
        let (mirror, start) = (BanMirror::default(), Instant::now());
        assert!(mirror.start(start));
        assert!(!mirror.start(start), "another core reads it");
        mirror.finish(copy(&[ban(1, 1)]), start);
        assert!(!mirror.start(start + MAX_AGE / 2));
        assert!(mirror.start(start + MAX_AGE));
        mirror.finish(None, start + MAX_AGE);
        assert_eq!(known(&mirror), [(1, 1)]);
        assert!(mirror.start(start + MAX_AGE), "the last read has failed");
    }

    #[test]
    fn changes_apply_at_once_and_survive_a_read_that_has_missed_them() {
        let (mirror, start) = (BanMirror::default(), Instant::now());
        mirror.remove(BanId::from_bytes([9; 16]));
        assert!(mirror.start(start));
        mirror.finish(copy(&[ban(1, 1), ban(2, 1)]), start);
        mirror.add(ban(3, 1));
        mirror.add(ban(2, 2));
        mirror.remove(ban(1, 1).ban_id);
        assert_eq!(known(&mirror), [(2, 2), (3, 1)]);
        assert!(mirror.start(start + MAX_AGE));
        mirror.remove(ban(3, 1).ban_id);
        mirror.add(ban(4, 1));
        assert_eq!(known(&mirror), [(2, 2), (4, 1)]);
        // The copy has what happened before its start, and may miss what came later.
        mirror.finish(copy(&[ban(2, 2), ban(3, 1)]), start + MAX_AGE);
        assert_eq!(known(&mirror), [(2, 2), (4, 1)]);
    }

    #[test]
    fn changes_that_nobody_lists_take_no_memory() {
        let (mirror, start) = (BanMirror::default(), Instant::now());
        assert!(mirror.start(start));
        mirror.finish(copy(&[ban(1, 1)]), start);
        for number in 0..=MAX_CHANGES as u128 {
            mirror.remove(BanId::from_bytes(number.to_be_bytes()));
        }
        assert_eq!(mirror.0.lock().changes.len(), 0);
        assert!(mirror.start(start), "the copy was dropped");
    }
}
