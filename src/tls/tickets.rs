//! What resumption needs: keys for tickets, and sessions of clients that have no tickets.
//!
//! They outlive a reload, and the keys a handover, so that clients can go on with sessions from
//! before one. A session is
//! never taken where other clients are let in: it would stand for a certificate that nobody looked
//! at there.

mod ring;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};

pub use ring::SavedKeys;
use ring::{Ring, Ticketer};

use crate::clock::Clock;

/// Sessions of TLS 1.2 clients without tickets that are kept, the oldest dropped first.
const MAX_SESSIONS: usize = 8192;

/// The keys of all listeners. Made once a process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tickets {
    /// Those of listeners that are gone go with them.
    known: Arc<Mutex<HashMap<Scope, Weak<Keys>>>>,
    ring: Arc<Ring>,
}

/// Where a session may be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The listener.
    pub(super) listener: Box<str>,
    /// Which client certificates it asks for; `None`: none.
    pub(super) clients: Option<[u8; 32]>,
}

/// What one scope has.
pub(super) struct Keys {
    pub(super) ticketer: Arc<dyn ProducesTickets>,
    pub(super) sessions: Arc<dyn StoresServerSessions>,
}

// === impl Tickets ===

impl Tickets {
    /// No keys yet: sessions of earlier processes cannot be resumed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same on another clock than the machine's.
    pub fn on(clock: Clock) -> Self {
        Self {
            ring: Arc::new(Ring::on(clock)),
            ..Self::default()
        }
    }

    /// The keys, for the process that takes over.
    pub fn save(&self) -> SavedKeys {
        self.ring.save()
    }

    /// Takes the keys of the process before.
    pub fn load(&self, saved: &SavedKeys) {
        self.ring.load(saved);
    }

    /// What a scope has, made when first asked for.
    pub(super) fn of(&self, scope: Scope) -> Arc<Keys> {
        let mut known = self.known.lock();
        if let Some(keys) = known.get(&scope).and_then(Weak::upgrade) {
            return keys;
        }
        known.retain(|_, keys| keys.strong_count() > 0);
        let keys = Arc::new(Keys {
            ticketer: Arc::new(Ticketer::new(self.ring.clone(), &scope)),
            sessions: ServerSessionMemoryCache::new(MAX_SESSIONS),
        });
        known.insert(scope, Arc::downgrade(&keys));
        keys
    }
}

// === impl Keys ===

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
