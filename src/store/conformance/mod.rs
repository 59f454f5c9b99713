//! The requirements of every store, one test each. Each test has a separate rule, so that all can share one
//! store.

use super::StoreHandle;

pub(super) mod administration;
mod algorithms;
mod bans;
mod counting;
mod leases;
mod plans;
mod shares;
mod waiting;

/// Runs every case.
pub(super) async fn all(store: &StoreHandle) {
    counting::all(store).await;
    algorithms::all(store).await;
    waiting::all(store).await;
    leases::all(store).await;
    bans::all(store).await;
    plans::all(store).await;
    shares::all(store).await;
}
