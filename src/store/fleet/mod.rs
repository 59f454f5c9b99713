//! What a gateway of a fleet keeps and exchanges besides the calls of its requests.
//!
//! [`AsyncCounters`] decides the steps of async mode from this node's estimates ([`super::async_mode`]) and queues
//! reports. One core of the process runs the [`FleetSync`], which sends reports and reads events every
//! `sync_interval`. In exact mode it has no reports, but it still learns of bans that ended early.

mod async_counters;
mod async_step;
mod async_usage;
mod ban_mirror;
mod fleet_sync;
mod key_table;

pub(super) use async_counters::AsyncCounters;
pub(super) use async_step::AsyncStep;
pub(super) use async_usage::KnownKey;
pub(super) use ban_mirror::MirroredBans;
pub(super) use fleet_sync::FleetSync;

#[cfg(test)]
mod tests;
