//! How a ban begins.

use std::mem;
use std::time::Duration;

use super::Visit;
use crate::limit::Reading;
use crate::rules::plan::{Ban, Finding, Standing};
use crate::store::BanEntry;
use crate::store::memory::bans::Sentence;
use crate::store::memory::{Held, SHOWN};

impl Visit<'_> {
    /// Bans the key, which is not banned. `None`: there is no room.
    #[cold]
    pub(super) fn ban(&self, held: &mut Held, reserved: &mut bool) -> Option<Finding> {
        let (bans, hash) = (&mut held.bans, self.hash());
        let past = bans.past(hash);
        if past.is_none() && !mem::take(reserved) && !self.memory.ban_room.take() {
            return None;
        }
        let sentence = self.sentence(past.unwrap_or_default());
        let until = sentence.ban.until;
        bans.add(hash, sentence);
        self.memory.shard(self.tag).publish(bans);
        let started = true;
        Some(Finding {
            reading: Some(over(until.since(self.now))),
            ..self.found(Standing::Banned { until, started })
        })
    }

    fn sentence(&self, past: u32) -> Sentence {
        let key = self.plan.key(self.step);
        let counts = matches!(self.step.ban, Ban::Escalating(_));
        let before = if counts { past } else { 0 };
        let ban = BanEntry {
            id: self.step.id,
            key: key.get(..SHOWN).unwrap_or(key).into(),
            until: self.now.plus(self.step.ban.length(before)),
            offence: before.saturating_add(1),
        };
        Sentence {
            ban,
            began: self.now,
            counts,
        }
    }
}

/// Nothing is left until the ban has ended.
fn over(length: Duration) -> Reading {
    Reading::refusing(0, length, Some(length))
}
