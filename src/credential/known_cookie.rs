//! The cookie of a client that has succeeded: a random id, two times, and keyed hashes of at most four users.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use smallvec::SmallVec;

use super::secret_ring::{KeyPurpose, MAC_BYTES, Mac};
use super::{CLOCK_SKEW, CredentialId, SecretLine, SecretRing, text};

const VERSION: u8 = 1;
const MAX_USERS: usize = 4;
const USER_BYTES: usize = 6;
/// The length without users and signature: version, id, two times and the number of users.
const HEAD_BYTES: usize = 1 + 8 + 4 + 4 + 1;
const MAX_BYTES: usize = HEAD_BYTES + MAX_USERS * USER_BYTES + MAC_BYTES;
/// The share of its lifetime after which a success renews a cookie.
const RENEWAL_SHARE: u32 = 10;

type UserHash = [u8; USER_BYTES];

/// A valid known-client cookie. It does not authenticate its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCookie {
    id: [u8; 8],
    first_success: u32,
    renewed: u32,
    /// The users that have succeeded with this cookie, oldest first.
    users: SmallVec<[UserHash; MAX_USERS]>,
    line: SecretLine,
}

/// The result of checking a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownCheck {
    /// The cookie is valid.
    Known(KnownCookie),
    /// The cookie was valid, but it was not renewed for its lifetime.
    Expired,
    /// No gateway with a secret of the ring issued this cookie for this scope.
    Invalid,
}

/// Why a success issues a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieIssue {
    /// The client has no valid cookie.
    Issued,
    /// A tenth of the lifetime has passed, or an older secret signed the cookie.
    Renewed,
    /// The user succeeded with this cookie for the first time.
    UserAdded,
}

// === impl KnownCookie ===

impl KnownCookie {
    /// The name of a cookie for one host.
    pub const HOST_NAME: &'static str = "__Host-lockgate-client";
    /// The name of a cookie for a domain.
    pub const DOMAIN_NAME: &'static str = "__Secure-lockgate-client";

    /// Creates a cookie without users. `id` is random.
    pub fn new(id: [u8; 8], now: u32) -> Self {
        Self {
            id,
            first_success: now,
            renewed: now,
            users: SmallVec::new(),
            line: SecretLine::FIRST,
        }
    }

    /// Checks the text of a cookie. `lifetime` is in seconds, since the last renewal.
    pub fn check(
        cookie: &[u8],
        ring: &SecretRing,
        scope: &str,
        now: u32,
        lifetime: u32,
    ) -> KnownCheck {
        let Some(known) = Self::parse(cookie, ring, scope) else {
            return KnownCheck::Invalid;
        };
        if known.first_success > known.renewed || known.renewed > now.saturating_add(CLOCK_SKEW) {
            return KnownCheck::Invalid;
        }
        if now >= known.renewed.saturating_add(lifetime) {
            return KnownCheck::Expired;
        }
        KnownCheck::Known(known)
    }

    /// Parses the text of a cookie and verifies its signature, without regard to its times.
    fn parse(cookie: &[u8], ring: &SecretRing, scope: &str) -> Option<Self> {
        let mut buffer = [0; MAX_BYTES];
        let bytes = text::decode(cookie, &mut buffer)?;
        let (message, mac): (_, &Mac) = bytes.split_last_chunk()?;
        let (head, users) = message.split_first_chunk::<HEAD_BYTES>()?;
        let (hashes, []) = users.as_chunks::<USER_BYTES>() else {
            return None;
        };
        let [VERSION, fields @ .., count] = head else {
            return None;
        };
        if hashes.len() != usize::from(*count) || hashes.len() > MAX_USERS {
            return None;
        }
        let line = ring.verify(KeyPurpose::Known, scope, message, mac)?;
        let (id, times) = fields.split_first_chunk()?;
        let (first_success, times) = text::split_u32(times)?;
        let (renewed, _) = text::split_u32(times)?;
        Some(Self {
            id: *id,
            first_success,
            renewed,
            users: SmallVec::from_slice(hashes),
            line,
        })
    }

    /// Returns the text of the cookie, signed with the first secret.
    pub fn encode(&self, ring: &SecretRing, scope: &str) -> String {
        let mut bytes = Vec::with_capacity(MAX_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.first_success.to_be_bytes());
        bytes.extend_from_slice(&self.renewed.to_be_bytes());
        bytes.push(u8::try_from(self.users.len()).unwrap_or_default());
        bytes.extend_from_slice(self.users.as_flattened());
        let mac = ring.sign(KeyPurpose::Known, scope, &bytes);
        bytes.extend_from_slice(&mac);
        text::encode(&bytes)
    }

    /// Returns the id that keys and logs show. It stays when the cookie is renewed and when secrets change.
    pub fn client_id(&self) -> CredentialId {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"lockgate client id\0");
        context.update(&self.id);
        let hash = context.finish();
        let prefix = hash.as_ref().first_chunk();
        CredentialId::from_bytes(*prefix.expect("a hash has 32 bytes"))
    }

    /// Returns the seconds since the first success.
    pub fn age(&self, now: u32) -> u32 {
        now.saturating_sub(self.first_success)
    }

    /// Returns whether `user` has succeeded with this cookie.
    pub fn has_user(&self, ring: &SecretRing, user: &[u8]) -> bool {
        if self.users.is_empty() {
            return false;
        }
        let hash = self.hash_user(ring, user);
        // Compares with all users, so that the time does not depend on which one matches.
        let is = |known: &UserHash| verify_slices_are_equal(known, &hash).is_ok();
        self.users.iter().filter(|known| is(known)).count() > 0
    }

    /// Adds a user; a fifth replaces the oldest.
    pub fn add_user(&mut self, ring: &SecretRing, user: &[u8]) {
        if self.users.len() == MAX_USERS {
            self.users.remove(0);
        }
        let hash = self.hash_user(ring, user);
        self.users.push(hash);
    }

    /// Returns the cookie to issue after a success of `user`, and why. `None` if the client keeps its cookie. `user`
    /// is `None` if the success names none.
    pub fn after_success(
        &self,
        ring: &SecretRing,
        user: Option<&[u8]>,
        now: u32,
        lifetime: u32,
    ) -> Option<(Self, CookieIssue)> {
        let new_user = user.filter(|user| !self.has_user(ring, user));
        let mut next = self.clone();
        // A clock that is behind that of another gateway must not make the cookie invalid.
        next.renewed = now.max(self.renewed);
        if !self.line.is_first() {
            // Only the old secret can verify the other users' hashes, so they are lost. Keep them until a user succeeds.
            if user.is_none() && !self.users.is_empty() {
                return None;
            }
            next.line = SecretLine::FIRST;
            next.users.clear();
            user.into_iter().for_each(|user| next.add_user(ring, user));
        } else if let Some(user) = new_user {
            next.add_user(ring, user);
        } else if now.saturating_sub(self.renewed) <= lifetime / RENEWAL_SHARE {
            return None;
        }
        let issue = if new_user.is_some() {
            CookieIssue::UserAdded
        } else {
            CookieIssue::Renewed
        };
        Some((next, issue))
    }

    fn hash_user(&self, ring: &SecretRing, user: &[u8]) -> UserHash {
        ring.keyed_hash(self.line, KeyPurpose::User, [&self.id, user])
    }
}
