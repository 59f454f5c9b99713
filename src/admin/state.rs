//! What the endpoints read: the gateway, and what the admin port itself remembers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::attention::AttentionBoard;
use super::ban_listing::ListingCache;
use super::event_stream::StreamSlots;
use super::key_views::KeyViews;
use super::recent_total::RecentTotal;
use super::server_rates::ServerRates;
use super::store_watch::StoreWatch;
use crate::clock::Timestamp;
use crate::gateway::{Gateway, Reloader};
use crate::listen::ConnectionLimit;
use crate::observe::activity::ActivityHub;
use crate::process::RunningGateway;
use crate::rules::RuleId;
use crate::snapshot::Snapshot;
use crate::store::StoreAdmin;

/// How long counts of keys and bans are served from memory, because counting reads the whole store.
const COUNTS_AGE: Duration = Duration::from_secs(1);

/// The state that the admin port serves.
pub(super) struct AdminState {
    pub(super) live: Arc<RunningGateway>,
    pub(super) reloader: Arc<Reloader>,
    /// The connections of clients to the listeners.
    pub(super) connections: ConnectionLimit,
    /// Whether the gateway accepts requests: `false` while draining.
    pub(super) ready: AtomicBool,
    pub(super) started_at: Timestamp,
    /// The host name.
    pub(super) instance: String,
    pub(super) streams: StreamSlots,
    pub(super) server_rates: Mutex<ServerRates>,
    pub(super) store_watch: Mutex<StoreWatch>,
    pub(super) attention: Mutex<AttentionBoard>,
    /// Bans, exemptions and counters.
    pub(super) store: StoreAdmin,
    /// Panics within the window.
    pub(super) panics: Mutex<RecentTotal>,
    /// Evicted bans within the window.
    pub(super) evictions: Mutex<RecentTotal>,
    /// The number of bans that were likely false positives when they were last counted.
    pub(super) likely_false_positives: AtomicUsize,
    /// The newest listing of bans.
    pub(super) listings: ListingCache,
    /// What was computed about the keys of rules.
    pub(super) key_views: tokio::sync::Mutex<KeyViews>,
    counts: tokio::sync::Mutex<Option<(Instant, Arc<StoreCounts>)>>,
}

/// The numbers of keys and bans in the store.
#[derive(Debug, Default)]
pub(super) struct StoreCounts {
    /// The keys of each rule, by slot.
    keys: Vec<(u16, usize)>,
    /// The bans of each rule.
    bans: HashMap<RuleId, usize>,
}

// === impl AdminState ===

impl AdminState {
    pub(super) fn new(gateway: &Gateway) -> Self {
        let live = gateway.live().clone();
        let host_name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Self {
            reloader: gateway.reloader().clone(),
            connections: gateway.connections(),
            ready: AtomicBool::new(true),
            started_at: live.process.clock.now(),
            instance: host_name,
            streams: StreamSlots::new(),
            server_rates: Mutex::default(),
            store_watch: Mutex::default(),
            attention: Mutex::default(),
            store: StoreAdmin::new(live.process.store.clone(), live.process.clock.clone()),
            panics: Mutex::default(),
            evictions: Mutex::default(),
            likely_false_positives: AtomicUsize::new(0),
            listings: ListingCache::default(),
            key_views: tokio::sync::Mutex::default(),
            counts: tokio::sync::Mutex::default(),
            live,
        }
    }

    /// What is remembered about recent requests.
    pub(super) fn hub(&self) -> &Arc<ActivityHub> {
        &self.live.process.activity
    }

    pub(super) fn now(&self) -> Timestamp {
        self.live.process.clock.now()
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.live.current.load_full()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Returns the token that requests need now. `None` if they need none.
    pub(super) fn token(&self) -> Option<String> {
        self.live.current.load().settings.admin_token.clone()
    }

    /// Returns the numbers of keys and bans, at most a second old. Requests that arrive while they are counted wait for
    /// one result.
    pub(super) async fn store_counts(&self) -> Arc<StoreCounts> {
        let mut counts = self.counts.lock().await;
        let instant = self.live.process.clock.instant();
        if let Some((at, known)) = &*counts
            && instant.saturating_duration_since(*at) < COUNTS_AGE
        {
            return known.clone();
        }
        let live = self.live.clone();
        let counted = tokio::task::spawn_blocking(move || StoreCounts::count(&live)).await;
        let mut counted = counted.unwrap_or_default();
        if let Some(bans) = self.fleet_bans().await {
            counted.bans = bans;
        }
        let counted = Arc::new(counted);
        *counts = Some((instant, counted.clone()));
        counted
    }

    /// Counts the bans of the fleet. `None` without a shared store.
    async fn fleet_bans(&self) -> Option<HashMap<RuleId, usize>> {
        if self.live.process.store.is_local() {
            return None;
        }
        let snapshot = self.snapshot();
        let rules = snapshot.rules.iter().map(|(_, rule)| rule.id).collect();
        self.store.count_bans(rules).await.ok()
    }
}

// === impl StoreCounts ===

impl StoreCounts {
    /// Reads the whole store, so it must not run on a thread that serves requests.
    fn count(live: &RunningGateway) -> Self {
        let (store, now) = (&live.process.store, live.process.clock.now());
        Self {
            keys: store.keys(now),
            bans: store.ban_counts(now),
        }
    }

    /// The number of keys of a rule.
    pub(super) fn keys_of(&self, rule: RuleId) -> usize {
        let own = self.keys.iter().find(|(slot, _)| *slot == rule.slot);
        own.map_or(0, |(_, keys)| *keys)
    }

    /// The number of bans of a rule.
    pub(super) fn bans_of(&self, rule: RuleId) -> usize {
        self.bans.get(&rule).copied().unwrap_or(0)
    }

    /// The number of keys of all rules.
    pub(super) fn keys(&self) -> usize {
        self.keys.iter().map(|(_, keys)| keys).sum()
    }

    /// The number of bans of all rules.
    pub(super) fn bans(&self) -> usize {
        self.bans.values().sum()
    }
}
