//! How many connections each network has, for the whole process.
//!
//! A network is in the map for as long as it has a connection, so the gate bounds the map too.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

/// The connections of each network that is counted.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<HashMap<IpAddr, usize>>);

// === impl Crowd ===

impl Crowd {
    /// Counts one more; false: there are `limit` already.
    pub(super) fn enter(&self, network: IpAddr, limit: usize) -> bool {
        let mut networks = self.0.lock();
        let open = networks.get(&network).copied().unwrap_or(0);
        if open >= limit {
            return false;
        }
        networks.insert(network, open + 1);
        true
    }

    /// Counts one less.
    pub(super) fn leave(&self, network: IpAddr) {
        let mut networks = self.0.lock();
        match networks.get_mut(&network) {
            Some(open @ 2..) => *open -= 1,
            _ => drop(networks.remove(&network)),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn each_network_has_its_own_count_and_leaves_nothing_behind() {
        let crowd = Crowd::default();
        let [a, b] = ["192.0.2.1", "2001:db8::"].map(|ip| ip.parse().unwrap());
        assert!(crowd.enter(a, 2) && crowd.enter(a, 2) && crowd.enter(b, 1));
        assert!(!crowd.enter(a, 2) && !crowd.enter(b, 1));
        crowd.leave(a);
        assert!(crowd.enter(a, 2));
        for network in [a, a, b] {
            crowd.leave(network);
        }
        assert!(crowd.0.lock().is_empty());
    }
}
