//! Between what is kept and what is saved.

use crate::limit::State;
use crate::limit::slices::Slices;
use crate::limit::sliding_log::Log;
use crate::rules::plan::RuleId;
use crate::store::BanEntry;
use crate::store::memory::bans::Sentence;
use crate::store::memory::bucket::Kind;
use crate::store::memory::long::Long;
use crate::store::memory::saved::{Ban, Count};
use crate::store::memory::{Held, Memory};

impl Long {
    pub(super) fn saved(&self) -> Count {
        match self {
            Long::Slices(slices) => {
                let (index, counts) = slices.saved();
                Count::Slices { index, counts }
            }
            Long::Log(log) => {
                let (at, entries) = (log.asked(), log.entries().collect());
                Count::Log { at, entries }
            }
        }
    }

    fn restored(count: Count) -> Result<Self, State> {
        match count {
            Count::Words(state) => Err(state),
            Count::Slices { index, counts } => Ok(Long::Slices(Slices::restored(index, counts))),
            Count::Log { at, entries } => Ok(Long::Log(Log::restored(at, &entries))),
        }
    }
}

impl Held {
    /// What an entry with this count says. `None`: there is no room for it.
    pub(super) fn restore_count(&mut self, count: Count, memory: &Memory) -> Option<(Kind, State)> {
        match Long::restored(count) {
            Err(state) => Some((Kind::Words, state)),
            Ok(long) if memory.budgets.paying(&long).take_many(long.bytes()) => {
                let handle = self.slab.keep(Box::new(long));
                Some((Kind::Handle, [handle, 0, 0]))
            }
            Ok(_) => None,
        }
    }
}

impl Ban {
    pub(in crate::store::memory) fn of(hash: u128, sentence: &Sentence, past: bool) -> Self {
        let ban = &sentence.ban;
        Self {
            hash,
            identity: ban.id.identity,
            key: ban.key.clone(),
            began: sentence.began,
            until: ban.until,
            offence: ban.offence,
            counts: sentence.counts,
            past,
        }
    }

    pub(super) fn sentence(self, id: RuleId) -> Sentence {
        let ban = BanEntry {
            id,
            key: self.key,
            until: self.until,
            offence: self.offence,
        };
        Sentence {
            ban,
            began: self.began,
            counts: self.counts,
        }
    }
}
