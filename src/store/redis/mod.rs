//! The shared store in exact mode: every plan is one atomic script call to Redis or Valkey.
//!
//! `RedisStore` has what all cores share: settings, scripts, counts of failures. Each core has a `RedisLink` with a
//! connection of its own, on which the calls of all its requests are pipelined. Nothing here decides: a failed call
//! is a [`StoreError`](super::StoreError), and each rule's `on_failure` does the rest.

use std::fmt;
use std::time::Duration;

use self::address::RedisAddress;
use self::health::StoreHealth;
use self::key_names::KeyNames;
use self::script::LuaScript;
use super::async_mode::FleetView;
use crate::limit::Limiter;
use crate::rules::plan::{Plan, PlanResult};

pub mod address;
mod ban_index;
mod connector;
mod counter_record;
mod decode;
mod encode;
pub mod health;
mod key_names;
mod link;
mod script;
mod server_clock;
mod slot_owners;
mod sync_call;
mod sync_reply;

pub(super) use counter_record::KeyRecord;
pub(super) use key_names::{FleetKey, NameHash};
pub(super) use link::RedisLink;
pub(super) use sync_call::{
    BanEvent, MAX_REPORTS, PackedEvents, SyncReport, SyncSender, UnbanEvent, pack_exemptions_event,
};
pub(super) use sync_reply::{FleetEvent, ReportResult, StreamPositions, SyncReply};

#[cfg(test)]
mod tests;

/// Reads a reply to a plan with `steps` steps, as the store does. `None` if the script cannot have sent it.
pub fn read_reply(reply: &[u8], steps: usize) -> Option<PlanResult> {
    let mut result = PlanResult::default();
    decode::decode(reply, 0, steps, &mut result).ok()?;
    Some(result)
}

/// Reads the three strings of a reply to a report for `limiter`, as the store does. Returns the records of the report and
/// of all events. `None` if the script cannot have sent it.
pub fn read_sync_reply(parts: [&[u8]; 3], limiter: &Limiter) -> Option<Vec<FleetView>> {
    let positions: [&[u8]; 2] = [b"0", b"0"];
    let parts = parts.into_iter().chain(positions);
    let parts = parts.map(|part| ::redis::Value::BulkString(part.to_vec()));
    let reply = ::redis::Value::Array(parts.collect());
    let (_, reply) = sync_reply::decode(&reply, &[limiter]).ok()?;
    let reply = reply?;
    let merged = reply.results.into_iter().filter_map(|result| match result {
        ReportResult::Merged(view) => Some(view),
        ReportResult::Banned { .. } => None,
    });
    let announced = reply.events.into_iter().filter_map(|event| match event {
        FleetEvent::Exhausted(_, view) => Some(view),
        FleetEvent::Ban { .. } | FleetEvent::Unban(_) | FleetEvent::Exemptions => None,
    });
    Some(merged.chain(announced).collect())
}

/// The command that applies `plan`, with its script and without a deadline: what a bare client would send. Benchmarks
/// compare the store with it.
pub fn bare_command(plan: &Plan, prefix: &str) -> ::redis::Cmd {
    let scope = encode::CallScope {
        steps: 0..plan.steps.len(),
        has_ended: false,
        deadline: 0,
    };
    let packed = encode::PackedPlan::new(plan, &scope, &KeyNames::new(prefix));
    let mut command = LuaScript::plan().call();
    command.arg(packed.keys.len()).arg(&packed.keys);
    command.arg(&packed.plan);
    command
}

/// The settings of `[store.redis]`.
#[derive(Clone)]
pub struct RedisSettings {
    /// Where the store is.
    pub address: RedisAddress,
    /// The longest wait for a reply. Default 25 ms.
    pub timeout: Duration,
    /// The interval in which gateways exchange counts and events. Default 100 ms.
    pub sync_interval: Duration,
    /// The start of every key's name. It contains no braces. Default `lockgate:`.
    pub prefix: String,
    /// The ACL user. `None` is the default user.
    pub username: Option<String>,
    /// The password. Never logged.
    pub password: Option<String>,
    /// Where the password is from, for the log.
    pub password_source: &'static str,
    /// The certificate authorities for TLS, in PEM. `None` uses those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The client certificate and its private key for TLS, in PEM.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// The part of the shared store that all cores use.
#[derive(Debug)]
pub(super) struct RedisStore {
    settings: RedisSettings,
    names: KeyNames,
    plan: LuaScript,
    renew: LuaScript,
    sync: LuaScript,
    index: LuaScript,
    /// Whether scripts take the time from their arguments, so that tests can set it.
    has_manual_time: bool,
    pub(super) health: StoreHealth,
}

// === impl RedisSettings ===

/// Without the password and the private key.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("address", &self.address)
            .field("timeout", &self.timeout)
            .field("prefix", &self.prefix)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

// === impl RedisStore ===

impl RedisStore {
    /// Creates the shared part. It connects to nothing.
    pub(super) fn new(settings: RedisSettings) -> Self {
        Self {
            names: KeyNames::new(&settings.prefix),
            settings,
            plan: LuaScript::plan(),
            renew: LuaScript::renew(),
            sync: LuaScript::sync(),
            index: LuaScript::index(),
            has_manual_time: false,
            health: StoreHealth::default(),
        }
    }
}
