//! State for session resumption: ticket keys, and sessions of clients without ticket support.
//!
//! Both survive a reload, and the keys a handover, so that clients can resume earlier sessions. A session is
//! never resumed where other client certificates are accepted, because its certificate was not checked there.
//!
//! One key is in use, and the previous one is still accepted. A new key is generated every six hours, so that a
//! compromised machine does not reveal old sessions. Keys leave the process only in a handover.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use parking_lot::Mutex;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};

use crate::clock::{Clock, Timestamp};

/// The maximum number of sessions of TLS 1.2 clients without tickets; the oldest is dropped first.
const MAX_SESSIONS: usize = 8192;

/// The time for which a key is in use; afterwards it is accepted for that time again.
const LIFE: Duration = Duration::from_secs(6 * 60 * 60);
const NAME: usize = 16;
const SECRET: usize = 32;
const TIME: usize = 8;
/// The serialized length of one key, and of all keys.
const KEY: usize = TIME + NAME + SECRET;
const SAVED: usize = 2 * KEY;

/// The keys of all listeners. Created once per process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct TicketKeys {
    /// The keys per scope. Those of a removed listener are freed with it.
    known: Arc<Mutex<HashMap<TicketScope, Weak<ScopeKeys>>>>,
    ring: Arc<Ring>,
}

/// The scope within which a session may be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TicketScope {
    /// The listener.
    pub(super) listener: Box<str>,
    /// Identifies the accepted client certificates. `None` if none is requested.
    pub(super) clients: Option<[u8; 32]>,
}

/// The resumption state of one scope.
pub(super) struct ScopeKeys {
    pub(super) ticketer: Arc<dyn ProducesTickets>,
    pub(super) sessions: Arc<dyn StoresServerSessions>,
}

/// All keys, serialized for another process. They can decrypt tickets.
pub struct SavedKeys([u8; SAVED]);

/// The keys of a process.
#[derive(Debug, Default)]
struct Ring {
    clock: Clock,
    keys: Mutex<TicketKeyring>,
}

#[derive(Debug, Default)]
struct TicketKeyring {
    current: Option<Arc<TicketKey>>,
    before: Option<Arc<TicketKey>>,
}

struct TicketKey {
    since: Timestamp,
    /// The first bytes of each ticket, which identify its key.
    name: [u8; NAME],
    secret: [u8; SECRET],
    aead: RandomizedNonceKey,
}

/// Creates the tickets of one scope. It cannot decrypt those of others.
#[derive(Debug)]
struct Ticketer {
    ring: Arc<Ring>,
    scope: Vec<u8>,
}

// === impl TicketKeys ===

impl TicketKeys {
    /// Creates an empty key ring: sessions of earlier processes cannot be resumed.
    pub fn on(clock: Clock) -> Self {
        let keys = Mutex::default();
        Self {
            ring: Arc::new(Ring { clock, keys }),
            ..Self::default()
        }
    }

    /// Returns the keys, for a handover.
    pub fn save(&self) -> SavedKeys {
        self.ring.save()
    }

    /// Loads the keys of the previous process.
    pub fn load(&self, saved: &SavedKeys) {
        self.ring.load(saved);
    }

    /// Returns the state of a scope; creates it at the first call.
    pub(super) fn of(&self, scope: &TicketScope) -> Arc<ScopeKeys> {
        let mut known = self.known.lock();
        if let Some(keys) = known.get(scope).and_then(Weak::upgrade) {
            return keys;
        }
        known.retain(|_, keys| keys.strong_count() > 0);
        let keys = Arc::new(ScopeKeys {
            ticketer: Arc::new(Ticketer::new(self.ring.clone(), scope)),
            sessions: ServerSessionMemoryCache::new(MAX_SESSIONS),
        });
        known.insert(scope.clone(), Arc::downgrade(&keys));
        keys
    }
}

// === impl ScopeKeys ===

impl fmt::Debug for ScopeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeKeys").finish_non_exhaustive()
    }
}

// === impl SavedKeys ===

impl SavedKeys {
    /// The length in bytes.
    pub const LENGTH: usize = SAVED;

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; SAVED] {
        &self.0
    }
}

impl From<[u8; SAVED]> for SavedKeys {
    fn from(bytes: [u8; SAVED]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for SavedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedKeys").finish_non_exhaustive()
    }
}

// === impl Ring ===

impl Ring {
    fn save(&self) -> SavedKeys {
        let mut saved = [0; SAVED];
        let keys = self.keys.lock();
        let (first, second) = saved.split_at_mut(KEY);
        for (key, place) in [(&keys.current, first), (&keys.before, second)] {
            if let Some(key) = key {
                key.write(place);
            }
        }
        SavedKeys(saved)
    }

    fn load(&self, saved: &SavedKeys) {
        let (first, second) = saved.0.split_at(KEY);
        *self.keys.lock() = TicketKeyring {
            current: TicketKey::read(first).map(Arc::new),
            before: TicketKey::read(second).map(Arc::new),
        };
    }

    /// Returns the key in use. `None` if the system has no random numbers.
    fn current(&self) -> Option<Arc<TicketKey>> {
        let now = self.clock.now();
        let mut keys = self.keys.lock();
        let current = keys.current.as_ref();
        if !current.is_some_and(|key| key.is_younger(LIFE, now)) {
            let made = Arc::new(TicketKey::draw(now)?);
            keys.before = keys.current.replace(made);
        }
        keys.current.clone()
    }

    /// Returns the key of this name. `None` if it is unknown or too old.
    fn find(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        let now = self.clock.now();
        let keys = self.keys.lock();
        let mut all = keys.current.iter().chain(&keys.before);
        let known = all.find(|key| key.name == name && key.is_younger(2 * LIFE, now));
        known.cloned()
    }
}

// === impl TicketKey ===

impl TicketKey {
    fn draw(since: Timestamp) -> Option<Self> {
        let (mut name, mut secret) = ([0; NAME], [0; SECRET]);
        getrandom::fill(&mut name).ok()?;
        getrandom::fill(&mut secret).ok()?;
        Self::new(since, name, secret)
    }

    fn new(since: Timestamp, name: [u8; NAME], secret: [u8; SECRET]) -> Option<Self> {
        Some(Self {
            since,
            name,
            secret,
            aead: RandomizedNonceKey::new(&AES_256_GCM, &secret).ok()?,
        })
    }

    /// Parses a key. `None` if there is none.
    fn read(saved: &[u8]) -> Option<Self> {
        let (since, rest) = saved.split_first_chunk()?;
        let (name, secret) = rest.split_first_chunk()?;
        let secret = secret.first_chunk()?;
        let since = Timestamp::from_nanos(u64::from_be_bytes(*since));
        match *secret == [0; SECRET] {
            true => None,
            false => Self::new(since, *name, *secret),
        }
    }

    fn write(&self, place: &mut [u8]) {
        let since = self.since.as_nanos().to_be_bytes();
        let all = since.iter().chain(&self.name).chain(&self.secret);
        place.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
    }

    fn is_younger(&self, age: Duration, now: Timestamp) -> bool {
        now.since(self.since) < age
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = f.debug_struct("Key");
        key.field("since", &self.since).finish_non_exhaustive()
    }
}

// === impl Ticketer ===

impl Ticketer {
    fn new(ring: Arc<Ring>, scope: &TicketScope) -> Self {
        // The first byte distinguishes the two kinds of scope, and the first part has a fixed length in each.
        let clients = scope.clients.as_ref();
        let mut bytes = vec![u8::from(clients.is_some())];
        bytes.extend(clients.into_iter().flatten());
        bytes.extend_from_slice(scope.listener.as_bytes());
        Self { ring, scope: bytes }
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(2 * LIFE.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.ring.current()?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(&self.scope);
        let nonce = key.aead.seal_in_place_append_tag(aad, &mut sealed).ok()?;
        Some([&key.name, nonce.as_ref().as_slice(), &sealed].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = cipher.split_at_checked(NAME)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let key = self.ring.find(name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let aad = Aad::from(&self.scope);
        let plain = key.aead.open_in_place(nonce, aad, &mut sealed).ok()?;
        Some(plain.to_vec())
    }
}
