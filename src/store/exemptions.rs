//! Addresses and networks that pass all rules for a limited time, because a person says so.
//!
//! Without exemptions, the request path only reads one atomic number. Changes replace the whole table.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use ipnet::IpNet;
use parking_lot::Mutex;

use super::{AdminError, AdminNote};
use crate::clock::Timestamp;
use crate::expr::canonical_network;

#[cfg(test)]
mod tests;

/// The maximum number of exemptions.
pub const MAX_EXEMPTIONS: usize = 1_000;

/// The longest exemption.
pub const LONGEST_EXEMPTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The tolerated difference between the clocks of two gateways.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// The exemptions of this gateway.
#[derive(Debug, Default)]
pub struct ExemptionTable {
    /// The number of exemptions in the table, ended ones included.
    count: AtomicUsize,
    table: ArcSwap<ExemptionIndex>,
    /// Held while the table is replaced.
    change: Mutex<()>,
}

/// An address or a network that passes all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExemptionEntry {
    /// The network, without host bits. An address has all of its bits.
    pub network: IpNet,
    /// When the exemption was added.
    pub since: Timestamp,
    /// When it ends.
    pub until: Timestamp,
    /// A person's note.
    pub note: AdminNote,
    /// Which gateways have the exemption.
    pub scope: ChangeScope,
}

/// The gateways to which a change applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeScope {
    /// All gateways that share the store, or the only one.
    #[default]
    Fleet,
    /// This gateway alone: the change was made while the shared store was out of reach.
    Node,
}

/// Exemptions by their network.
#[derive(Debug, Default)]
struct ExemptionIndex {
    by_network: HashMap<IpNet, ExemptionEntry>,
    /// The lengths of the prefixes of IPv4 networks.
    v4_lengths: Vec<u8>,
    /// The lengths of the prefixes of IPv6 networks.
    v6_lengths: Vec<u8>,
}

// === impl ExemptionTable ===

impl ExemptionTable {
    /// Returns whether there are no exemptions. Costs one load of an atomic number.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns when the exemption of an address ends. `None` if the address has none.
    #[cold]
    pub fn until(&self, ip: IpAddr, now: Timestamp) -> Option<Timestamp> {
        let ends = self.table.load().until(ip.to_canonical());
        ends.filter(|until| *until > now)
    }

    /// Returns the exemptions in force at `now`, the one that ends last first.
    pub fn list(&self, now: Timestamp) -> Vec<ExemptionEntry> {
        let table = self.table.load();
        let live = table.by_network.values().filter(|entry| entry.until > now);
        let mut entries: Vec<_> = live.cloned().collect();
        entries.sort_by(|a, b| b.until.cmp(&a.until).then(a.network.cmp(&b.network)));
        entries
    }

    /// Adds an exemption, in place of one of the same network. Returns it as it is listed.
    pub fn add(&self, entry: ExemptionEntry, now: Timestamp) -> Result<ExemptionEntry, AdminError> {
        let entry = entry.checked(now)?;
        let _change = self.change.lock();
        let mut entries = self.list(now);
        entries.retain(|other| other.network != entry.network);
        if entries.len() >= MAX_EXEMPTIONS {
            return Err(AdminError::ListFull);
        }
        entries.push(entry.clone());
        self.install(entries);
        Ok(entry)
    }

    /// Removes the exemption of exactly this network, and returns it.
    pub fn remove(&self, network: IpNet, now: Timestamp) -> Result<ExemptionEntry, AdminError> {
        let network = canonical_network(network);
        let _change = self.change.lock();
        let mut entries = self.list(now);
        let index = entries.iter().position(|entry| entry.network == network);
        let removed = entries.remove(index.ok_or(AdminError::NotFound)?);
        self.install(entries);
        Ok(removed)
    }

    /// Replaces all exemptions. Ended and invalid ones are left out.
    pub fn replace(&self, entries: impl IntoIterator<Item = ExemptionEntry>, now: Timestamp) {
        let _change = self.change.lock();
        self.install(usable(entries, now));
    }

    /// Replaces the exemptions of the fleet, and keeps those of this gateway alone.
    pub fn replace_fleet(&self, entries: impl IntoIterator<Item = ExemptionEntry>, now: Timestamp) {
        let _change = self.change.lock();
        let mut kept = self.list(now);
        kept.retain(|entry| entry.scope == ChangeScope::Node);
        self.install(usable(kept.into_iter().chain(entries), now));
    }

    fn install(&self, entries: Vec<ExemptionEntry>) {
        let count = entries.len();
        self.table.store(Arc::new(ExemptionIndex::of(entries)));
        self.count.store(count, Ordering::Relaxed);
    }
}

fn usable(
    entries: impl IntoIterator<Item = ExemptionEntry>,
    now: Timestamp,
) -> Vec<ExemptionEntry> {
    let entries = entries.into_iter();
    let valid = entries.filter_map(|entry| entry.checked(now).ok());
    valid.take(MAX_EXEMPTIONS).collect()
}

// === impl ExemptionEntry ===

impl ExemptionEntry {
    /// Returns the entry with a canonical network. Fails if it has ended, or lasts too long.
    fn checked(self, now: Timestamp) -> Result<Self, AdminError> {
        if self.until <= now {
            return Err(AdminError::AlreadyEnded);
        }
        if self.until > now.plus(LONGEST_EXEMPTION + CLOCK_SLACK) {
            return Err(AdminError::TooLong);
        }
        Ok(Self {
            network: canonical_network(self.network),
            ..self
        })
    }
}

// === impl ChangeScope ===

impl ChangeScope {
    /// The name in responses of the admin API.
    pub const fn name(self) -> &'static str {
        match self {
            ChangeScope::Fleet => "fleet",
            ChangeScope::Node => "node",
        }
    }
}

// === impl ExemptionIndex ===

impl ExemptionIndex {
    fn of(entries: Vec<ExemptionEntry>) -> Self {
        let mut index = Self::default();
        for entry in entries {
            let lengths = match entry.network {
                IpNet::V4(_) => &mut index.v4_lengths,
                IpNet::V6(_) => &mut index.v6_lengths,
            };
            if !lengths.contains(&entry.network.prefix_len()) {
                lengths.push(entry.network.prefix_len());
            }
            index.by_network.insert(entry.network, entry);
        }
        index
    }

    /// Returns the latest end of the networks that contain `ip`.
    fn until(&self, ip: IpAddr) -> Option<Timestamp> {
        let lengths = match ip {
            IpAddr::V4(_) => &self.v4_lengths,
            IpAddr::V6(_) => &self.v6_lengths,
        };
        let networks = lengths
            .iter()
            .filter_map(|length| IpNet::new(ip, *length).ok());
        let entries = networks.filter_map(|network| self.by_network.get(&network.trunc()));
        entries.map(|entry| entry.until).max()
    }
}
