//! A WebSocket after its handshake: bytes both ways until one side ends. It holds no
//! configuration.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::places::Taken;
use crate::upstream::Tunnel;

/// Joins a client and an origin on this core. The request's places are free when they part.
pub fn spawn(client: OnUpgrade, mut origin: Tunnel, places: Option<Box<Taken>>) {
    tokio::task::spawn_local(async move {
        // A client that left before the switch needs no tunnel; one that breaks off later is an
        // ordinary end.
        if let Ok(client) = client.await {
            let mut client = TokioIo::new(client);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut origin).await;
        }
        drop(places);
    });
}
