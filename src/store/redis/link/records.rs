//! Reads counters for people. Nothing is changed.

use redis::Value;

use super::RedisLink;
use crate::limit::Limiter;
use crate::store::StoreError;
use crate::store::redis::KeyRecord;
use crate::store::redis::key_names::FleetKey;

// === impl RedisLink ===

impl RedisLink {
    /// Reads the records of keys, each with the limiter that counts it: in one call, or in one call per key in a Cluster.
    pub(in crate::store) async fn read_records(
        &self,
        keys: &[(FleetKey, Limiter)],
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let per_call = if self.is_cluster() { 1 } else { keys.len() };
        let call = async {
            let mut records = Vec::with_capacity(keys.len());
            for keys in keys.chunks(per_call.max(1)) {
                records.extend(self.read_part(keys).await?);
            }
            Ok(records)
        };
        let read = self.in_time(call).await;
        if let Err(error) = read {
            self.shared.health.count_error(error, self.clock.now());
        }
        read
    }

    async fn read_part(
        &self,
        keys: &[(FleetKey, Limiter)],
    ) -> Result<impl Iterator<Item = KeyRecord>, StoreError> {
        let mut command = redis::cmd("MGET");
        for (key, _) in keys {
            command.arg(self.shared.names.record(*key));
        }
        let Value::Array(values) = self.send(&command).await? else {
            return Err(StoreError::InvalidReply);
        };
        if values.len() != keys.len() {
            return Err(StoreError::InvalidReply);
        }
        let now = self.server_time(self.clock.now());
        let pairs = values.into_iter().zip(keys);
        Ok(pairs.map(move |(value, (_, limiter))| match value {
            Value::BulkString(record) => KeyRecord::read(&record, limiter, now),
            _ => KeyRecord::default(),
        }))
    }
}
