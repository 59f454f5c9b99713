//! One pass over the steps of a plan.
//!
//! A step that charges what fits is carried out by a function of its own for each algorithm, from
//! the hash to the finding: that is what a gateway does most.

use super::hash::{KeyHash, Tag};
use super::known::{self, Ask, Expiring, Known};
use super::visit::{Notes, Visit};
use super::{Held, Memory};
use crate::clock::Timestamp;
use crate::limit::concurrency::InFlight;
use crate::limit::{fixed_window, gcra, leaky_bucket, sliding_window, token_bucket};
use crate::rules::plan::{Finding, Findings, Op, Plan, Standing, Step};

/// Carries out a step, the index of which is given; says whether its key is within its limit. What is
/// needed longest comes first.
type Carry = fn(&Step, &Plan, &Memory, u16, Timestamp, &mut Findings) -> bool;

/// How an [`Op::Admit`] is carried out, in the order of [`Algorithm`].
///
/// [`Algorithm`]: crate::limit::Algorithm
static ADMIT: [Carry; 7] = [
    Memory::admit_window,
    Memory::admit::<Expiring<fixed_window::Window>>,
    Memory::admit_long,
    Memory::admit::<Expiring<token_bucket::Bucket>>,
    Memory::admit::<Expiring<leaky_bucket::Queue>>,
    Memory::admit::<Expiring<gcra::Cells>>,
    Memory::admit::<InFlight>,
];

impl Memory {
    /// See [`crate::store::Store::carry_out`].
    pub fn carry_out(&self, plan: &Plan, now: Timestamp, findings: &mut Findings) {
        for (index, step) in plan.steps.iter().enumerate() {
            let carry = match step.op {
                Op::Admit => ADMIT.get(step.limiter.algorithm as usize).copied(),
                Op::Charge | Op::Peek | Op::Pass | Op::Always => None,
            };
            let carry = carry.unwrap_or(Memory::carry);
            let within = carry(step, plan, self, index as u16, now, findings);
            if !within && step.acts && step.ends_pass {
                if index + 1 < plan.steps.len() {
                    self.look_on(plan, index + 1, now, findings);
                }
                return;
            }
        }
    }

    /// Looks at what is asked for after the pass has ended, from the step `first` on.
    #[inline(never)]
    fn look_on(&self, plan: &Plan, first: usize, now: Timestamp, findings: &mut Findings) {
        let steps = (0..).zip(&plan.steps).skip(first);
        for (index, step) in steps.filter(|(_, step)| step.peek_after_end) {
            let op = match step.op.counts() {
                true => Op::Peek,
                false => step.op,
            };
            self.carry_as(op, plan, Ask { index, step, now }, findings);
        }
    }

    /// Any step.
    #[inline(never)]
    fn carry(
        step: &Step,
        plan: &Plan,
        memory: &Memory,
        index: u16,
        now: Timestamp,
        findings: &mut Findings,
    ) -> bool {
        memory.carry_as(step.op, plan, Ask { index, step, now }, findings)
    }

    fn carry_as(&self, op: Op, plan: &Plan, ask: Ask<'_>, findings: &mut Findings) -> bool {
        let mut notes = Notes::new(findings);
        let without_key = match op {
            Op::Admit | Op::Charge | Op::Peek => None,
            Op::Pass => self.ban_room.is_empty().then_some(Standing::Within),
            Op::Always => Some(Standing::Over),
        };
        match without_key {
            Some(standing) => notes.keep(Finding::bare(ask.index, standing)),
            None => {
                let hash = self.hash(plan, ask.step);
                self.visit(hash.tag, plan, ask, op).run(hash, &mut notes)
            }
        }
    }

    /// `sliding_window`, with sub-windows or without.
    #[inline(never)]
    fn admit_window(
        step: &Step,
        plan: &Plan,
        memory: &Memory,
        index: u16,
        now: Timestamp,
        findings: &mut Findings,
    ) -> bool {
        if step.limiter.slices > 1 {
            return Memory::admit_long(step, plan, memory, index, now, findings);
        }
        type Words = Expiring<sliding_window::Window>;
        Memory::admit::<Words>(step, plan, memory, index, now, findings)
    }

    /// A step that charges what fits in the words of an entry, in few steps if its key is known.
    #[inline(never)]
    fn admit<K: Known>(
        step: &Step,
        plan: &Plan,
        memory: &Memory,
        index: u16,
        now: Timestamp,
        findings: &mut Findings,
    ) -> bool {
        let ask = Ask { index, step, now };
        memory.admit_by(known::admit::<K>, plan, ask, findings)
    }

    /// The same in a log or in sub-windows.
    #[inline(never)]
    fn admit_long(
        step: &Step,
        plan: &Plan,
        memory: &Memory,
        index: u16,
        now: Timestamp,
        findings: &mut Findings,
    ) -> bool {
        let ask = Ask { index, step, now };
        memory.admit_by(known::admit_long, plan, ask, findings)
    }

    /// Asks `known` first, which says whether it has charged.
    #[inline(always)]
    fn admit_by(
        &self,
        known: impl FnOnce(&mut Held, Tag, Ask<'_>, &mut Findings) -> bool,
        plan: &Plan,
        ask: Ask<'_>,
        findings: &mut Findings,
    ) -> bool {
        let hash = self.hash(plan, ask.step);
        let shard = self.shard(hash.tag);
        let mut held = shard.held.lock();
        if !held.bans.is_empty()
            && let Some(until) = self.banned(shard, &mut held.bans, hash.whole(), ask.now)
        {
            return Notes::new(findings).keep(Finding::banned(ask.index, until));
        }
        if known(&mut held, hash.tag, ask, findings) {
            return true;
        }
        let visit = self.visit(hash.tag, plan, ask, Op::Admit);
        visit.run_locked(held, findings)
    }

    /// The hash of a step's key.
    #[inline(always)]
    pub(super) fn hash(&self, plan: &Plan, step: &Step) -> KeyHash {
        self.hasher.hash(step.id.identity, plan.key(step))
    }

    /// A step, at its key, which is known by `tag`.
    #[inline(always)]
    pub(super) fn visit<'a>(&'a self, tag: Tag, plan: &'a Plan, ask: Ask<'a>, op: Op) -> Visit<'a> {
        let Ask { index, step, now } = ask;
        Visit {
            memory: self,
            index,
            plan,
            step,
            op,
            tag,
            now,
        }
    }
}
