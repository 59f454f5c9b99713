//! Bans on their way to a snapshot and back.

use super::{Bans, Sentence};
use crate::clock::Timestamp;
use crate::store::memory::hash::KeyHash;
use crate::store::memory::saved::Ban;

impl Bans {
    /// Those that mean something at `now`, live and past.
    pub(in super::super) fn saved(&self, now: Timestamp) -> impl Iterator<Item = Ban> {
        let live = self
            .live
            .entries()
            .map(|(key, ban)| Ban::of(key, ban, false));
        let past = self
            .past
            .entries()
            .map(|(key, ban)| Ban::of(key, ban, true));
        live.chain(past)
            .filter(move |ban| ban.counts || ban.until > now)
    }

    /// Whether there is one of `key`, live or past.
    pub(in super::super) fn has(&self, key: KeyHash) -> bool {
        let key = key.whole();
        self.live.get(key).is_some() || self.past.get(key).is_some()
    }

    /// Adds one for a key that has none. Its place was taken before.
    pub(in super::super) fn restore(&mut self, key: KeyHash, sentence: Sentence, past: bool) {
        let happened = if past {
            sentence.ban.until
        } else {
            sentence.began
        };
        self.newest = self.newest.max(happened);
        let ends = if past { &mut self.past } else { &mut self.live };
        ends.insert(key.whole(), sentence);
        self.note();
    }
}
