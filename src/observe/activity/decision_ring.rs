//! The newest decisions in which a rule acted, for the look-up of a client.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::decision_record::DecisionRecord;
use crate::clock::Timestamp;

/// The maximum number of decisions.
const MAX_DECISIONS: usize = 65_536;
/// The maximum memory of all decisions, in bytes. With long texts, fewer decisions fit.
const MAX_BYTES: usize = 32 << 20;
/// The number of decisions that a look-up returns.
const NEWEST: usize = 20;

/// The newest decisions in which a rule acted. The oldest ones leave when the ring is full.
#[derive(Debug, Default)]
pub(super) struct DecisionRing {
    decisions: VecDeque<DecisionRecord>,
    bytes: usize,
}

/// Selects the decisions about one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientQuery {
    /// The decisions about requests from an address.
    Address(IpAddr),
    /// The decisions about a key, as it is shown.
    Key(String),
}

/// The decisions about one client.
#[derive(Clone, Debug, Default)]
pub struct ClientDecisions {
    /// The newest decisions, newest first, at most 20.
    pub newest: Vec<DecisionRecord>,
    /// The number of requests that rules have mitigated, of those that the ring has.
    pub mitigated: u64,
    /// The time of the oldest decision in the ring, also of other clients. `None` if it is empty.
    pub window_start: Option<Timestamp>,
}

// === impl DecisionRing ===

impl DecisionRing {
    /// Adds a decision.
    pub(super) fn push(&mut self, decision: DecisionRecord) {
        self.bytes += decision.size();
        self.decisions.push_back(decision);
        while self.decisions.len() > MAX_DECISIONS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.decisions.pop_front() else {
                return;
            };
            self.bytes -= oldest.size();
        }
    }

    /// Returns the decisions about a client.
    pub(super) fn of_client(&self, query: &ClientQuery) -> ClientDecisions {
        let of_client = || self.decisions.iter().rev().filter(|d| query.selects(d));
        let mitigated = of_client().filter(|decision| !decision.dry_run);
        ClientDecisions {
            newest: of_client().take(NEWEST).cloned().collect(),
            mitigated: mitigated.map(|decision| u64::from(decision.repeat)).sum(),
            window_start: self.decisions.front().map(|oldest| oldest.ts),
        }
    }

    /// Returns the decision about the request with this id. `None` if the ring does not have it.
    pub(super) fn by_id(&self, id: &str) -> Option<&DecisionRecord> {
        let mut newest_first = self.decisions.iter().rev();
        newest_first.find(|decision| &*decision.id == id)
    }
}

// === impl ClientQuery ===

impl ClientQuery {
    fn selects(&self, decision: &DecisionRecord) -> bool {
        match self {
            Self::Address(ip) => decision.client_ip == *ip,
            Self::Key(key) => decision.key.as_deref() == Some(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision_record::tests::blocked;
    use super::*;

    fn address(ip: [u8; 4]) -> ClientQuery {
        ClientQuery::Address(ip.into())
    }

    #[test]
    fn a_client_is_found_by_its_address_its_key_and_a_request_id() {
        let mut ring = DecisionRing::default();
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        for n in 0..30 {
            ring.push(DecisionRecord {
                ts: Timestamp::from_secs(n),
                repeat: 2,
                ..blocked("a", one)
            });
        }
        ring.push(DecisionRecord {
            key: Some("other".into()),
            id: "77".into(),
            dry_run: true,
            ..blocked("a", other)
        });
        let found = ring.of_client(&address(one));
        assert_eq!(found.newest.len(), NEWEST);
        assert_eq!(found.newest[0].ts, Timestamp::from_secs(29));
        assert_eq!(found.mitigated, 60);
        assert_eq!(found.window_start, Some(Timestamp::from_secs(0)));
        let found = ring.of_client(&ClientQuery::Key("other".to_owned()));
        // A dry run mitigates nothing.
        assert_eq!((found.newest.len(), found.mitigated), (1, 0));
        assert_eq!(ring.by_id("77"), found.newest.first());
        assert_eq!(ring.by_id("78"), None);
    }

    #[test]
    fn the_ring_is_bounded_in_number_and_in_bytes() {
        let mut ring = DecisionRing::default();
        for n in 0..MAX_DECISIONS as u64 + 10 {
            ring.push(DecisionRecord {
                ts: Timestamp::from_secs(n),
                ..blocked("a", [192, 0, 2, 1])
            });
        }
        assert!(ring.decisions.len() <= MAX_DECISIONS);
        assert!(ring.bytes <= MAX_BYTES);
        let long = || DecisionRecord {
            path: [b'x'; 60_000].into(),
            ..blocked("a", [192, 0, 2, 1])
        };
        (0..1000).for_each(|_| ring.push(long()));
        assert!(ring.bytes <= MAX_BYTES && ring.decisions.len() < 1000);
    }
}
