//! Tests of a whole gateway over real sockets, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod actions;
mod activity;
mod admin;
mod bodies;
mod browser;
mod challenge;
mod check;
mod client_certs;
mod control;
mod crowd;
mod docs;
mod drain;
mod environment;
mod explain;
mod fleet;
mod floods;
mod fuzz;
mod geo;
mod h2spec;
mod handover;
mod harness;
mod hash;
mod health_checks;
mod hostile;
mod http;
mod imitate;
mod import;
mod known_clients;
mod language;
mod listeners;
mod losses;
mod model;
mod monitoring;
mod observe;
mod origin_host;
mod patience;
mod persist;
mod presets;
mod process;
mod proxy;
mod proxy_protocol;
mod reload;
mod scenario;
mod schema;
mod service;
mod signals;
mod tidy;
mod tls;
mod tour;
mod upstreams;
