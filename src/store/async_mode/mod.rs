//! The decisions of async mode: a fleet of gateways shares a counter without a round trip per request.
//!
//! Each node decides from its own estimate of the fleet's counter ([`KeyState`]) and reports what it has
//! admitted. The shared store adds the reports to one [`FleetRecord`] per key and returns it. Everything here
//! is a pure function of its arguments: the caller supplies the time, the random draw, the connection to the
//! store and the queues.
//!
//! The caller's part, for one key:
//!
//! 1. [`KeyState::decide`], [`KeyState::charge`] or [`KeyState::peek`] for each request, with the estimated
//!    time of the store.
//! 2. According to [`ReportTiming`], queue the key for the next flush, which happens every
//!    [`FleetInfo::sync_interval`], or flush it now, but at most once per [`FleetInfo::gap`] for the whole node.
//! 3. In a flush: [`KeyState::take_report`] and, in the store, [`FleetRecord::merge`]. Then
//!    [`KeyState::confirm`] with the view that the store returned, or [`KeyState::report_failed`].
//! 4. [`KeyState::learn`] for each event of the store about the key, after the views of the same reply.
//!
//! [`Algorithm::async_obstacle`](crate::limit::Algorithm::async_obstacle) tells which algorithms are supported.
//! Nothing here starts a ban: the store does, from the record and [`KeyReport::refused_cost`].

mod demand;
mod fleet_info;
mod fleet_record;
mod key_state;

pub use fleet_info::FleetInfo;
pub use fleet_record::{FleetRecord, FleetView, MergeResult};
pub use key_state::{AsyncDecision, KeyReport, KeyState, ReportTiming};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limit::{ChargeUnits, Counter, Limiter, MAX_LIMIT};

/// The units that `counter` holds at `now`, also those above the limit; at most [`MAX_LIMIT`]. With a ratio, those of
/// the total.
pub fn used_units(limiter: &Limiter, counter: &mut Counter, now: Timestamp) -> u64 {
    held_units(limiter, counter, now).total
}

/// The units of both counters of a rule with a ratio. For other rules, both are those of [`used_units`].
pub fn held_units(limiter: &Limiter, counter: &mut Counter, now: Timestamp) -> ChargeUnits {
    // Only the capacity of this limiter differs. A bucket without a limit would have no capacity.
    let measure = if limiter.algorithm.has_queue() {
        Limiter {
            limit: limiter.limit.max(1),
            queue: u32::MAX - 1,
            max_wait: Duration::MAX,
            ..*limiter
        }
    } else if limiter.algorithm.has_burst() {
        Limiter {
            limit: limiter.limit.max(1),
            burst: MAX_LIMIT,
            ..*limiter
        }
    } else {
        Limiter {
            limit: MAX_LIMIT,
            ..*limiter
        }
    };
    let reading = counter.peek(&measure, now, 0);
    if limiter.ratio.is_some() {
        ChargeUnits {
            count: reading.share.count.into(),
            total: reading.share.total.into(),
        }
    } else {
        (MAX_LIMIT - reading.remaining).into()
    }
}
