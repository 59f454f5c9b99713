//! What every store must do, a sentence a case. Each case has a rule of its own, so that all can
//! share one store.

use super::Store;

mod algorithms;
mod bans;
mod counting;
mod passes;
mod patience;
mod places;

/// Runs every case.
pub(super) async fn all(store: &Store) {
    counting::all(store).await;
    algorithms::all(store).await;
    patience::all(store).await;
    places::all(store).await;
    bans::all(store).await;
    passes::all(store).await;
}
