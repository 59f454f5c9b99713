//! The identity of a ban, which the admin API shows and accepts.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::RuleId;

/// The number of bytes of a hash.
const HASH_BYTES: usize = 16;

/// 128 bits that identify a ban: the hash of the complete key, mixed with the identity of the rule.
///
/// Text of a key does not identify a ban, because listings hash secret parts and cut long keys. The mixing can be
/// reversed with the rule, so that a shared store finds the record of a ban by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BanId([u8; HASH_BYTES]);

/// The hash of a complete key: 128 bits of its SHA-256. Clients cannot find two keys with one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; HASH_BYTES]);

// === impl KeyDigest ===

impl KeyDigest {
    /// Hashes the bytes of a key.
    pub fn of(key: &[u8]) -> Self {
        let mut hash = [0; HASH_BYTES];
        for (byte, digested) in hash.iter_mut().zip(Sha256::digest(key)) {
            *byte = digested;
        }
        Self(hash)
    }
}

// === impl BanId ===

impl BanId {
    /// Returns the id of a ban of `key`, which are the complete bytes of the key in the plan. It costs a SHA-256.
    pub fn of(rule: RuleId, key: &[u8]) -> Self {
        Self::of_digest(rule.identity, KeyDigest::of(key))
    }

    /// Returns the id of a ban of a key with this hash by the rule with this identity.
    pub fn of_digest(identity: u64, key: KeyDigest) -> Self {
        Self(mix(identity, key.0))
    }

    /// Returns the hash of the key, if the ban is one of the rule with this identity.
    pub fn key_digest(self, identity: u64) -> KeyDigest {
        KeyDigest(mix(identity, self.0))
    }

    /// Returns an id with these bytes.
    pub fn from_bytes(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the id.
    pub fn to_bytes(self) -> [u8; HASH_BYTES] {
        self.0
    }

    /// Reads the 32 hexadecimal digits that [`BanId`] formats as. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 2 * HASH_BYTES && text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
        Some(Self(id.to_be_bytes()))
    }
}

impl fmt::Display for BanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Mixes the identity of a rule with a hash. It is its own inverse.
fn mix(identity: u64, mut hash: [u8; HASH_BYTES]) -> [u8; HASH_BYTES] {
    for (byte, part) in hash.iter_mut().zip(identity.to_be_bytes()) {
        *byte ^= part;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_the_rule_and_on_every_byte_of_the_key() {
        let [rule, other] = [7, 8].map(RuleId::unregistered);
        let key = [5; 1_000];
        assert_eq!(BanId::of(rule, &key), BanId::of(rule, &key));
        assert_ne!(BanId::of(rule, &key), BanId::of(other, &key));
        assert_ne!(BanId::of(rule, &key), BanId::of(rule, &key[1..]));
        assert_eq!(BanId::of(rule, &key).key_digest(7), KeyDigest::of(&key));
    }

    #[test]
    fn an_id_is_read_back_from_its_text() {
        let id = BanId::of(RuleId::unregistered(7), b"key");
        let text = id.to_string();
        assert_eq!(text.len(), 32);
        assert_eq!(BanId::parse(&text), Some(id));
        assert_eq!(BanId::parse(&text.to_uppercase()), Some(id));
        for wrong in [
            "",
            "+",
            &text[1..],
            &format!("+{}", &text[1..]),
            &format!("{text}0"),
        ] {
            assert_eq!(BanId::parse(wrong), None, "{wrong}");
        }
    }
}
