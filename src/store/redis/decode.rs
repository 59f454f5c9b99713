//! Reads the reply of plan.lua. A reply comes from the network and can be anything.

use super::encode::NEVER;
use crate::clock::Timestamp;
use crate::limit::{CounterReading, ShareCounts};
use crate::rules::plan::{KeyStatus, PlanResult, StepResult};

/// The length of the server's time at the start of a reply.
const TIME_BYTES: usize = 7;

/// The length of one result, without the counts of a rule with a ratio.
const RESULT_BYTES: usize = 2 + 1 + 5 + 7 + 7;

const STATUS: u8 = 15;
const CHARGED: u8 = 16;
const HAS_READING: u8 = 32;
const FITS: u8 = 64;
const HAS_SHARE: u8 = 128;

/// A reply that the script cannot have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadReply;

/// What a reply means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptReply {
    /// The plan was applied.
    Applied,
    /// The deadline had passed. Nothing was applied.
    Late,
}

/// Reads a reply to a call with `steps` steps and adds their results to `result`. `first` is the index of the first
/// of these steps in the plan. Nothing is added if the reply is bad.
pub(super) fn decode(
    reply: &[u8],
    first: u16,
    steps: usize,
    result: &mut PlanResult,
) -> Result<ScriptReply, BadReply> {
    let (time, results) = reply.split_at_checked(TIME_BYTES).ok_or(BadReply)?;
    let now = number(time);
    if now >= NEVER {
        return Err(BadReply);
    }
    result.at = Timestamp::from_micros(now);
    if results.is_empty() {
        return Ok(ScriptReply::Late);
    }
    let (before, offences) = (result.steps.len(), result.offences.len());
    let read = read_results(results, first, steps, result);
    if read.is_err() {
        result.steps.truncate(before);
        result.offences.truncate(offences);
    }
    read.map(|()| ScriptReply::Applied)
}

/// Reads the results of `steps` steps.
fn read_results(
    mut bytes: &[u8],
    first: u16,
    steps: usize,
    result: &mut PlanResult,
) -> Result<(), BadReply> {
    let now = result.at.as_micros();
    let before = result.steps.len();
    while !bytes.is_empty() {
        let (entry, rest) = bytes.split_first_chunk::<RESULT_BYTES>().ok_or(BadReply)?;
        let (mut read, offence) = step_result(entry, steps, now).ok_or(BadReply)?;
        bytes = rest;
        if has_share(entry) {
            let (counts, rest) = bytes.split_first_chunk::<8>().ok_or(BadReply)?;
            bytes = rest;
            read.reading = read
                .reading
                .map(|reading| reading.with_share(share(*counts)));
        }
        read.step = read.step.saturating_add(first);
        if let Some(offence) = offence {
            result.offences.push((read.step, offence));
        }
        result.steps.push(read);
        // Each step has a result, and one more if it was filled up.
        if result.steps.len() - before > 2 * steps {
            return Err(BadReply);
        }
    }
    Ok(())
}

/// Whether both counts of a rule with a ratio follow.
fn has_share([_, _, flags, ..]: &[u8; RESULT_BYTES]) -> bool {
    flags & HAS_SHARE != 0
}

fn share(bytes: [u8; 8]) -> ShareCounts {
    let both = u64::from_le_bytes(bytes);
    ShareCounts {
        count: both as u32,
        total: (both >> 32) as u32,
    }
}

/// Reads one result, and the ordinal of the offence if the key is banned.
fn step_result(
    entry: &[u8; RESULT_BYTES],
    steps: usize,
    now: u64,
) -> Option<(StepResult, Option<u32>)> {
    let [s0, s1, flags, rest @ ..] = entry;
    let step = u16::from_le_bytes([*s0, *s1]);
    if usize::from(step) >= steps {
        return None;
    }
    let (remaining, times) = rest.split_at_checked(5)?;
    let (reset, delay) = times.split_at_checked(7)?;
    let (remaining, reset, delay) = (number(remaining), number(reset), number(delay));
    let until = Timestamp::from_micros(now.saturating_add(delay));
    let (status, offence) = match flags & STATUS {
        0 => (KeyStatus::Within, None),
        1 => (KeyStatus::Over, None),
        banned @ (2 | 3) => {
            let started = banned == 3;
            let status = KeyStatus::Banned { until, started };
            (status, Some(u32::try_from(remaining).unwrap_or(u32::MAX)))
        }
        _ => return None,
    };
    // A ban has its offence in the field for the remaining units.
    let remaining = if offence.is_some() { 0 } else { remaining };
    let reading =
        || CounterReading::from_micros(flags & FITS != 0, remaining, time(reset), time(delay));
    let result = StepResult {
        step,
        status,
        reading: (flags & HAS_READING != 0).then(reading),
        charged: flags & CHARGED != 0,
    };
    Some((result, offence))
}

/// A duration in microseconds, `u64::MAX` for never.
fn time(micros: u64) -> u64 {
    if micros < NEVER { micros } else { u64::MAX }
}

/// A little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    for (wide, byte) in wide.iter_mut().zip(bytes) {
        *wide = *byte;
    }
    u64::from_le_bytes(wide)
}
