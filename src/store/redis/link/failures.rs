//! Errors of calls: what they mean for the call and for the connection, and what the log says about them.

use std::time::{Duration, Instant};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tracing::warn;

use super::cluster_nodes::{self, NodeWatch};
use super::{INVALID_REPLY, RedisLink};
use crate::store::StoreError;
use crate::store::redis::connector::error_text;

/// How often errors that the server returns are logged.
const REJECTED_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Whether the server has sent something else than a reply to the call.
pub(super) fn is_invalid_reply(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Parse | ErrorKind::UnexpectedReturnType)
}

// === impl RedisLink ===

impl RedisLink {
    /// Converts an error of the library. Drops the connection, or avoids the server of a Cluster, if it cannot be used
    /// any more.
    pub(super) fn classify(
        &self,
        generation: u64,
        watch: NodeWatch<'_>,
        error: &RedisError,
    ) -> StoreError {
        let fail = |watch: NodeWatch<'_>, reason: &str| {
            if self.is_cluster() {
                watch.failed(reason);
            } else {
                self.disconnect(generation, reason);
            }
        };
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => {
                watch.replied();
                StoreError::NoScript
            }
            ErrorKind::Server(ServerErrorKind::ReadOnly) => {
                fail(watch, "the server is read-only: it is no longer the master");
                StoreError::ReadOnly
            }
            kind if is_invalid_reply(kind) => {
                fail(watch, INVALID_REPLY);
                StoreError::InvalidReply
            }
            _ if cluster_nodes::is_unusable(error) && self.is_cluster() => {
                watch.failed(&error_text(error));
                StoreError::Unavailable
            }
            _ if error.code().is_some() => {
                watch.replied();
                self.rejected(error)
            }
            _ => {
                fail(watch, &error_text(error));
                StoreError::Unavailable
            }
        }
    }

    /// Logs an error that the server returned, at most once in [`REJECTED_LOG_INTERVAL`].
    fn rejected(&self, error: &RedisError) -> StoreError {
        let now = self.clock.instant();
        let due = |last: Instant| now.duration_since(last) >= REJECTED_LOG_INTERVAL;
        let is_out_of_memory = error.code() == Some("OOM");
        if self.rejection_logged.get().is_none_or(due) {
            self.rejection_logged.set(Some(now));
            let store = &self.shared.settings.address;
            if error.code() == Some("MOVED") {
                warn!(%store, "store is a server of a Cluster: write redis-cluster:// instead of redis://");
            } else if is_out_of_memory {
                warn!(%store, "store is out of memory: set maxmemory-policy to volatile-ttl, or raise maxmemory");
            } else {
                let error = error_text(error);
                warn!(%store, %error, "store returned an error");
            }
        }
        if is_out_of_memory {
            StoreError::OutOfMemory
        } else {
            StoreError::Rejected
        }
    }
}
