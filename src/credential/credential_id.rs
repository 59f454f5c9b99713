//! The name of a credential in keys and logs.

use std::fmt;

/// Identifies a cookie: 16 hexadecimal digits, which do not reveal the cookie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CredentialId([u8; 16]);

// === impl CredentialId ===

impl CredentialId {
    pub(super) fn from_bytes(bytes: [u8; 8]) -> Self {
        let digit = |nibble: u8| {
            if nibble < 10 {
                b'0' + nibble
            } else {
                b'a' + nibble - 10
            }
        };
        let mut digits = [0; 16];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            *pair = [digit(byte >> 4), digit(byte & 0xf)];
        }
        Self(digits)
    }

    /// Returns the digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the digits as text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Default for CredentialId {
    /// The id of a simulated cookie.
    fn default() -> Self {
        Self([b'0'; 16])
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
