//! Calls that no request waits for: reports of async mode, events of the fleet, and the end of a ban.

use std::time::Duration;

use redis::Cmd;

use super::RedisLink;
use crate::clock::Timestamp;
use crate::limit::Limiter;
use crate::store::StoreError;
use crate::store::redis::key_names::{FleetKey, KeyNames};
use crate::store::redis::sync_call::{PackedEvents, PackedSync, SyncReport, SyncSender};
use crate::store::redis::sync_reply::{StreamPositions, SyncReply, decode};

// === impl RedisLink ===

impl RedisLink {
    /// Whether calls can be made.
    pub(in crate::store) fn is_connected(&self) -> bool {
        self.connection.borrow().is_some()
    }

    /// The number of connections so far.
    pub(in crate::store) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Whether each key has a call of its own.
    pub(in crate::store) fn is_cluster(&self) -> bool {
        self.shared.settings.address.is_cluster()
    }

    /// Merges reports and, if `sender` says so, appends `events` and reads those after `positions`.
    ///
    /// The server ignores a call that it reads after the sync timeout. The reply has as much time again, so a timeout
    /// here means that the reports were not merged, unless the connection broke.
    pub(in crate::store) async fn sync(
        &self,
        sender: &SyncSender,
        reports: &[SyncReport],
        events: &PackedEvents,
        positions: &StreamPositions,
    ) -> Result<SyncReply, StoreError> {
        let now = self.clock.now();
        let call = self.run_sync(sender, reports, events, positions, now);
        let replied = self.within(2 * self.sync_timeout(), call).await;
        if let Err(error) = replied {
            self.shared.health.count_error(error, self.clock.now());
        }
        replied
    }

    async fn run_sync(
        &self,
        sender: &SyncSender,
        reports: &[SyncReport],
        events: &PackedEvents,
        positions: &StreamPositions,
        now: Timestamp,
    ) -> Result<SyncReply, StoreError> {
        let deadline = self.deadline(now, self.sync_timeout());
        let packed = PackedSync::new(sender, reports, deadline, &self.shared.names);
        let arguments = |command: &mut Cmd| {
            command.arg(packed.keys.len()).arg(&packed.keys);
            command.arg(&packed.reports);
            command.arg(&events.bans).arg(&events.exhausted);
            command.arg(&positions.bans).arg(&positions.exhausted);
        };
        let generation = self.generation.get();
        let reply = self.run_script(&self.shared.sync, now, arguments).await?;
        let limiters: Vec<&Limiter> = reports.iter().map(|report| &report.limiter).collect();
        let Ok((at, reply)) = decode(&reply, &limiters) else {
            self.disconnect(generation, "the store sent an invalid reply");
            return Err(StoreError::InvalidReply);
        };
        self.observe_time(now, at);
        reply.ok_or(StoreError::Late)
    }

    /// Deletes the record of a key: its counter or its ban, and its past offences.
    pub(in crate::store) async fn delete_record(&self, key: FleetKey) -> Result<(), StoreError> {
        let record = self.shared.names.record(key);
        let mut command = redis::cmd("DEL");
        command.arg(&record).arg(KeyNames::log(&record));
        self.in_time(self.send(&command)).await.map(drop)
    }

    /// The longest time until the server reads a sync call.
    fn sync_timeout(&self) -> Duration {
        let settings = &self.shared.settings;
        settings.timeout.max(settings.sync_interval)
    }
}
