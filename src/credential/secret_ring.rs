//! The keys of all credentials, derived from one to four secrets. The first secret signs, all verify.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hkdf, hmac};

use super::text;

/// The most secrets in a file.
const MAX_LINES: usize = 4;
const SECRET_BYTES: usize = 32;
const HEX_DIGITS: usize = 2 * SECRET_BYTES;
/// The length of a signature in a credential.
pub(super) const MAC_BYTES: usize = 16;

/// 32 random bytes.
pub type Secret = [u8; SECRET_BYTES];
/// The signature at the end of a credential.
pub(super) type Mac = [u8; MAC_BYTES];

/// The keys derived from one to four secrets. To rotate secrets, add the new one as the second everywhere, then make
/// it the first, and remove the old one when its cookies have expired.
pub struct SecretRing {
    first: SecretKeys,
    others: Vec<SecretKeys>,
}

/// Selects a secret of a ring: the one that verified a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretLine(usize);

/// What a key is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPurpose {
    Known,
    User,
    Token,
    Clearance,
    ClearanceId,
}

/// Why a file is not a secret. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// The file is neither 32 bytes nor lines of text; this is its length.
    Length(usize),
    /// A line is not 64 hexadecimal digits.
    Line {
        /// The number of the line.
        line: usize,
        /// How many characters it has.
        characters: usize,
    },
    /// This line is one more than a file may have.
    TooMany(usize),
}

struct SecretKeys {
    secret: Secret,
    known: hmac::Key,
    user: hmac::Key,
    token: hmac::Key,
    clearance: hmac::Key,
    clearance_id: hmac::Key,
}

// === impl SecretRing ===

impl SecretRing {
    /// Creates a ring with one secret.
    pub fn from_secret(secret: Secret) -> Self {
        Self {
            first: SecretKeys::derive(secret),
            others: Vec::new(),
        }
    }

    /// Parses the content of a secret file: 32 raw bytes, or 1 to 4 lines of 64 hexadecimal digits. Blank lines are
    /// ignored.
    pub fn parse(content: &[u8]) -> Result<Self, SecretError> {
        if let Ok(raw) = content.try_into() {
            return Ok(Self::from_secret(raw));
        }
        let no_text = SecretError::Length(content.len());
        let Some(text) = as_text(content) else {
            return Err(no_text);
        };
        let mut secrets = Vec::new();
        for (text, line) in text.split('\n').map(str::trim_ascii).zip(1..) {
            if text.is_empty() {
                continue;
            }
            if secrets.len() == MAX_LINES {
                return Err(SecretError::TooMany(line));
            }
            let characters = text.chars().count();
            let wrong = SecretError::Line { line, characters };
            secrets.push(hex_secret(text.as_bytes()).ok_or(wrong)?);
        }
        let mut keys = secrets.into_iter().map(SecretKeys::derive);
        let first = keys.next().ok_or(no_text)?;
        Ok(Self {
            first,
            others: keys.collect(),
        })
    }

    /// Returns the first secret.
    pub fn first(&self) -> &Secret {
        &self.first.secret
    }

    /// Returns how many secrets the ring has.
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns `false`: a ring has at least one secret.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Signs `message` for `scope` with the first secret.
    pub(super) fn sign(&self, purpose: KeyPurpose, scope: &str, message: &[u8]) -> Mac {
        mac(self.first.key(purpose), scope, message)
    }

    /// Returns the secret whose signature of `message` is `expected`. `None` if no secret has signed it.
    pub(super) fn verify(
        &self,
        purpose: KeyPurpose,
        scope: &str,
        message: &[u8],
        expected: &Mac,
    ) -> Option<SecretLine> {
        let mut lines = std::iter::once(&self.first).chain(&self.others);
        let line = lines.position(|keys| {
            let actual = mac(keys.key(purpose), scope, message);
            verify_slices_are_equal(&actual, expected).is_ok()
        });
        line.map(SecretLine)
    }

    /// Returns the first `N` bytes of the HMAC of `parts` under a key of the secret `line`.
    pub(super) fn keyed_hash<const N: usize>(
        &self,
        line: SecretLine,
        purpose: KeyPurpose,
        parts: [&[u8]; 2],
    ) -> [u8; N] {
        let keys = line.0.checked_sub(1).and_then(|at| self.others.get(at));
        let mut context = hmac::Context::with_key(keys.unwrap_or(&self.first).key(purpose));
        parts.iter().for_each(|part| context.update(part));
        prefix(context)
    }
}

impl fmt::Debug for SecretRing {
    /// Omits the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRing")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl SecretLine ===

impl SecretLine {
    /// The secret that signs.
    pub(super) const FIRST: Self = Self(0);

    /// Returns whether this secret signs.
    pub fn is_first(self) -> bool {
        self == Self::FIRST
    }
}

// === impl SecretKeys ===

impl SecretKeys {
    fn derive(secret: Secret) -> Self {
        Self {
            secret,
            known: derive_key(&secret, b"known"),
            user: derive_key(&secret, b"user"),
            token: derive_key(&secret, b"token"),
            clearance: derive_key(&secret, b"clearance"),
            clearance_id: derive_key(&secret, b"clearance-id"),
        }
    }

    fn key(&self, purpose: KeyPurpose) -> &hmac::Key {
        match purpose {
            KeyPurpose::Known => &self.known,
            KeyPurpose::User => &self.user,
            KeyPurpose::Token => &self.token,
            KeyPurpose::Clearance => &self.clearance,
            KeyPurpose::ClearanceId => &self.clearance_id,
        }
    }
}

// === impl SecretError ===

impl fmt::Display for SecretError {
    /// Completes the sentence "the file is not a secret: …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(bytes) => write!(
                f,
                "expected 32 bytes or lines of 64 hexadecimal digits, found {bytes} bytes"
            ),
            Self::Line { line, characters } if *characters == HEX_DIGITS => write!(
                f,
                "line {line} has a character that is not a hexadecimal digit"
            ),
            Self::Line { line, characters } => write!(
                f,
                "line {line} has {characters} characters; expected {HEX_DIGITS} hexadecimal digits, or a file of exactly \
                 {SECRET_BYTES} bytes"
            ),
            Self::TooMany(line) => {
                write!(
                    f,
                    "line {line} is one too many: a file has at most {MAX_LINES} secrets"
                )
            }
        }
    }
}

/// Derives a key with HKDF-SHA-256 (RFC 5869), without a salt.
fn derive_key(secret: &Secret, label: &[u8]) -> hmac::Key {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]);
    let pseudorandom = salt.extract(secret);
    let info = [b"lockgate/1/", label];
    let mut key = [0; SECRET_BYTES];
    pseudorandom
        .expand(&info, hmac::HMAC_SHA256)
        .and_then(|output| output.fill(&mut key))
        .expect("32 bytes are a valid length");
    hmac::Key::new(hmac::HMAC_SHA256, &key)
}

fn mac(key: &hmac::Key, scope: &str, message: &[u8]) -> Mac {
    let mut context = hmac::Context::with_key(key);
    context.update(scope.as_bytes());
    context.update(&[0]);
    context.update(message);
    prefix(context)
}

fn prefix<const N: usize>(context: hmac::Context) -> [u8; N] {
    let tag = context.sign();
    let prefix = tag.as_ref().first_chunk();
    *prefix.expect("a tag has 32 bytes, and N is at most 16")
}

fn hex_secret(line: &[u8]) -> Option<Secret> {
    let (pairs, []) = line.as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| text::hex_byte(*pair)).collect();
    bytes?.try_into().ok()
}

/// Returns the content of a file that is text. `None` if it is not, so that its length says more than its lines.
fn as_text(content: &[u8]) -> Option<&str> {
    let is_text = |text: &&str| {
        !text
            .chars()
            .any(|c| c.is_control() && !c.is_ascii_whitespace())
    };
    std::str::from_utf8(content).ok().filter(is_text)
}
