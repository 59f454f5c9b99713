//! What a gateway begins with and a reload does not touch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use crate::action::imitate::Imitations;
use crate::clock::Clock;
use crate::observe::{Log, Metrics};
use crate::snapshot::Lasting;
use crate::store::{Bounds, Store};
use crate::tls::Tickets;
use crate::upstream::Registry;

// === impl Lasting ===

impl Lasting {
    /// What a gateway begins with.
    pub fn new(clock: Clock, log: Log, bounds: Bounds) -> anyhow::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| anyhow::anyhow!("the machine has no random numbers: {error}"))?;
        Ok(Self {
            tickets: Tickets::on(clock.clone()),
            clock,
            store: Store::memory(bounds).keyed(&secret),
            held: AtomicUsize::new(0),
            imitations: Imitations::new(),
            metrics: Metrics::new(),
            servers: Registry::default(),
            listeners: AtomicU32::new(0),
            development: OnceLock::new(),
            secret,
            log,
        })
    }

    /// The same with a secret that others share or that outlives this process. Nothing may have
    /// been counted yet.
    pub fn with_secret(self, secret: [u8; 32]) -> Self {
        Self {
            store: self.store.keyed(&secret),
            secret,
            ..self
        }
    }
}
