//! One core's connection to the shared store.
//!
//! A supervisor task connects and reconnects. Requests never wait for it: without a connection a call fails
//! immediately. That is the circuit breaker: it opens when the connection breaks, or when three calls in a row time
//! out and nothing has arrived for twice the timeout, and it closes when a new connection has run the script in time.
//! In a Cluster, each server has a circuit breaker of its own: see [`cluster_nodes`].

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use tokio::sync::Notify;

use self::cluster_nodes::ClusterNodes;
use super::RedisStore;
use super::connector::RedisConnection;
use super::decode::{ScriptReply, decode};
use super::encode::{CallScope, PackedPlan, lease_member};
use super::key_names::{FleetKey, KeyNames};
use super::script::LuaScript;
use super::server_clock::ServerClock;
use crate::clock::{Clock, Timestamp};
use crate::rules::plan::{HeldLeases, LeasedCounter, Plan, PlanResult};
use crate::store::StoreError;

/// The maximum number of calls in flight per core. Further requests use the fallback.
const MAX_IN_FLIGHT: usize = 1_024;

/// The number of consecutive timeouts after which the circuit breaker can open.
const MAX_TIMEOUTS: u32 = 3;

/// Why a store is not used: it does not reply in time, several times in a row.
const TOO_SLOW: &str = "the store does not reply in time";

/// Why a store is not used: what it sends is not a reply to the call.
const INVALID_REPLY: &str = "the store sent an invalid reply";

mod admin;
mod by_key;
mod cluster_nodes;
mod failures;
mod records;
mod supervisor;
mod sync;

/// One core's connection to the shared store.
pub(in crate::store) struct RedisLink {
    shared: Arc<RedisStore>,
    clock: Clock,
    connection: RefCell<Option<RedisConnection>>,
    /// The number of connections so far. A failure of an earlier connection has no effect on the current one.
    generation: Cell<u64>,
    server_clock: Cell<ServerClock>,
    timeouts: Cell<u32>,
    last_reply: Cell<Instant>,
    in_flight: Cell<usize>,
    /// When an error that the server returned was last logged.
    rejection_logged: Cell<Option<Instant>>,
    /// The connection was lost.
    lost: Notify,
    /// The servers of a Cluster.
    nodes: ClusterNodes,
    /// A server of the Cluster has failed.
    suspected: Notify,
    /// The first attempt to connect has ended.
    attempted: Cell<bool>,
    first_attempt: Notify,
}

/// One call in flight.
struct InFlight<'a>(&'a Cell<usize>);

// === impl RedisLink ===

impl RedisLink {
    /// A link that is not connected yet: see [`RedisLink::supervise`].
    pub(in crate::store) fn new(shared: Arc<RedisStore>, clock: Clock) -> Self {
        shared.health.open_breaker();
        let many_servers = shared.settings.address.is_cluster();
        Self {
            server_clock: Cell::new(ServerClock::new(many_servers)),
            last_reply: Cell::new(clock.instant()),
            shared,
            clock,
            connection: RefCell::new(None),
            generation: Cell::new(0),
            timeouts: Cell::new(0),
            in_flight: Cell::new(0),
            rejection_logged: Cell::new(None),
            lost: Notify::new(),
            nodes: ClusterNodes::default(),
            suspected: Notify::new(),
            attempted: Cell::new(false),
            first_attempt: Notify::new(),
        }
    }

    /// The server's time at `now`, as far as it is known.
    pub(in crate::store) fn server_time(&self, now: Timestamp) -> Timestamp {
        if self.shared.has_manual_time {
            return now;
        }
        match self.server_clock.get().deadline(now, Duration::ZERO) {
            0 => now,
            micros => Timestamp::from_micros(micros),
        }
    }

    /// Applies some steps of `plan` in one call, or in one call per key in a Cluster. Adds the results to `result`, which
    /// is empty.
    pub(in crate::store) async fn apply(
        &self,
        plan: &Plan,
        steps: Range<usize>,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        let call = async {
            if self.shared.settings.address.is_cluster() {
                self.apply_by_key(plan, steps, now, result).await
            } else {
                let scope = self.scope(steps, false, now);
                self.run_plan(plan, &scope, now, result).await
            }
        };
        let applied = self.in_time(call).await;
        if let Err(error) = applied {
            self.shared.health.count_error(error, self.clock.now());
        }
        applied
    }

    /// Releases leases.
    pub(in crate::store) async fn release(&self, leases: &HeldLeases) -> Result<(), StoreError> {
        for LeasedCounter { id, key, units } in &leases.counters {
            let record = self.shared.names.record(FleetKey::new(*id, key));
            let mut command = redis::cmd("ZREM");
            command
                .arg(KeyNames::leases(&record))
                .arg(lease_member(leases.id, *units));
            self.in_time(self.send(&command)).await?;
        }
        Ok(())
    }

    /// Extends leases. With `restores`, also those that the store does not have any more. Returns whether the store has
    /// all of them.
    pub(in crate::store) async fn renew(
        &self,
        leases: &HeldLeases,
        restores: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut has_all = true;
        for LeasedCounter { id, key, units } in &leases.counters {
            let record = self.shared.names.record(FleetKey::new(*id, key));
            let arguments = |command: &mut Cmd| {
                command
                    .arg(1)
                    .arg(KeyNames::leases(&record))
                    .arg(lease_member(leases.id, *units))
                    .arg(u8::from(restores));
            };
            let call = self.run_script(&self.shared.renew, now, arguments);
            has_all &= self.in_time(call).await? == Value::Int(1);
        }
        Ok(has_all)
    }

    fn scope(&self, steps: Range<usize>, has_ended: bool, now: Timestamp) -> CallScope {
        let timeout = self.shared.settings.timeout;
        CallScope {
            steps,
            has_ended,
            deadline: self.deadline(now, timeout),
        }
    }

    /// The server's time `timeout` after `now`, in microseconds. 0, no deadline, if the clock is unknown.
    fn deadline(&self, now: Timestamp, timeout: Duration) -> u64 {
        if self.shared.has_manual_time {
            0
        } else {
            self.server_clock.get().deadline(now, timeout)
        }
    }

    /// Runs some steps of a plan and adds their results to `result`.
    async fn run_plan(
        &self,
        plan: &Plan,
        scope: &CallScope,
        now: Timestamp,
        result: &mut PlanResult,
    ) -> Result<(), StoreError> {
        let packed = PackedPlan::new(plan, scope, &self.shared.names);
        let arguments = |command: &mut Cmd| {
            command.arg(packed.keys.len()).arg(&packed.keys);
            command.arg(&packed.plan);
        };
        let generation = self.generation.get();
        let reply = self.run_script(&self.shared.plan, now, arguments).await?;
        let first = u16::try_from(scope.steps.start).unwrap_or(u16::MAX);
        let decoded = match &reply {
            Value::BulkString(bytes) => decode(bytes, first, scope.steps.len(), result),
            _ => Err(super::decode::BadReply),
        };
        let Ok(decoded) = decoded else {
            self.disconnect(generation, INVALID_REPLY);
            return Err(StoreError::InvalidReply);
        };
        self.observe_time(now, result.at);
        match decoded {
            ScriptReply::Applied => Ok(()),
            ScriptReply::Late => Err(StoreError::Late),
        }
    }

    /// Calls a script by its hash, and sends its source if the server does not know it.
    async fn run_script(
        &self,
        script: &LuaScript,
        now: Timestamp,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<Value, StoreError> {
        let complete = |mut command: Cmd| {
            arguments(&mut command);
            self.add_manual_time(&mut command, now);
            command
        };
        match self.send(&complete(script.call())).await {
            Err(StoreError::NoScript) => self.send(&complete(script.call_with_source())).await,
            reply => reply,
        }
    }

    fn add_manual_time(&self, command: &mut Cmd, now: Timestamp) {
        if self.shared.has_manual_time {
            let micros = now.as_micros();
            command.arg(micros / 1_000_000).arg(micros % 1_000_000);
        }
    }

    /// Sends one command and waits for its reply.
    async fn send(&self, command: &Cmd) -> Result<Value, StoreError> {
        let connection = self.connection.borrow().clone();
        let mut connection = connection.ok_or(StoreError::Unavailable)?;
        let generation = self.generation.get();
        let watch = self.watch(command)?;
        let _in_flight = InFlight::enter(&self.in_flight)?;
        let sent = self.clock.instant();
        let reply = connection.call(command).await;
        let received = self.clock.instant();
        if generation == self.generation.get() {
            self.timeouts.set(0);
            self.last_reply.set(received);
        }
        match reply {
            Ok(reply) => {
                watch.replied();
                let took = received.saturating_duration_since(sent);
                self.shared.health.count_round_trip(took);
                Ok(reply)
            }
            Err(error) => Err(self.classify(generation, watch, &error)),
        }
    }

    /// Limits the time of a call that a request waits for.
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.within(self.shared.settings.timeout, call).await
    }

    /// Limits the time of a call.
    async fn within<T>(
        &self,
        longest: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let generation = self.generation.get();
        match tokio::time::timeout(longest, call).await {
            Ok(reply) => reply,
            Err(_) => {
                self.count_timeout(generation);
                Err(StoreError::Timeout)
            }
        }
    }

    fn count_timeout(&self, generation: u64) {
        let timeout = self.shared.settings.timeout;
        if generation != self.generation.get() || self.is_cluster() {
            return;
        }
        let timeouts = self.timeouts.get().saturating_add(1);
        self.timeouts.set(timeouts);
        let quiet = self
            .clock
            .instant()
            .saturating_duration_since(self.last_reply.get());
        if timeouts >= MAX_TIMEOUTS && quiet >= 2 * timeout {
            self.disconnect(generation, TOO_SLOW);
        }
    }

    /// Opens the circuit breaker, unless the connection has been replaced already.
    fn disconnect(&self, generation: u64, reason: &str) {
        if generation != self.generation.get() || self.connection.borrow().is_none() {
            return;
        }
        self.connection.replace(None);
        self.generation.set(generation + 1);
        self.shared.health.open_breaker();
        self.report_outage(reason);
        self.lost.notify_one();
    }

    fn observe_time(&self, sent: Timestamp, server: Timestamp) {
        let mut clock = self.server_clock.get();
        clock.observe(sent, self.clock.now(), server);
        self.server_clock.set(clock);
    }
}

impl Drop for RedisLink {
    fn drop(&mut self) {
        if self.connection.borrow().is_none() {
            self.shared.health.close_breaker();
        }
        for name in self.nodes.failed_names() {
            self.shared.health.recover_node(&name);
        }
    }
}

// === impl InFlight ===

impl<'a> InFlight<'a> {
    fn enter(calls: &'a Cell<usize>) -> Result<Self, StoreError> {
        if calls.get() >= MAX_IN_FLIGHT {
            return Err(StoreError::Busy);
        }
        calls.set(calls.get() + 1);
        Ok(Self(calls))
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
