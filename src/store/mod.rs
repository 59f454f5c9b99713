//! Where counters and bans are kept: carries out a [`Plan`] in one go.
//!
//! A store knows nothing of requests, expressions or actions, and reads no clock. Every kind of
//! store gives the same answers: `conformance.rs` is the one suite for all.

use std::io::{self, Read, Write};

use self::memory::Damage;
use crate::clock::Timestamp;
use crate::rules::plan::{Findings, Plan, RuleId};

pub mod memory;
pub mod persist;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

/// The counters and bans of one gateway. They outlive a configuration.
#[derive(Debug)]
pub enum Store {
    /// In this process.
    Memory(memory::Memory),
}

/// What had to make room for something newer, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    /// Counters that still meant something.
    pub counters: u64,
    /// Bans that had not ended.
    pub bans: u64,
}

/// A ban that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanEntry {
    /// The rule.
    pub id: RuleId,
    /// The key's bytes as the plan had them, cut at [`memory::SHOWN`] bytes.
    pub key: Box<[u8]>,
    /// When it ends.
    pub until: Timestamp,
    /// Which offence of the key it is, counted from 1.
    pub offence: u32,
}

/// What was taken over from a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Keys that are counted.
    pub counters: usize,
    /// Bans that are in force.
    pub bans: usize,
    /// The rules that are not registered here, each with how many bans have ended by it.
    pub unknown: Vec<(String, usize)>,
    /// Keys are hashed under another secret from now on, that of the snapshot.
    pub other_secret: bool,
}

/// How much a store in this process may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Keys that are tracked, over all rules; bans a quarter as many.
    pub max_keys: usize,
    /// Bytes of all `sliding_log` timestamps together.
    pub max_log_bytes: usize,
}

// === impl Store ===

impl Store {
    /// A store in this process.
    pub fn memory(bounds: Bounds) -> Self {
        Store::Memory(memory::Memory::new(bounds))
    }

    /// The same with keys hashed under `secret`, so that nobody else can tell which of them share
    /// a place. It must not have counted anything yet.
    pub fn keyed(mut self, secret: &[u8]) -> Self {
        match &mut self {
            Store::Memory(memory) => memory.set_secret(secret),
        }
        self
    }

    /// Writes all that means something at `now`, on which no request waits; gives `out` back,
    /// which should be buffered.
    pub fn save<W: Write>(&self, out: W, now: Timestamp) -> io::Result<W> {
        match self {
            Store::Memory(memory) => memory.save(out, now),
        }
    }

    /// Reads what [`Store::save`] wrote to its end and says whether it is whole.
    pub fn verify(&self, input: impl Read) -> Result<(), Damage> {
        match self {
            Store::Memory(_) => memory::Memory::verify(input),
        }
    }

    /// Takes over what [`Store::save`] wrote, as far as its rules are registered here, it means
    /// something at `now` and there is room. For a store that has counted nothing yet, and input
    /// that was verified.
    pub fn restore(&mut self, input: impl Read, now: Timestamp) -> Result<Restored, Damage> {
        match self {
            Store::Memory(memory) => memory.restore(input, now),
        }
    }

    /// Carries out `plan`: its steps in order, until one ends the pass; after that, those that
    /// are only looked at.
    pub async fn apply(&self, plan: &Plan, now: Timestamp) -> Findings {
        let mut findings = Findings::new();
        self.carry_out(plan, now, &mut findings).await;
        findings
    }

    /// [`Store::apply`], with room for what is found: a request has it copied nowhere.
    pub async fn carry_out(&self, plan: &Plan, now: Timestamp, findings: &mut Findings) {
        match self {
            Store::Memory(memory) => memory.carry_out(plan, now, findings),
        }
    }

    /// Gives back the `concurrency` places that `plan` took, as `findings` says. The plan's steps
    /// are those of one call of [`Store::apply`].
    pub fn release(&self, plan: &Plan, findings: &Findings) {
        match self {
            Store::Memory(memory) => memory.release(plan, findings),
        }
    }

    /// The id under which a rule's counters are kept. The same identity always gets the same one,
    /// until it is retired.
    pub fn register(&self, identity: u64, name: &str) -> RuleId {
        match self {
            Store::Memory(memory) => memory.register(identity, name),
        }
    }

    /// Drops the counters and bans of all identities that are not in `keep`. Returns the names of
    /// their rules with how many bans that were in force at `now` have ended by it.
    ///
    /// A request that still holds the old configuration may count for them afterwards; that
    /// expires like any other count.
    pub fn retire(&self, keep: &[u64], now: Timestamp) -> Vec<(String, usize)> {
        match self {
            Store::Memory(memory) => memory.retire(keep, now),
        }
    }

    /// How many keys are counted for each registered slot, in slot order. Looks at everything:
    /// for a scrape, not for a request.
    pub fn keys(&self, now: Timestamp) -> Vec<(u16, usize)> {
        match self {
            Store::Memory(memory) => memory.keys(now),
        }
    }

    /// What had to make room.
    pub fn evictions(&self) -> Evictions {
        match self {
            Store::Memory(memory) => memory.evictions(),
        }
    }

    /// The bans in force at `now`, those that end first before the others.
    pub fn bans(&self, now: Timestamp) -> Vec<BanEntry> {
        match self {
            Store::Memory(memory) => memory.bans(now),
        }
    }
}

// === impl Bounds ===

impl Bounds {
    /// At most `max_keys` keys, and the default room for logs.
    pub const fn keys(max_keys: usize) -> Self {
        Self {
            max_keys,
            max_log_bytes: 64 << 20,
        }
    }
}
