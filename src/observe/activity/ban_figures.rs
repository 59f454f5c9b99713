//! What this node knows about bans beyond the store: the requests that each has mitigated, and why it started.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use super::core_batch::{BanHits, BanStart};
use crate::clock::Timestamp;
use crate::rules::{BanId, RuleId};

/// The maximum number of causes. The oldest ones are forgotten.
const MAX_CAUSES: usize = 10_000;
/// The number of removed bans that can be restored.
const MAX_REMOVED: usize = 1_024;

/// The figures of the bans on this node.
#[derive(Debug)]
pub(super) struct BanLedger {
    bans: HashMap<BanId, BanFigures>,
    /// The bans with a cause, oldest first. Some may have ended.
    causes: VecDeque<BanId>,
    /// The maximum number of bans: as many as the store can hold.
    max_bans: usize,
    /// The bans that were removed, oldest first.
    removed: VecDeque<(BanId, BanFigures)>,
}

/// What this node knows about a ban.
#[derive(Clone, Debug)]
pub struct BanFigures {
    /// The rule.
    pub rule: RuleId,
    /// When the ban ends, as far as this node knows.
    pub until: Timestamp,
    /// The number of requests that the ban has mitigated.
    pub mitigated: u64,
    /// When the newest of them arrived. `None` if there were none.
    pub last_seen: Option<Timestamp>,
    /// Why the ban started. `None` if another node started it, or if the cause is too old.
    pub cause: Option<Arc<str>>,
    /// Whether this node started the ban.
    pub is_own: bool,
    addresses: AddressSet,
}

/// An estimate of the number of different addresses, good for up to 64: a bit for each of 128 hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressSet(u128);

// === impl BanLedger ===

impl BanLedger {
    pub(super) fn new(max_bans: usize) -> Self {
        Self {
            bans: HashMap::new(),
            causes: VecDeque::new(),
            max_bans,
            removed: VecDeque::new(),
        }
    }

    /// Adds a new ban. A key that was banned before starts again.
    pub(super) fn start(&mut self, start: BanStart) {
        let id = BanId::of(start.rule, &start.key);
        let figures = BanFigures {
            cause: Some(Arc::from(start.cause)),
            is_own: true,
            ..BanFigures::new(start.rule, start.until)
        };
        self.insert(id, figures);
        self.causes.push_back(id);
        if self.causes.len() > MAX_CAUSES
            && let Some(oldest) = self.causes.pop_front()
            && !self.causes.contains(&oldest)
            && let Some(figures) = self.bans.get_mut(&oldest)
        {
            figures.cause = None;
        }
    }

    /// Adds the requests that a ban has mitigated.
    pub(super) fn add(&mut self, hits: &BanHits) {
        let id = BanId::of(hits.rule, &hits.key);
        if !self.bans.contains_key(&id) {
            self.insert(id, BanFigures::new(hits.rule, hits.until));
        }
        if let Some(figures) = self.bans.get_mut(&id) {
            figures.until = figures.until.max(hits.until);
            figures.mitigated += hits.mitigated;
            figures.last_seen = figures.last_seen.max(Some(hits.last_seen));
            figures.addresses.add(hits.addresses);
        }
    }

    /// Inserts a ban. If there is no space, the tenth of the bans that end first is removed.
    pub(super) fn insert(&mut self, id: BanId, figures: BanFigures) {
        if self.bans.len() >= self.max_bans && !self.bans.contains_key(&id) {
            let mut ends: Vec<Timestamp> = self.bans.values().map(|ban| ban.until).collect();
            let tenth = ends.len() / 10;
            if tenth < ends.len() {
                let (_, bound, _) = ends.select_nth_unstable(tenth);
                let bound = *bound;
                self.bans.retain(|_, ban| ban.until > bound);
            }
        }
        self.bans.insert(id, figures);
    }

    /// Returns the figures of a ban. `None` if this node knows nothing about it.
    pub(super) fn get(&self, id: BanId) -> Option<&BanFigures> {
        self.bans.get(&id)
    }

    /// Returns the bans that this node has started and that have mitigated at most `most` requests.
    pub(super) fn quiet(&self, most: u64) -> HashSet<BanId> {
        let is_quiet = |ban: &BanFigures| ban.is_own && ban.mitigated <= most;
        let quiet = self.bans.iter().filter(|(_, ban)| is_quiet(ban));
        quiet.map(|(id, _)| *id).collect()
    }

    /// Removes a ban and returns its figures.
    pub(super) fn remove(&mut self, id: BanId) -> Option<BanFigures> {
        let figures = self.bans.remove(&id)?;
        if self.removed.len() >= MAX_REMOVED {
            self.removed.pop_front();
        }
        self.removed.push_back((id, figures.clone()));
        Some(figures)
    }

    /// Restores a removed ban, which ends at `until`.
    pub(super) fn restore(&mut self, id: BanId, until: Timestamp) {
        let place = self.removed.iter().rposition(|(own, _)| *own == id);
        let removed = place.and_then(|place| self.removed.remove(place));
        if let Some((_, figures)) = removed {
            self.insert(id, BanFigures { until, ..figures });
        }
    }

    /// Removes the bans that have ended at `now`.
    pub(super) fn remove_ended(&mut self, now: Timestamp) {
        self.bans.retain(|_, ban| ban.until > now);
        self.causes.retain(|id| self.bans.contains_key(id));
    }

    /// Removes the bans of all rules except `rules`.
    pub(super) fn keep_rules(&mut self, rules: &[RuleId]) {
        self.bans.retain(|_, ban| rules.contains(&ban.rule));
    }
}

// === impl BanFigures ===

impl BanFigures {
    fn new(rule: RuleId, until: Timestamp) -> Self {
        Self {
            rule,
            until,
            mitigated: 0,
            last_seen: None,
            cause: None,
            is_own: false,
            addresses: AddressSet::default(),
        }
    }

    /// Returns the number of different client addresses, at most 64.
    pub fn addresses(&self) -> u32 {
        self.addresses.count()
    }
}

// === impl AddressSet ===

impl AddressSet {
    /// The largest number that [`AddressSet::count`] returns.
    const MAX: u32 = 64;

    pub(super) fn insert(&mut self, address: IpAddr) {
        let bits = address_bits(address);
        let mut hash = (bits >> 64) as u64 ^ bits as u64;
        for _ in 0..2 {
            hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.0 |= 1 << (hash >> (u64::BITS - u128::BITS.ilog2()));
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Estimates the number of addresses from the number of bits (linear counting).
    fn count(self) -> u32 {
        let bits = f64::from(u128::BITS);
        let unset = f64::from(self.0.count_zeros().max(1));
        let estimate = (bits * (bits / unset).ln()) as u32;
        estimate.clamp(self.0.count_ones().min(Self::MAX), Self::MAX)
    }
}

/// Returns the bits of an address; an IPv4 address has those of the mapped IPv6 address.
pub(super) fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RuleId = RuleId {
        identity: 1,
        slot: 1,
    };

    fn start(key: u64, until: u64) -> BanStart {
        BanStart {
            rule: RULE,
            name: "r".into(),
            key: key.to_le_bytes().into(),
            until: Timestamp::from_secs(until),
            cause: format!("cause {key}").into(),
        }
    }

    fn id(key: u64) -> BanId {
        BanId::of(RULE, &key.to_le_bytes())
    }

    fn hits(key: u64, now: u64, addresses: &[[u8; 4]]) -> BanHits {
        let mut set = AddressSet::default();
        addresses.iter().for_each(|ip| set.insert((*ip).into()));
        BanHits {
            rule: RULE,
            key: key.to_le_bytes().into(),
            until: Timestamp::from_secs(100),
            mitigated: 2,
            last_seen: Timestamp::from_secs(now),
            addresses: set,
        }
    }

    #[test]
    fn a_ban_counts_its_requests_from_its_start() {
        let mut ledger = BanLedger::new(10);
        ledger.start(start(1, 100));
        ledger.add(&hits(1, 5, &[[1; 4]]));
        ledger.add(&hits(1, 3, &[[1; 4], [2; 4]]));
        ledger.add(&hits(2, 4, &[]));
        let own = ledger.get(id(1)).unwrap();
        assert_eq!((own.mitigated, own.addresses()), (4, 2));
        assert_eq!(own.last_seen, Some(Timestamp::from_secs(5)));
        assert_eq!(own.cause.as_deref(), Some("cause 1"));
        let foreign = ledger.get(id(2)).unwrap();
        assert_eq!((&foreign.cause, foreign.is_own), (&None, false));
        assert_eq!(ledger.quiet(4), [id(1)].into());
        assert!(ledger.quiet(3).is_empty());
        ledger.start(start(1, 200));
        assert_eq!(ledger.get(id(1)).unwrap().mitigated, 0);
    }

    #[test]
    fn a_ban_that_has_ended_is_forgotten() {
        let mut ledger = BanLedger::new(10);
        ledger.start(start(1, 100));
        ledger.start(start(2, 200));
        ledger.remove_ended(Timestamp::from_secs(100));
        assert!(ledger.get(id(1)).is_none() && ledger.get(id(2)).is_some());
        assert!(ledger.remove(id(2)).is_some());
        assert!(ledger.get(id(2)).is_none());
        ledger.restore(id(2), Timestamp::from_secs(200));
        assert_eq!(ledger.get(id(2)).unwrap().cause.as_deref(), Some("cause 2"));
        assert!(ledger.remove(id(2)).is_some());
        ledger.start(start(3, 300));
        ledger.keep_rules(&[]);
        assert!(ledger.get(id(3)).is_none());
    }

    #[test]
    fn as_many_bans_are_kept_as_the_store_can_hold() {
        let mut ledger = BanLedger::new(100);
        (0..1000).for_each(|key| ledger.start(start(key, 1000 + key)));
        assert!(ledger.bans.len() <= 100);
        assert!(ledger.get(id(999)).is_some(), "the newest one stays");
    }

    #[test]
    fn causes_are_kept_for_the_newest_bans() {
        let mut ledger = BanLedger::new(1 << 20);
        let more = MAX_CAUSES as u64 + 5;
        (0..more).for_each(|key| ledger.start(start(key, 1000)));
        assert_eq!(ledger.causes.len(), MAX_CAUSES);
        let cause = |key| ledger.get(id(key)).unwrap().cause.clone();
        assert_eq!(cause(4), None);
        assert_eq!(cause(5).as_deref(), Some("cause 5"));
    }

    #[test]
    fn addresses_are_counted_up_to_64() {
        for exact in [0, 1, 2, 5, 20, 64, 10_000u32] {
            let mut set = AddressSet::default();
            for n in 0..exact {
                set.insert(n.to_be_bytes().into());
            }
            let off = set.count().abs_diff(exact.min(64));
            assert!(off <= exact / 6, "{exact}: {}", set.count());
        }
    }
}
