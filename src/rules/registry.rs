//! The ids of the rules of this process: one for each rule identity, kept across reloads.
//!
//! A store is given ids and the rules that exist; it never assigns one.

use std::collections::{BTreeSet, HashMap};

use super::plan::RuleId;

/// The registered rules.
#[derive(Debug, Default)]
pub struct RuleRegistry {
    by_identity: HashMap<u64, RegisteredRule>,
    in_use: BTreeSet<u16>,
    /// Slots are assigned in turn, so a request that still uses an old configuration does not find
    /// another rule in its slot.
    next: u16,
}

/// A rule with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredRule {
    /// The id of the rule.
    pub id: RuleId,
    /// The name of the rule when it was registered.
    pub name: String,
}

// === impl RuleRegistry ===

impl RuleRegistry {
    /// The slot that rules share once all other slots are in use.
    pub const SHARED_SLOT: u16 = u16::MAX;

    /// Returns the id of `identity`. It does not change until [`RuleRegistry::retain`] removes it.
    pub fn register(&mut self, identity: u64, name: &str) -> RuleId {
        if let Some(registered) = self.by_identity.get(&identity) {
            return registered.id;
        }
        let slot = self.take_slot();
        let id = RuleId { identity, slot };
        let name = name.to_owned();
        self.by_identity
            .insert(identity, RegisteredRule { id, name });
        id
    }

    /// Removes the rules with an identity that is not in `keep` and returns them in slot order.
    pub fn retain(&mut self, keep: &[u64]) -> Vec<RegisteredRule> {
        let removed = self.by_identity.extract_if(|id, _| !keep.contains(id));
        let mut removed: Vec<_> = removed.map(|(_, registered)| registered).collect();
        removed.sort_by_key(|registered| registered.id.slot);
        for registered in &removed {
            self.in_use.remove(&registered.id.slot);
        }
        removed
    }

    /// The registered rules, in arbitrary order.
    pub fn rules(&self) -> Vec<RegisteredRule> {
        self.by_identity.values().cloned().collect()
    }

    fn take_slot(&mut self) -> u16 {
        let mut round = (self.next..Self::SHARED_SLOT).chain(0..self.next);
        let free = round.find(|slot| !self.in_use.contains(slot));
        let slot = free.unwrap_or(Self::SHARED_SLOT);
        self.next = slot.wrapping_add(1);
        self.in_use.insert(slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: u16 = RuleRegistry::SHARED_SLOT;

    #[test]
    fn an_identity_keeps_its_id_until_it_is_removed() {
        let mut registry = RuleRegistry::default();
        let first = registry.register(41, "same");
        let other = registry.register(42, "other");
        assert_eq!(registry.register(41, "renamed"), first);
        assert_ne!(first.slot, other.slot);
        assert_eq!((first.identity, other.identity), (41, 42));
        let name = "same".to_owned();
        let removed = [RegisteredRule { id: first, name }];
        assert_eq!(registry.retain(&[42]), removed);
        assert_eq!(registry.retain(&[42]), []);
        // A rule that is registered again gets a slot that no earlier rule had.
        let again = registry.register(41, "same");
        assert!(![first.slot, other.slot].contains(&again.slot));
    }

    #[test]
    fn slots_are_assigned_in_turn_and_the_last_is_shared() {
        let mut registry = RuleRegistry::default();
        let slots: Vec<_> = (0..u64::from(SHARED) + 2)
            .map(|identity| registry.register(identity, "r").slot)
            .collect();
        assert_eq!(slots[..3], [0, 1, 2]);
        assert_eq!(slots[usize::from(SHARED)..], [SHARED, SHARED]);
        let keep: Vec<_> = (2..9).collect();
        assert_eq!(registry.retain(&keep).len(), slots.len() - keep.len());
        assert_eq!(registry.register(1_000_000, "new").slot, 0);
        assert_eq!(registry.register(1_000_001, "new").slot, 1);
        assert_eq!(registry.register(1_000_002, "new").slot, 9);
    }
}
