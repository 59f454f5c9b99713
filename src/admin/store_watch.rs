//! Since when the store is in its state.

use crate::clock::Timestamp;

/// The state of the store as it was seen last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreWatch {
    state: Option<&'static str>,
    since: Option<Timestamp>,
}

// === impl StoreWatch ===

impl StoreWatch {
    /// Notes the state at `now`. Returns when the store entered it, `None` if it has always been in it.
    pub fn note(&mut self, state: &'static str, now: Timestamp) -> Option<Timestamp> {
        if self.state != Some(state) {
            self.since = self.state.map(|_| now);
            self.state = Some(state);
        }
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_lasts_from_its_first_sight() {
        let mut watch = StoreWatch::default();
        let at = Timestamp::from_secs;
        assert_eq!(watch.note("ok", at(1)), None);
        assert_eq!(watch.note("ok", at(2)), None);
        assert_eq!(watch.note("degraded", at(3)), Some(at(3)));
        assert_eq!(watch.note("degraded", at(4)), Some(at(3)));
        assert_eq!(watch.note("ok", at(5)), Some(at(5)));
    }
}
