//! The clearance: the cookie for a correct solution. Every byte follows from the token, so a repeated solution yields
//! the same clearance and therefore the same counters.

use super::secret_ring::{KeyPurpose, MAC_BYTES, Mac};
use super::{CLOCK_SKEW, ChallengeToken, ClientBinding, CredentialId, SecretRing, text};

const VERSION: u8 = 1;
const BYTES: usize = 1 + 8 + 4 + 6 + MAC_BYTES;

/// A clearance with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearanceCookie {
    id: [u8; 8],
    issued: u32,
    binding: ClientBinding,
}

/// What a clearance is checked against.
#[derive(Clone, Copy, Debug)]
pub struct ClearanceCheck<'a> {
    /// The keys.
    pub ring: &'a SecretRing,
    /// The normalized host without port.
    pub scope: &'a str,
    /// The current time.
    pub now: u32,
    /// Seconds since the challenge.
    pub lifetime: u32,
    /// The binding of the connection.
    pub binding: ClientBinding,
}

// === impl ClearanceCookie ===

impl ClearanceCookie {
    /// The name of the cookie.
    pub const NAME: &'static str = "__Host-lockgate-clearance";

    /// Creates the clearance for a correct solution of `token`.
    pub fn for_token(token: &ChallengeToken, ring: &SecretRing) -> Self {
        Self {
            id: ring.keyed_hash(token.line(), KeyPurpose::ClearanceId, [token.nonce(), &[]]),
            issued: token.issued(),
            binding: token.binding(),
        }
    }

    /// Verifies the text of a clearance. `None` if any check fails.
    pub fn verify(cookie: &[u8], check: &ClearanceCheck<'_>) -> Option<Self> {
        let clearance = Self::parse(cookie, check)?;
        let is_early = clearance.issued > check.now.saturating_add(CLOCK_SKEW);
        let is_late = check.now >= clearance.issued.saturating_add(check.lifetime);
        let is_valid = clearance.binding == check.binding && !is_early && !is_late;
        is_valid.then_some(clearance)
    }

    fn parse(cookie: &[u8], check: &ClearanceCheck<'_>) -> Option<Self> {
        let mut buffer = [0; BYTES];
        let bytes: &[u8; BYTES] = text::decode(cookie, &mut buffer)?.try_into().ok()?;
        let (message, mac): (_, &Mac) = bytes.split_last_chunk()?;
        let [VERSION, rest @ ..] = message else {
            return None;
        };
        check
            .ring
            .verify(KeyPurpose::Clearance, check.scope, message, mac)?;
        let (id, rest) = rest.split_first_chunk()?;
        let (issued, rest) = text::split_u32(rest)?;
        Some(Self {
            id: *id,
            issued,
            binding: ClientBinding(rest.try_into().ok()?),
        })
    }

    /// Returns the text of the clearance, signed with the first secret.
    pub fn encode(&self, ring: &SecretRing, scope: &str) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.issued.to_be_bytes());
        bytes.extend_from_slice(&self.binding.0);
        let mac = ring.sign(KeyPurpose::Clearance, scope, &bytes);
        bytes.extend_from_slice(&mac);
        text::encode(&bytes)
    }

    /// Returns the id that keys and logs show.
    pub fn id(&self) -> CredentialId {
        CredentialId::from_bytes(self.id)
    }
}
