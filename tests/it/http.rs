//! HTTP from end to end: what one side says in one version, the other hears in its own.

mod bodiless;
mod cut;
mod early;
mod expect;
mod goaway;
mod grpc;
mod h2_origin;
mod linger;
mod old;
mod secure;
mod trailers;
mod volume;
mod websocket;
mod words;

use crate::harness::{Origin, Running, Wire};

/// An origin that reads a head, tells what it read and answers with these bytes, each time.
fn answering(answer: &'static [u8]) -> Origin {
    Origin::scripted(move |stream| {
        let mut wire = Wire::new(stream);
        while wire.try_head().is_some() {
            if wire.try_send(answer).is_err() {
                return;
            }
        }
    })
}

/// A gateway before `origin`, with more keys for its upstream.
fn before(origin: Origin, keys: &str) -> Running {
    Running::before(origin, &config(keys))
}

/// The configuration of a gateway with more keys for its upstream.
fn config(keys: &str) -> String {
    format!(
        r#"
        [server]
        workers = 1
        drain_timeout = "5s"
        [log]
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[upstreams]]
        name = "app"
        servers = ["{{origin}}"]
        {keys}
        [[routes]]
        upstream = "app"
        "#
    )
}
