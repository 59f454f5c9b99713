//! The suite, on each store.

use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::all(&Store::memory(100_000)).await;
}

#[tokio::test]
async fn a_small_memory_conforms() {
    conformance::all(&Store::memory(200)).await;
}
