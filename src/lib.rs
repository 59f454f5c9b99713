//! lockgate: an edge gateway that counts one thing and stops another.
//!
//! The modules below stand in the order a request meets them. [`pipeline`] is the hub: it calls
//! each stage and gets a value back; no stage calls the next. `tests/it/tidy.rs` checks who may
//! import whom.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Words that every layer shares.
pub mod clock;
pub mod decision;

// The life of a request, in order.
pub mod pipeline;

pub mod listen;
pub mod tls;
pub mod trust;

pub mod fingerprint;

pub mod body;
pub mod facts;
pub mod geo;
pub mod route;

pub mod expr;
pub mod limit;

pub mod rules;
pub mod store;

pub mod action;
pub mod upstream;

pub mod observe;

// Configuration and assembly.
pub mod config;
pub mod process;
pub mod snapshot;

pub mod admin;
pub mod cli;
pub mod gateway;
pub mod signals;
pub mod systemd;
