//! The part of lockgate that reads what a stranger or the author of a rule wrote, for the fuzz
//! targets: the gateway's own files, under the gateway's name.
//!
//! Only the pure modules are here. Their few crates build in a minute, where the whole gateway takes
//! minutes; `tests/it/tidy.rs` keeps them free of the rest.

extern crate self as lockgate;

pub mod checks;

#[path = "../../src"]
mod gateway {
    pub mod clock;
    pub mod expr;
    pub mod facts;
    pub mod fingerprint;
}

pub use gateway::{clock, expr, facts, fingerprint};
