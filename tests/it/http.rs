//! HTTP from end to end: what one side says in one version, the other hears in its own.

mod bodiless;
mod expect;
mod old;
mod trailers;
mod volume;

use crate::harness::{Origin, Wire};

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
