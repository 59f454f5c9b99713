//! What makes a rule the same rule across reloads, as a number.

use sha2::{Digest, Sha256};

use crate::config::file::Rule;
use crate::facts::client_ip::Prefixes;

/// A digest of `name`, `key`, `missing`, the IP prefixes, `period` and `algorithm`: while these
/// stay, counters and bans stay.
pub fn identity(rule: &Rule, prefixes: Prefixes) -> u64 {
    let period = rule.period.as_ref().map_or(0, |p| p.value.as_nanos());
    let mut digest = Sha256::new();
    let mut field = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    field(rule.name.value.as_bytes());
    for part in &rule.key {
        field(part.value.trim().as_bytes());
    }
    field(format!("{:?}", rule.missing.value).as_bytes());
    field(format!("{:?}", rule.algorithm.value).as_bytes());
    field(&[prefixes.v4, prefixes.v6]);
    field(&period.to_le_bytes());
    let digest = digest.finalize();
    digest
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
