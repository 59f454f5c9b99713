//! The names of keys in Redis.
//!
//! A name is `PREFIX VERSION:{HASH}IDENTITY`. The hash is 128 bits of the SHA-256 of the counter key, so clients can
//! neither choose nor lengthen a name, and cannot find two counter keys with one name. The braces make all rules of
//! one counter key share a Cluster slot. The identity is that of the rule: a fleet that is rolling to a configuration
//! with a changed rule counts for both rules separately.

use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::rules::plan::RuleId;
use crate::rules::{BanId, KeyDigest};

/// The version of the records. A gateway never reads the records of another version.
const RECORD_VERSION: &str = "1";

/// The number of bytes of a hash in a name.
const HASH_BYTES: usize = 16;

/// The suffix of a list of `sliding_log` times.
const LOG_SUFFIX: &[u8] = b":log";

/// The suffix of a sorted set of leases.
const LEASES_SUFFIX: &[u8] = b":leases";

/// The suffix of the hash of what is known of the bans of a rule.
const KNOWN_SUFFIX: &[u8] = b":known";

/// The names of all keys with one prefix.
#[derive(Clone, Debug)]
pub(super) struct KeyNames {
    prefix: String,
}

/// The hash of a counter key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) struct NameHash([u8; HASH_BYTES]);

/// A rule and the hash of a counter key: what identifies a counter on all gateways of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct FleetKey {
    /// The identity of the rule.
    pub(in crate::store) identity: u64,
    pub(in crate::store) hash: NameHash,
}

// === impl KeyNames ===

impl KeyNames {
    /// Names that begin with `prefix`.
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}{RECORD_VERSION}:"),
        }
    }

    /// The name of the record of a rule and a counter key.
    pub(super) fn record(&self, key: FleetKey) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + 48);
        name.extend_from_slice(self.prefix.as_bytes());
        name.push(b'{');
        let mut hash = [0; 22];
        encode(&key.hash.0, &mut hash);
        name.extend_from_slice(&hash);
        name.push(b'}');
        let mut identity = [0; 11];
        encode(&key.identity.to_be_bytes(), &mut identity);
        name.extend_from_slice(&identity);
        name
    }

    /// The names of what the nodes of a fleet exchange: the sorted set of nodes, the stream of bans and the stream of
    /// exhausted keys. They share a Cluster slot.
    pub(super) fn fleet(&self) -> [Vec<u8>; 3] {
        ["nodes", "bans", "exhausted"]
            .map(|name| format!("{}{{fleet}}{name}", self.prefix).into_bytes())
    }

    /// The names of the index of the bans of a rule: the sorted set of their ends, and the hash of what is known of
    /// each. The indexes of all rules share a Cluster slot.
    pub(super) fn index(&self, identity: u64) -> [Vec<u8>; 2] {
        let mut rule = [0; 11];
        encode(&identity.to_be_bytes(), &mut rule);
        let ends = [self.prefix.as_bytes(), b"{bans}", &rule].concat();
        let known = [&ends[..], KNOWN_SUFFIX].concat();
        [ends, known]
    }

    /// The name of the hash of exemptions.
    pub(super) fn exemptions(&self) -> Vec<u8> {
        format!("{}{{exemptions}}", self.prefix).into_bytes()
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
    pub(in crate::store) fn of(key: &[u8]) -> Self {
        Self(KeyDigest::of(key).0)
    }

    /// The bytes of the hash.
    pub(in crate::store) fn to_bytes(self) -> [u8; HASH_BYTES] {
        self.0
    }

    /// A hash with these bytes.
    pub(super) fn from_bytes(bytes: &[u8; HASH_BYTES]) -> Self {
        Self(*bytes)
    }
}

// === impl FleetKey ===

/// The bytes of a hash need no further mixing.
impl Hash for FleetKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [high, low] = [0, 8].map(|from| {
            let bytes = self.hash.0.iter().skip(from).take(8);
            bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
        });
        state.write_u64(self.identity ^ high ^ low.rotate_left(32));
    }
}

impl FleetKey {
    /// The length of [`FleetKey::to_bytes`].
    pub(super) const BYTES: usize = 8 + HASH_BYTES;

    /// The counter of a rule and a key.
    pub(in crate::store) fn new(id: RuleId, key: &[u8]) -> Self {
        Self {
            identity: id.identity,
            hash: NameHash::of(key),
        }
    }

    /// The counter of the key with the ban `id`, which is one of the rule with this identity.
    pub(in crate::store) fn of_ban(identity: u64, id: BanId) -> Self {
        Self {
            identity,
            hash: NameHash(id.key_digest(identity).0),
        }
    }

    /// The id of a ban of the key.
    pub(in crate::store) fn ban_id(&self) -> BanId {
        BanId::of_digest(self.identity, KeyDigest(self.hash.0))
    }

    /// An index of at most `mask`, which is one less than a power of two. Other parts of the hash choose a slot
    /// within the shard.
    pub(in crate::store) fn shard(&self, mask: usize) -> usize {
        let [.., high, low] = self.hash.0;
        (usize::from(high) << 8 | usize::from(low)) & mask
    }

    /// The identity, then the hash.
    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = self.identity.to_be_bytes().into_iter().chain(self.hash.0);
        for (byte, part) in bytes.iter_mut().zip(parts) {
            *byte = part;
        }
        bytes
    }

    /// Reads what [`FleetKey::to_bytes`] has written.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (identity, hash) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            identity: u64::from_be_bytes(*identity),
            hash: NameHash(*hash.first_chunk()?),
        })
    }
}

/// Writes `bytes` in base64. `text` has exactly the length of the result.
fn encode(bytes: &[u8], text: &mut [u8]) {
    let written = URL_SAFE_NO_PAD.encode_slice(bytes, text);
    debug_assert!(written.is_ok());
}
