//! Calls for people: the record of one ban, the index of bans, and exemptions. No request waits for them.

use std::time::Duration;

use ipnet::IpNet;
use redis::{Cmd, Value};

use super::RedisLink;
use crate::clock::Timestamp;
use crate::rules::plan::RuleId;
use crate::store::redis::ban_index::{self, BanRecordPart};
use crate::store::redis::key_names::FleetKey;
use crate::store::{ExemptionEntry, ListedBan, StoreError};

/// The longest wait for a reply.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of bans that one call reads.
const SCAN_COUNT: usize = 500;

/// How long past offences count. The record of a ban lasts as long.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The lifetime of the hash of exemptions. Each one lasts for at most a day.
const EXEMPTIONS_LIFETIME: Duration = Duration::from_secs(25 * 60 * 60);

/// A part of the index of a rule.
pub(in crate::store) struct IndexPart {
    pub(in crate::store) bans: Vec<ListedBan>,
    /// Where the next part starts. `None` after the last one.
    pub(in crate::store) next: Option<u64>,
}

// === impl RedisLink ===

impl RedisLink {
    /// Reads the ban and the offences of a key.
    pub(in crate::store) async fn read_ban(
        &self,
        key: FleetKey,
    ) -> Result<BanRecordPart, StoreError> {
        let mut command = redis::cmd("MGET");
        command.arg(self.shared.names.record(key));
        let reply = self.admin_call(&command).await?;
        let now = self.server_time(self.clock.now());
        let record = match &reply {
            Value::Array(values) => values.first(),
            _ => None,
        };
        Ok(match record {
            Some(Value::BulkString(record)) => BanRecordPart::read(record, now),
            _ => BanRecordPart::default(),
        })
    }

    /// Bans a key, instead of its counter or ban. `offences` are remembered for a day after the end.
    pub(in crate::store) async fn write_ban(
        &self,
        key: FleetKey,
        until: Timestamp,
        offences: u32,
    ) -> Result<(), StoreError> {
        let now = self.server_time(self.clock.now());
        let memory = if offences > 0 { DAY } else { Duration::ZERO };
        let lifetime = until.since(now) + memory;
        let mut command = redis::cmd("SET");
        command
            .arg(self.shared.names.record(key))
            .arg(BanRecordPart::pack_ban(until, offences));
        command.arg("PX").arg(millis(lifetime).max(1));
        self.admin_call(&command).await.map(drop)
    }

    /// Adds a ban to the index of its rule, with the text of its key.
    pub(in crate::store) async fn index_ban(
        &self,
        ban: &ListedBan,
        text: &str,
    ) -> Result<(), StoreError> {
        let key = FleetKey::of_ban(ban.rule.identity, ban.ban_id);
        // A ban that has just ended must not remove the index: 0 means that.
        let until = ban.until.as_millis().max(1);
        let known = ban_index::pack_ban(ban, text);
        self.change_index(key, until, &known).await
    }

    /// Removes a ban from the index of its rule.
    pub(in crate::store) async fn unindex_ban(&self, key: FleetKey) -> Result<(), StoreError> {
        self.change_index(key, 0, &[]).await
    }

    async fn change_index(
        &self,
        key: FleetKey,
        until: u64,
        known: &[u8],
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let arguments = |command: &mut Cmd| {
            command
                .arg(2)
                .arg(&self.shared.names.index(key.identity)[..]);
            command.arg(self.server_time(now).as_millis());
            command.arg(&key.hash.to_bytes()[..]).arg(until).arg(known);
        };
        let call = self.run_script(&self.shared.index, now, arguments);
        self.within(ADMIN_TIMEOUT, call).await.map(drop)
    }

    /// Reads what the index knows of one ban. `None` if it does not have it.
    pub(in crate::store) async fn indexed_ban(
        &self,
        rule: RuleId,
        key: FleetKey,
    ) -> Result<Option<ListedBan>, StoreError> {
        let [_, known] = self.shared.names.index(key.identity);
        let field = key.hash.to_bytes();
        let mut command = redis::cmd("HGET");
        command.arg(known).arg(&field[..]);
        Ok(match self.admin_call(&command).await? {
            Value::BulkString(value) => ban_index::read_ban(rule, &field, &value),
            _ => None,
        })
    }

    /// Reads a part of the index of a rule, from `cursor` on; 0 is its start. A ban can be in several parts.
    pub(in crate::store) async fn scan_index(
        &self,
        rule: RuleId,
        cursor: u64,
    ) -> Result<IndexPart, StoreError> {
        let [_, known] = self.shared.names.index(rule.identity);
        let mut command = redis::cmd("HSCAN");
        command.arg(known).arg(cursor).arg("COUNT").arg(SCAN_COUNT);
        let reply = self.admin_call(&command).await?;
        let Value::Array(reply) = reply else {
            return Err(StoreError::InvalidReply);
        };
        let [Value::BulkString(next), Value::Array(pairs)] = &reply[..] else {
            return Err(StoreError::InvalidReply);
        };
        let next = std::str::from_utf8(next).ok().and_then(|n| n.parse().ok());
        let next: u64 = next.ok_or(StoreError::InvalidReply)?;
        let bans = pairs_of(pairs).filter_map(|(id, ban)| ban_index::read_ban(rule, id, ban));
        Ok(IndexPart {
            bans: bans.collect(),
            next: (next != 0).then_some(next),
        })
    }

    /// Reads the exemptions of the fleet.
    pub(in crate::store) async fn read_exemptions(
        &self,
    ) -> Result<Vec<ExemptionEntry>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.shared.names.exemptions());
        let reply = self.admin_call(&command).await?;
        let read = |(field, value)| ban_index::read_exemption(field, value);
        match &reply {
            Value::Array(pairs) => Ok(pairs_of(pairs).filter_map(read).collect()),
            Value::Map(pairs) => Ok(pairs.iter().filter_map(bytes_of).filter_map(read).collect()),
            _ => Err(StoreError::InvalidReply),
        }
    }

    /// Adds an exemption for the fleet.
    pub(in crate::store) async fn write_exemption(
        &self,
        exemption: &ExemptionEntry,
    ) -> Result<(), StoreError> {
        let name = self.shared.names.exemptions();
        let mut command = redis::cmd("HSET");
        command.arg(&name).arg(exemption.network.to_string());
        command.arg(ban_index::pack_exemption(exemption));
        let written = match self.admin_call(&command).await {
            Err(StoreError::Rejected) => {
                // The key may have another type.
                let mut delete = redis::cmd("DEL");
                self.admin_call(delete.arg(&name)).await?;
                self.admin_call(&command).await
            }
            written => written,
        };
        written?;
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(&name).arg(millis(EXEMPTIONS_LIFETIME));
        self.admin_call(&expire).await.map(drop)
    }

    /// Removes exemptions of the fleet.
    pub(in crate::store) async fn delete_exemptions(
        &self,
        networks: &[IpNet],
    ) -> Result<(), StoreError> {
        if networks.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("HDEL");
        command.arg(self.shared.names.exemptions());
        for network in networks {
            command.arg(network.to_string());
        }
        self.admin_call(&command).await.map(drop)
    }

    async fn admin_call(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.within(ADMIN_TIMEOUT, self.send(command)).await
    }
}

/// The fields and the values of a hash. Skips what is neither.
fn pairs_of(values: &[Value]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let (pairs, _) = values.as_chunks::<2>();
    pairs
        .iter()
        .filter_map(|[field, value]| match (field, value) {
            (Value::BulkString(field), Value::BulkString(value)) => Some((&field[..], &value[..])),
            _ => None,
        })
}

fn bytes_of((field, value): &(Value, Value)) -> Option<(&[u8], &[u8])> {
    match (field, value) {
        (Value::BulkString(field), Value::BulkString(value)) => Some((field, value)),
        _ => None,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
