//! Steps whose counter is a log or sub-windows.

use super::{Fate, Notes, Visit};
use crate::limit::{Reading, Shape, State};
use crate::rules::plan::Op;
use crate::store::memory::Held;
use crate::store::memory::bucket::{Entry, Kind};
use crate::store::memory::counter::{Count, Counter};
use crate::store::memory::long::Long;
use crate::store::memory::table::Spot;

/// A counter while it is worked on.
struct Open {
    counter: Counter,
    /// Where its entry is; `None`: it is new.
    spot: Option<Spot>,
    /// What it was lent under.
    handle: Option<u32>,
    /// The bytes that are paid for.
    paid: usize,
}

impl Visit<'_> {
    /// Counts in a long counter.
    pub(super) fn count_long(&self, held: &mut Held, notes: &mut Notes<'_>) -> Option<bool> {
        let mut open = self.open(held);
        if self.may_ban() {
            let (spot, reading) = (open.spot, self.look(&mut open));
            if !reading.fits {
                self.close(held, open, &reading, false);
                let found = self.ban(held, &mut notes.reserved)?;
                held.clear_some(spot, self.memory);
                return Some(notes.keep(found));
            }
        }
        let reading = self.operate(&mut open.counter);
        let (after, charged) = match self.fate(&mut open.counter, &reading) {
            Fate::Charged(after) => (after, true),
            Fate::Kept | Fate::Ban => (reading, false),
        };
        self.close(held, open, &after, charged);
        Some(notes.keep(self.told(reading, charged)))
    }

    fn look(&self, open: &mut Open) -> Reading {
        let (limiter, cost) = (&self.step.limiter, self.step.cost);
        open.counter.peek(limiter, self.now, cost)
    }

    fn open(&self, held: &mut Held) -> Open {
        let spot = held.table.find(self.tag);
        let entry = spot.map_or_else(Entry::default, |spot| held.table.entry(spot));
        if entry.expires <= self.second() {
            if self.op != Op::Peek {
                held.clear_some(spot, self.memory);
            }
            return Open::new(self.fresh(held));
        }
        let handle = entry.handle();
        let Some(long) = handle.and_then(|handle| held.slab.lend(handle)) else {
            let counter = Counter::Words(entry.state);
            let open = Open::new(counter);
            return Open { spot, ..open };
        };
        Open {
            spot,
            handle,
            paid: long.bytes(),
            counter: Counter::Long(long),
        }
    }

    /// A counter for a key that has none. One that is only looked at needs no memory.
    fn fresh(&self, held: &mut Held) -> Counter {
        let (limiter, budgets) = (&self.step.limiter, &self.memory.budgets);
        let wanted = limiter.shape();
        if self.op == Op::Peek {
            return Counter::new(Shape::Words, limiter);
        }
        if budgets.shape(wanted) != wanted {
            held.sweep(self.tag, self.second(), self.memory);
        }
        Counter::new(budgets.shape(wanted), limiter)
    }

    /// Keeps what was counted. A new counter to which nothing was charged is dropped.
    fn close(&self, held: &mut Held, open: Open, after: &Reading, charged: bool) {
        if open.spot.is_none() && !charged {
            return;
        }
        match self.fit(held, open.counter, open.paid) {
            Counter::Words(state) => self.write(held, open.spot, state, after),
            Counter::Long(long) => self.write_long(held, open.spot, open.handle, long, after),
        }
    }

    fn write_long(
        &self,
        held: &mut Held,
        spot: Option<Spot>,
        handle: Option<u32>,
        long: Box<Long>,
        after: &Reading,
    ) {
        let entry = self.entry(State::default(), after);
        held.table
            .allow(entry.expires.saturating_sub(self.second()));
        if let (Some(spot), Some(handle)) = (spot, handle) {
            held.slab.restore(handle, long);
            held.table.refresh(spot, entry.expires, entry.fill);
            return;
        }
        let entry = Entry {
            kind: Kind::Handle,
            state: [held.slab.keep(long), 0, 0],
            ..entry
        };
        match spot {
            Some(spot) => held.put(spot, entry, self.memory),
            None => held.insert(self.tag, entry, self.second(), self.memory),
        }
    }

    /// Pays for what the counter takes beyond what is `paid` for; where nothing is left, makes it
    /// smaller.
    fn fit(&self, held: &mut Held, counter: Counter, paid: usize) -> Counter {
        let Counter::Long(long) = counter else {
            return counter;
        };
        let budget = self.memory.budgets.paying(&long);
        let more = long.bytes().saturating_sub(paid);
        budget.give(paid.saturating_sub(long.bytes()));
        let pay = || budget.take_many(more);
        let sweep = |held: &mut Held| held.sweep(self.tag, self.second(), self.memory);
        if pay() || (sweep(held) && pay()) {
            return Counter::Long(long);
        }
        budget.give(paid);
        self.fit(held, long.smaller(&self.step.limiter, self.now), 0)
    }
}

// === impl Open ===

impl Open {
    /// One that has no entry yet.
    fn new(counter: Counter) -> Self {
        Self {
            counter,
            spot: None,
            handle: None,
            paid: 0,
        }
    }
}
