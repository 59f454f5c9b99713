//! Which slot belongs to which rule identity.

use std::collections::{BTreeSet, HashMap};

use crate::rules::plan::RuleId;

/// The slot that rules share when all others are taken. It is never retired.
pub(super) const SHARED: u16 = u16::MAX;

/// The registered identities.
#[derive(Debug, Default)]
pub(super) struct Slots {
    by_identity: HashMap<u64, Registered>,
    in_use: BTreeSet<u16>,
    /// Slots go round, so that one is not used again while a request may still hold it.
    next: u16,
}

/// One registered identity.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) id: RuleId,
    pub(super) name: String,
}

// === impl Slots ===

impl Slots {
    /// The id of `identity`, which is the same until it is retired.
    pub(super) fn register(&mut self, identity: u64, name: &str) -> RuleId {
        if let Some(registered) = self.by_identity.get(&identity) {
            return registered.id;
        }
        let slot = self.take_slot();
        let id = RuleId { identity, slot };
        let name = name.to_owned();
        self.by_identity.insert(identity, Registered { id, name });
        id
    }

    /// The id of `identity`, if it is registered.
    pub(super) fn get(&self, identity: u64) -> Option<RuleId> {
        self.by_identity.get(&identity).map(|known| known.id)
    }

    /// All that are registered, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.by_identity.values()
    }

    /// Forgets the identities that are not in `keep`; returns them in slot order.
    pub(super) fn retire(&mut self, keep: &[u64]) -> Vec<Registered> {
        let gone = self.by_identity.extract_if(|id, _| !keep.contains(id));
        let mut gone: Vec<_> = gone.map(|(_, registered)| registered).collect();
        gone.sort_by_key(|registered| registered.id.slot);
        for registered in &gone {
            self.in_use.remove(&registered.id.slot);
        }
        gone
    }

    /// The slots in use, in order.
    pub(super) fn in_use(&self) -> Vec<u16> {
        self.in_use.iter().copied().collect()
    }

    fn take_slot(&mut self) -> u16 {
        let mut round = (self.next..SHARED).chain(0..self.next);
        let free = round.find(|slot| !self.in_use.contains(slot));
        let slot = free.unwrap_or(SHARED);
        self.next = slot.wrapping_add(1);
        self.in_use.insert(slot);
        slot
    }
}
