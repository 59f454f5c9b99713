//! Between what is kept and what is saved.

use crate::limit::slices::Slices;
use crate::limit::sliding_log::Log;
use crate::limit::{Counter, State};
use crate::rules::plan::RuleId;
use crate::store::BanEntry;
use crate::store::memory::Memory;
use crate::store::memory::bans::Sentence;
use crate::store::memory::bucket::Kind;
use crate::store::memory::saved::{Ban, Count};
use crate::store::memory::shard_data::ShardData;

impl Count {
    /// What is saved of `counter`; `None` for leases, whose requests end with the process.
    pub(super) fn of(counter: &Counter) -> Option<Self> {
        match counter {
            Counter::Words(state) => Some(Count::Words(*state)),
            Counter::Slices(slices) => {
                let (index, counts) = slices.saved();
                Some(Count::Slices { index, counts })
            }
            Counter::Log(log) => {
                let (at, entries) = (log.asked(), log.entries().collect());
                Some(Count::Log { at, entries })
            }
            Counter::Leases(_) => None,
        }
    }

    fn restored(self) -> Counter {
        match self {
            Count::Words(state) => Counter::Words(state),
            Count::Slices { index, counts } => Counter::Slices(Slices::restored(index, counts)),
            Count::Log { at, entries } => Counter::Log(Log::restored(at, &entries)),
        }
    }
}

impl ShardData {
    /// What an entry with this count holds. `None`: there is no memory for it.
    pub(super) fn restore_count(&mut self, count: Count, memory: &Memory) -> Option<(Kind, State)> {
        let counter = count.restored();
        if let Counter::Words(state) = counter {
            return Some((Kind::Words, state));
        }
        let paid = memory.budgets.paying(&counter)?.take_many(counter.bytes());
        paid.then(|| {
            let handle = u32::try_from(self.large.insert(counter)).unwrap_or(u32::MAX);
            (Kind::Handle, [handle, 0, 0])
        })
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
