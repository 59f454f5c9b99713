//! A WebSocket after its handshake: bytes both ways until one side ends. It holds no
//! configuration.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::upstream::Tunnel;

/// Joins a client and an origin on this core.
pub fn spawn(client: OnUpgrade, mut origin: Tunnel) {
    tokio::task::spawn_local(async move {
        // A client that left before the switch needs no tunnel; one that breaks off later is an
        // ordinary end.
        if let Ok(client) = client.await {
            let mut client = TokioIo::new(client);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut origin).await;
        }
    });
}
