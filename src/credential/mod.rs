//! Credentials that clients carry: the known-client cookie, the clearance, and the token of a challenge with its
//! proof of work.
//!
//! Everything here is pure. The time and random bytes are arguments, and nothing is stored: whatever the gateway must
//! remember about a client is in the signed text that the client sends back. [`SecretRing`] holds the keys. All
//! gateways with one secret file accept each other's credentials.
//!
//! A text is base64url without padding. A time is a `u32` of seconds since the epoch, and a number is big-endian.
//! Comparisons of signatures and user hashes take constant time.

mod challenge_token;
mod clearance_cookie;
mod credential_id;
mod known_cookie;
mod secret_ring;
#[cfg(test)]
mod tests;
mod text;
mod verify_budget;
mod work_proof;

pub use challenge_token::{ChallengeToken, TokenError, TokenIssue};
pub use clearance_cookie::{ClearanceCheck, ClearanceCookie};
pub use credential_id::CredentialId;
pub use known_cookie::{CookieIssue, KnownCheck, KnownCookie};
pub use secret_ring::{SecretError, SecretLine, SecretRing};
pub use verify_budget::VerifyBudget;
pub use work_proof::WorkProof;

use crate::clock::Timestamp;

/// The most by which the clocks of two gateways may differ, in seconds.
const CLOCK_SKEW: u32 = 300;

/// The random bytes of a challenge token.
pub type Nonce = [u8; 16];

/// Returns whether a cookie with this name is one of the gateway's.
pub fn is_own_cookie(name: &[u8]) -> bool {
    let own = [
        KnownCookie::HOST_NAME,
        KnownCookie::DOMAIN_NAME,
        ClearanceCookie::NAME,
    ];
    own.iter().any(|own| own.as_bytes() == name)
}

/// Returns the time of a credential: whole seconds since the epoch.
pub fn unix_seconds(time: Timestamp) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// What a clearance and a token are bound to: the cipher part of the connection's JA4. It is stable when a session
/// is resumed. All zero without a ClientHello, as behind a proxy that terminates TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientBinding([u8; 6]);

// === impl ClientBinding ===

impl ClientBinding {
    /// Returns the binding of a connection with this JA4. The binding of a text that is not a JA4 is all zero.
    pub fn from_ja4(ja4: &str) -> Self {
        let ciphers = ja4.split('_').nth(1).unwrap_or_default().as_bytes();
        let mut bytes = [0; 6];
        let (pairs, []) = ciphers.as_chunks::<2>() else {
            return Self::default();
        };
        if pairs.len() != bytes.len() {
            return Self::default();
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let Some(value) = text::hex_byte(*pair) else {
                return Self::default();
            };
            *byte = value;
        }
        Self(bytes)
    }
}
