//! The names of keys in Redis.
//!
//! A name is `PREFIX VERSION:{HASH}IDENTITY`. The hash is 128 bits of the SHA-256 of the counter key, so clients can
//! neither choose nor lengthen a name, and cannot find two counter keys with one name. The braces make all rules of
//! one counter key share a Cluster slot. The identity is that of the rule: a fleet that is rolling to a configuration
//! with a changed rule counts for both rules separately.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::rules::plan::RuleId;

/// The version of the records. A gateway never reads the records of another version.
const RECORD_VERSION: &str = "1";

/// The number of bytes of a hash in a name.
const HASH_BYTES: usize = 16;

/// The suffix of a list of `sliding_log` times.
const LOG_SUFFIX: &[u8] = b":log";

/// The suffix of a sorted set of leases.
const LEASES_SUFFIX: &[u8] = b":leases";

/// The names of all keys with one prefix.
#[derive(Clone, Debug)]
pub(super) struct KeyNames {
    prefix: String,
}

/// The hash of a counter key, as in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash([u8; 22]);

// === impl KeyNames ===

impl KeyNames {
    /// Names that begin with `prefix`.
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}{RECORD_VERSION}:"),
        }
    }

    /// The name of the record of a rule and a counter key.
    pub(super) fn record(&self, id: RuleId, hash: NameHash) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + 48);
        name.extend_from_slice(self.prefix.as_bytes());
        name.push(b'{');
        name.extend_from_slice(&hash.0);
        name.push(b'}');
        let mut identity = [0; 11];
        encode(&id.identity.to_be_bytes(), &mut identity);
        name.extend_from_slice(&identity);
        name
    }

    /// The name of the list of a `sliding_log` whose record is `record`.
    pub(super) fn log(record: &[u8]) -> Vec<u8> {
        [record, LOG_SUFFIX].concat()
    }

    /// The name of the sorted set of leases of a `concurrency` rule whose record is `record`.
    pub(super) fn leases(record: &[u8]) -> Vec<u8> {
        [record, LEASES_SUFFIX].concat()
    }
}

// === impl NameHash ===

impl NameHash {
    /// Hashes a counter key.
    pub(super) fn of(key: &[u8]) -> Self {
        let digest = Sha256::digest(key);
        let mut text = [0; 22];
        encode(digest.get(..HASH_BYTES).unwrap_or(&digest), &mut text);
        Self(text)
    }
}

/// Writes `bytes` in base64. `text` has exactly the length of the result.
fn encode(bytes: &[u8], text: &mut [u8]) {
    let written = URL_SAFE_NO_PAD.encode_slice(bytes, text);
    debug_assert!(written.is_ok());
}
