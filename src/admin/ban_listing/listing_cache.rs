//! The newest long listing, which clients share for a moment. A listing is never reused after a change by hand on this gateway
//! or after a reload.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::BanListing;
use crate::admin::api_error::ApiError;
use crate::admin::mitigations::refused;
use crate::admin::state::AdminState;

/// The number of bans from which a listing is shared. A shorter one is made for each client.
const SHARED_FROM: usize = 10_000;

/// The longest time that a listing is shared.
const MAX_AGE: Duration = Duration::from_secs(2);

/// The newest listing of bans.
#[derive(Default)]
pub(in crate::admin) struct ListingCache {
    newest: Mutex<Option<CachedListing>>,
    /// The number of changes by hand.
    changes: AtomicU64,
}

struct CachedListing {
    listing: Arc<BanListing>,
    made_at: Instant,
    /// The number of changes by hand before it was made.
    changes: u64,
}

// === impl ListingCache ===

impl ListingCache {
    /// Notes a change by hand: listings from before it are not used any more.
    pub(in crate::admin) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Frees a listing that is too old. Called once per second.
    pub(in crate::admin) fn drop_old(&self, now: Instant) {
        if let Ok(mut newest) = self.newest.try_lock()
            && newest.as_ref().is_some_and(|cached| cached.is_old(now))
        {
            *newest = None;
        }
    }
}

// === impl CachedListing ===

impl CachedListing {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made_at) >= MAX_AGE
    }
}

/// Returns all bans, as they are now or were a moment ago. Clients that arrive while a listing is made wait for it, so that
/// only one is made at a time.
pub(in crate::admin) async fn listing(state: &AdminState) -> Result<Arc<BanListing>, ApiError> {
    let mut newest = state.listings.newest.lock().await;
    let now = state.live.process.clock.instant();
    let changes = state.listings.changes.load(Ordering::Acquire);
    let snapshot = state.snapshot();
    if let Some(cached) = &*newest
        && !cached.is_old(now)
        && cached.changes == changes
        && Arc::ptr_eq(&cached.listing.snapshot, &snapshot)
    {
        return Ok(cached.listing.clone());
    }
    // Two long listings need a lot of memory.
    *newest = None;
    let listing = Arc::new(make(state).await?);
    if listing.len() >= SHARED_FROM {
        *newest = Some(CachedListing {
            listing: listing.clone(),
            made_at: state.live.process.clock.instant(),
            changes,
        });
    }
    Ok(listing)
}

/// Returns all bans as they are now, for a change.
pub(in crate::admin) async fn fresh_listing(
    state: &AdminState,
) -> Result<Arc<BanListing>, ApiError> {
    state.listings.note_change();
    listing(state).await
}

async fn make(state: &AdminState) -> Result<BanListing, ApiError> {
    let (snapshot, hub) = (state.snapshot(), state.hub().clone());
    let rules = snapshot.rules.iter().map(|(_, rule)| rule.id).collect();
    let bans = state.store.list_bans(rules).await.map_err(refused)?;
    let listing = spawn_blocking(move || BanListing::new(snapshot, bans, hub)).await;
    listing.map_err(|_| ApiError::internal())
}
