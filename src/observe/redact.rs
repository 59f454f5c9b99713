//! Redacts secrets of clients in logs: a short keyed hash replaces the value, so that lines of one client
//! can be correlated but the value cannot be recovered.

use std::fmt;
use std::hash::Hasher;

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;

/// Headers that are always redacted, whatever the configuration contains.
const ALWAYS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
];

/// Decides which headers are redacted, and hashes their values.
pub struct Redactor {
    key: [u8; 16],
    names: Vec<Box<str>>,
}

// === impl Redactor ===

impl Redactor {
    /// Creates a redactor for the headers `names` and the always redacted ones. Set a secret before calling
    /// [`Redactor::hash`].
    pub fn without_secret<N: AsRef<str>>(names: &[N]) -> Self {
        Self {
            key: [0; 16],
            names: names.iter().map(|n| n.as_ref().into()).collect(),
        }
    }

    /// Sets the secret of the hash. Hashes of two redactors are comparable only if their secrets are equal.
    pub fn with_secret(mut self, secret: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"lockgate redact\0")
            .chain_update(secret)
            .finalize();
        self.key.iter_mut().zip(digest).for_each(|(k, d)| *k = d);
        self
    }

    /// Returns whether the header `name` is redacted, ignoring case.
    pub fn is_redacted(&self, name: &str) -> bool {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        ALWAYS.iter().any(|known| is(known)) || self.names.iter().any(|known| is(known))
    }

    /// Returns the keyed hash that replaces `value`: `h:` and 16 hexadecimal digits.
    pub fn hash(&self, value: &[u8]) -> String {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(value);
        format!("h:{:016x}", hasher.finish())
    }
}

impl fmt::Debug for Redactor {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_by_default() {
        let redactor = Redactor::without_secret(&["X-Api-Key"]);
        for name in ["Authorization", "COOKIE", "set-cookie", "x-api-key"] {
            assert!(redactor.is_redacted(name), "{name}");
        }
        assert!(!redactor.is_redacted("user-agent"));
    }

    #[test]
    fn the_hash_depends_on_the_key_and_the_value_alone() {
        let with = |secret: &[u8], name| Redactor::without_secret(&[name]).with_secret(secret);
        let (a, b, again) = (with(b"one", "a"), with(b"two", "a"), with(b"one", "x"));
        assert_eq!(a.hash(b"sid=1"), again.hash(b"sid=1"));
        assert_ne!(a.hash(b"sid=1"), b.hash(b"sid=1"));
        assert_ne!(a.hash(b"sid=1"), a.hash(b"sid=2"));
        let shown = a.hash(b"sid=1");
        let digits = shown.strip_prefix("h:").unwrap();
        assert_eq!(digits.len(), 16);
        assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
