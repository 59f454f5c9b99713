//! Why a call to a remote store failed.

use std::fmt;

/// Why a store could not apply a plan. Each rule's `on_failure` defines what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The store did not reply before the timeout. The plan may have been applied.
    Timeout,
    /// The store read the call after its deadline. Nothing was applied.
    Late,
    /// The store cannot be reached. Nothing was applied, unless the connection broke during the call.
    Unavailable,
    /// Too many calls are in flight. Nothing was applied.
    Busy,
    /// The store has reached its `maxmemory` and evicts nothing.
    OutOfMemory,
    /// The server is a replica.
    ReadOnly,
    /// The store returned another error.
    Rejected,
    /// The store does not know the script.
    NoScript,
    /// The reply makes no sense.
    InvalidReply,
}

// === impl StoreError ===

impl StoreError {
    /// Every error, in the order of its number.
    pub const ALL: [StoreError; 9] = [
        StoreError::Timeout,
        StoreError::Late,
        StoreError::Unavailable,
        StoreError::Busy,
        StoreError::OutOfMemory,
        StoreError::ReadOnly,
        StoreError::Rejected,
        StoreError::NoScript,
        StoreError::InvalidReply,
    ];

    /// The error's name in metrics.
    pub const fn kind(self) -> &'static str {
        match self {
            StoreError::Timeout => "timeout",
            StoreError::Late => "late",
            StoreError::Unavailable => "unavailable",
            StoreError::Busy => "busy",
            StoreError::OutOfMemory => "out_of_memory",
            StoreError::ReadOnly => "read_only",
            StoreError::Rejected => "rejected",
            StoreError::NoScript => "no_script",
            StoreError::InvalidReply => "invalid_reply",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreError::Timeout => "the store did not reply in time",
            StoreError::Late => "the store read the call after its deadline",
            StoreError::Unavailable => "the store cannot be reached",
            StoreError::Busy => "too many calls to the store are in flight",
            StoreError::OutOfMemory => "the store is out of memory",
            StoreError::ReadOnly => "the server is a read-only replica",
            StoreError::Rejected => "the store returned an error",
            StoreError::NoScript => "the store does not know the script",
            StoreError::InvalidReply => "the store sent an invalid reply",
        })
    }
}
