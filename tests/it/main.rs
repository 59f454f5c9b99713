//! Tests of a whole gateway over real sockets, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod harness;
mod hostile;
mod observe;
mod process;
mod proxy;
mod reload;
mod rules;
mod tidy;
mod tls;
