//! The suite, on each store.

use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::all(&Store::memory(Bounds::keys(100_000))).await;
}

#[tokio::test]
async fn a_small_memory_conforms() {
    conformance::all(&Store::memory(Bounds::keys(200))).await;
}
