//! Packs a plan for plan.lua.
//!
//! The plan is one string, little-endian: a header, then the steps. Numbers have the widths that plan.lua unpacks.

use std::ops::Range;
use std::time::Duration;

use super::key_names::{FleetKey, KeyNames, NameHash};
use crate::limit::concurrency::LeaseId;
use crate::limit::{Algorithm, CounterShape, Limiter, MAX_LIMIT};
use crate::rules::plan::{BanLength, Plan, Step, StepOp};

/// A time that means never, and the first number that Lua does not represent exactly.
pub(super) const NEVER: u64 = 1 << 53;

/// The largest cost: more than any counter can hold.
const MAX_COST: u64 = (1 << 33) - 1;

/// The most ban lengths of a step.
const MAX_BANS: usize = 255;

/// A packed plan without steps and without a deadline.
pub(super) const NO_STEPS: &[u8] = &[0; 10];

const ENDED: u8 = 1;
const MITIGATES: u8 = 1;
const TERMINAL: u8 = 2;
const PEEK_AFTER_END: u8 = 4;
pub(super) const ESCALATES: u8 = 8;
const ONLY_TOTAL: u8 = 16;

/// The keys and the packed plan of one script call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PackedPlan {
    /// The records, then the lists and sorted sets.
    pub(super) keys: Vec<Vec<u8>>,
    /// The plan.
    pub(super) plan: Vec<u8>,
}

/// What a call does with a plan.
#[derive(Clone, Debug)]
pub(super) struct CallScope {
    /// The steps of the call. One slot of a Cluster has only some of them.
    pub(super) steps: Range<usize>,
    /// Whether an earlier call has ended evaluation, so that this one only peeks.
    pub(super) has_ended: bool,
    /// The server's time after which nothing is done, in microseconds. 0 means no deadline.
    pub(super) deadline: u64,
}

impl PackedPlan {
    /// Packs the steps of `plan` that are in `scope`.
    pub(super) fn new(plan: &Plan, scope: &CallScope, names: &KeyNames) -> Self {
        let steps = plan.steps.get(scope.steps.clone()).unwrap_or_default();
        let (mut records, mut extras) = (Vec::with_capacity(steps.len()), Vec::new());
        let mut packed = Vec::with_capacity(16 + steps.len() * 48);
        push(&mut packed, scope.deadline, 7);
        packed.push(if scope.has_ended { ENDED } else { 0 });
        let with_record = |step: &&Step| step.op != StepOp::Always;
        push(
            &mut packed,
            steps.iter().filter(with_record).count() as u64,
            2,
        );
        let mut last: Option<(&[u8], NameHash)> = None;
        for step in steps {
            pack_step(&mut packed, step, plan.lease);
            if !with_record(&step) {
                continue;
            }
            let key = plan.key(step);
            let hash = match last {
                Some((before, hash)) if before == key => hash,
                _ => NameHash::of(key),
            };
            last = Some((key, hash));
            let record = names.record(FleetKey {
                identity: step.id.identity,
                hash,
            });
            match step.limiter.shape() {
                CounterShape::Log => extras.push(KeyNames::log(&record)),
                CounterShape::Leases => extras.push(KeyNames::leases(&record)),
                CounterShape::Words | CounterShape::Share | CounterShape::Slices => {}
            }
            records.push(record);
        }
        records.append(&mut extras);
        Self {
            keys: records,
            plan: packed,
        }
    }
}

/// The member of a sorted set that is the lease `id` of `units`.
pub(super) fn lease_member(id: LeaseId, units: u64) -> Vec<u8> {
    let mut member = id.to_le_bytes().to_vec();
    if units != 1 {
        push(&mut member, units.min(MAX_LIMIT + 1), 5);
    }
    member
}

fn pack_step(packed: &mut Vec<u8>, step: &Step, lease: LeaseId) {
    let limiter = &step.limiter;
    let lengths = ban_lengths(&step.ban);
    packed.push(op_code(step.op));
    // A step without a counter has no algorithm.
    packed.push(if step.op == StepOp::Always {
        0
    } else {
        algorithm_code(limiter)
    });
    packed.push(flags(step));
    packed.push(lengths.len() as u8);
    push(packed, limiter.limit.min(MAX_LIMIT), 4);
    push(packed, micros(limiter.period).max(1), 6);
    push(packed, step.cost.min(MAX_COST), 5);
    push(packed, limiter.capacity().min(MAX_LIMIT), 4);
    push(packed, micros(step.max_hold).min(NEVER - 1), 7);
    push(packed, max_wait(limiter), 7);
    match limiter.shape() {
        _ if step.op == StepOp::Always => {}
        CounterShape::Slices => push(packed, u64::from(limiter.slices), 2),
        CounterShape::Leases => packed.extend_from_slice(&lease.to_le_bytes()),
        CounterShape::Share => push(packed, ratio(limiter), 2),
        CounterShape::Words | CounterShape::Log => {}
    }
    for length in lengths {
        push(packed, micros(*length), 6);
    }
}

fn op_code(op: StepOp) -> u8 {
    match op {
        StepOp::Admit => 0,
        StepOp::Charge => 1,
        StepOp::Peek => 2,
        StepOp::CheckBan => 3,
        StepOp::Always => 4,
    }
}

/// The algorithm's number in limiters.lua.
pub(super) fn algorithm_code(limiter: &Limiter) -> u8 {
    match limiter.algorithm {
        Algorithm::SlidingWindow if limiter.shape() == CounterShape::Slices => 5,
        Algorithm::FixedWindow if limiter.ratio.is_some() => 9,
        _ if limiter.ratio.is_some() => 8,
        Algorithm::SlidingWindow => 1,
        Algorithm::FixedWindow => 2,
        Algorithm::TokenBucket | Algorithm::Gcra => 3,
        Algorithm::LeakyBucket => 4,
        Algorithm::SlidingLog => 6,
        Algorithm::Concurrency => 7,
    }
}

fn flags(step: &Step) -> u8 {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    flag(step.mitigates, MITIGATES)
        | flag(step.is_terminal, TERMINAL)
        | flag(step.peek_after_end, PEEK_AFTER_END)
        | flag(matches!(step.ban, BanLength::Escalating(_)), ESCALATES)
        | flag(step.only_total, ONLY_TOTAL)
}

pub(super) fn ban_lengths(ban: &BanLength) -> &[Duration] {
    match ban {
        BanLength::Never => &[],
        BanLength::For(length) => std::slice::from_ref(length),
        BanLength::Escalating(lengths) => lengths.get(..MAX_BANS).unwrap_or(lengths),
    }
}

/// The ratio in 1/10,000. 0 if the limiter has no ratio.
pub(super) fn ratio(limiter: &Limiter) -> u64 {
    limiter.ratio.map_or(0, |ratio| ratio.parts().into())
}

/// The longest wait of a `leaky_bucket` queue.
fn max_wait(limiter: &Limiter) -> u64 {
    micros(limiter.max_wait).min(NEVER)
}

/// Whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Appends the lowest `width` bytes of `value`, or the largest number of that width.
pub(super) fn push(packed: &mut Vec<u8>, value: u64, width: usize) {
    let largest = u64::MAX >> (64 - 8 * width);
    let bytes = value.min(largest).to_le_bytes();
    packed.extend_from_slice(bytes.get(..width).unwrap_or(&bytes));
}
