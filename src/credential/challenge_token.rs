//! The token of a challenge: what the gateway must remember until the client sends a solution.

use aws_lc_rs::digest;

use super::secret_ring::{KeyPurpose, MAC_BYTES, Mac};
use super::{CLOCK_SKEW, ClientBinding, Nonce, SecretLine, SecretRing, WorkProof, text};

/// Also fixes the number of parts and iterations of the proof of work.
const VERSION: u8 = 1;
const BYTES: usize = 1 + 1 + 4 + 16 + 6 + 4 + MAC_BYTES;
/// The time for which a token is valid, in seconds.
const LIFETIME: u32 = 600;

/// A token with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeToken {
    difficulty: u8,
    issued: u32,
    nonce: Nonce,
    binding: ClientBinding,
    rule: [u8; 4],
    line: SecretLine,
}

/// What a new token contains.
#[derive(Clone, Copy, Debug)]
pub struct TokenIssue<'a> {
    /// 1 to 6.
    pub difficulty: u8,
    /// The time of the challenge.
    pub now: u32,
    /// Random bytes.
    pub nonce: Nonce,
    /// The binding of the connection.
    pub binding: ClientBinding,
    /// The name of the rule that challenges.
    pub rule: &'a str,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// No gateway with a secret of the ring issued this token for this host, or it is bound to another connection.
    Wrong,
    /// The token is older than ten minutes, or from the future.
    Expired {
        /// What stands for the rule that challenged.
        rule: [u8; 4],
    },
}

// === impl ChallengeToken ===

impl ChallengeToken {
    /// Creates a token.
    pub fn new(issue: &TokenIssue<'_>) -> Self {
        Self {
            difficulty: issue.difficulty,
            issued: issue.now,
            nonce: issue.nonce,
            binding: issue.binding,
            rule: Self::rule_tag(issue.rule),
            line: SecretLine::FIRST,
        }
    }

    /// Verifies the text of a token: first its signature, then its time, then its binding.
    pub fn verify(
        token: &[u8],
        ring: &SecretRing,
        scope: &str,
        now: u32,
        binding: ClientBinding,
    ) -> Result<Self, TokenError> {
        let token = Self::parse(token, ring, scope).ok_or(TokenError::Wrong)?;
        let is_early = token.issued > now.saturating_add(CLOCK_SKEW);
        if is_early || now > token.issued.saturating_add(LIFETIME) {
            return Err(TokenError::Expired { rule: token.rule });
        }
        if token.binding != binding {
            return Err(TokenError::Wrong);
        }
        Ok(token)
    }

    fn parse(token: &[u8], ring: &SecretRing, scope: &str) -> Option<Self> {
        let mut buffer = [0; BYTES];
        let bytes: &[u8; BYTES] = text::decode(token, &mut buffer)?.try_into().ok()?;
        let (message, mac): (_, &Mac) = bytes.split_last_chunk()?;
        let [VERSION, difficulty, rest @ ..] = message else {
            return None;
        };
        WorkProof::is_difficulty(*difficulty).then_some(())?;
        let line = ring.verify(KeyPurpose::Token, scope, message, mac)?;
        let (issued, rest) = text::split_u32(rest)?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (binding, rest) = rest.split_first_chunk()?;
        Some(Self {
            difficulty: *difficulty,
            issued,
            nonce: *nonce,
            binding: ClientBinding(*binding),
            rule: rest.try_into().ok()?,
            line,
        })
    }

    /// Returns the text of the token, signed with the first secret.
    pub fn encode(&self, ring: &SecretRing, scope: &str) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(&[VERSION, self.difficulty]);
        bytes.extend_from_slice(&self.issued.to_be_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.binding.0);
        bytes.extend_from_slice(&self.rule);
        let mac = ring.sign(KeyPurpose::Token, scope, &bytes);
        bytes.extend_from_slice(&mac);
        text::encode(&bytes)
    }

    /// Returns the proof of work that the token asks for.
    pub fn work(&self) -> WorkProof {
        WorkProof::new(&self.nonce, self.difficulty)
    }

    /// Returns the time of the challenge.
    pub fn issued(&self) -> u32 {
        self.issued
    }

    /// Returns what stands for the rule that challenged. Compare it with [`ChallengeToken::rule_tag`].
    pub fn rule(&self) -> [u8; 4] {
        self.rule
    }

    /// Returns what stands for the rule `name` in a token. It serves metrics only.
    pub fn rule_tag(name: &str) -> [u8; 4] {
        let hash = digest::digest(&digest::SHA256, name.as_bytes());
        *hash.as_ref().first_chunk().expect("a hash has 32 bytes")
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    pub(super) fn binding(&self) -> ClientBinding {
        self.binding
    }

    pub(super) fn line(&self) -> SecretLine {
        self.line
    }
}
