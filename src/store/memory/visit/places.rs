//! Places in flight: `concurrency`.
//!
//! A place is given back by who took it, so it is taken only where it can be: an entry of another
//! slot belongs to a rule that was registered anew, and is left to it. A ban leaves the places as
//! they are, since their requests are still in flight.

use super::{Fate, Notes, Visit};
use crate::limit::State;
use crate::rules::plan::Op;
use crate::store::memory::Held;
use crate::store::memory::bucket::{Entry, Kind};
use crate::store::memory::known::share;
use crate::store::memory::table::Spot;

impl Visit<'_> {
    /// Takes places.
    pub(super) fn count_places(&self, held: &mut Held, notes: &mut Notes<'_>) -> Option<bool> {
        let spot = held.table.find(self.tag);
        let entry = spot.map_or_else(Entry::default, |spot| held.table.entry(spot));
        if spot.is_some() && entry.slot != self.step.id.slot && self.op != Op::Peek {
            let op = Op::Peek;
            return Visit { op, ..*self }.count_places(held, notes);
        }
        let mut state = entry.state;
        let reading = self.operate(&mut state);
        let found = match self.fate(&mut state, &reading) {
            Fate::Ban => self.ban(held, &mut notes.reserved)?,
            Fate::Charged(after) => {
                self.write_places(held, spot, state, after.remaining);
                self.told(reading, true)
            }
            Fate::Kept => self.told(reading, false),
        };
        Some(notes.keep(found))
    }

    /// Gives places back.
    pub(in crate::store::memory) fn give_back(&self) {
        let shard = self.memory.shard(self.tag);
        let held = &mut *shard.held.lock();
        let Some(spot) = held.table.find(self.tag) else {
            return;
        };
        let entry = held.table.entry(spot);
        if entry.slot != self.step.id.slot || entry.kind != Kind::Places {
            return;
        }
        let mut state = entry.state;
        self.step.limiter.release(&mut state, self.step.cost);
        let remaining = self.step.limiter.peek(&state, self.now, 0).remaining;
        self.write_places(held, Some(spot), state, remaining);
    }

    fn write_places(&self, held: &mut Held, spot: Option<Spot>, state: State, left: u64) {
        let entry = Entry {
            tag: self.tag.get(),
            expires: u32::MAX,
            state,
            slot: self.step.id.slot,
            fill: share(self.step.limiter.capacity(), left),
            kind: Kind::Places,
        };
        let empty = state == State::default();
        match spot {
            Some(spot) if empty => held.clear(spot, self.memory),
            Some(spot) => held.put(spot, entry, self.memory),
            None if empty => {}
            None => held.insert(self.tag, entry, self.second(), self.memory),
        }
    }
}
