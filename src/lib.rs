//! lockgate is an edge gateway that counts one thing and stops another.
//!
//! The modules are listed in the order in which a request passes through them. [`pipeline`] is the hub: it calls
//! each stage and gets a value back. No stage calls the next one. `tests/it/tidy.rs` enforces which module may
//! import which.
//!
//! # Glossary
//!
//! - **Rule** ([`rules::Rule`]): counts some requests and applies an action to others.
//! - **Field** ([`facts::fields`]): a named value that expressions read, such as `ip.src`.
//!   [`facts::RequestFacts`] provides the fields of a request.
//! - **Key** ([`rules::Key`]): the values that select a counter.
//! - **Limiter** ([`limit::Limiter`]): an algorithm with its parameters. It can admit, charge and peek.
//! - **Counter** ([`limit::Counter`]): the state that a rule keeps for one key.
//! - **Plan** and **step** ([`rules::Plan`], [`rules::Step`]): the counter operations of one request, in rule order.
//! - **Store** ([`store::Store`]): keeps counters and bans, and applies a plan in one call.
//! - **Decision** ([`decision::Decision`]): the outcome of rule evaluation for one request.
//! - **Engine** ([`pipeline::engine::Engine`]): the order plan → apply → decide, and settle after the response.
//! - **Action** ([`decision::Action`]): what a rule does with a request that it mitigates.
//! - **Ban** ([`store::BanEntry`]): mitigation of a key for a duration.
//! - **Shadow response** ([`action::imitate`]): a fake success that hides a mitigation.
//! - **Known client** ([`credential::KnownCookie`]): a client with a valid cookie of an earlier success.
//! - **Tick** ([`observe::activity::Tick`]): the rates of the last second, for people.
//! - **Lease** ([`store::LeaseGuard`]): a slot of a `concurrency` rule that expires unless it is renewed.
//! - **Upstream** ([`upstream::Upstream`]): a named group of origin servers with one balancing and health policy.
//! - **Blueprint** ([`config::blueprint::Blueprint`]): a checked configuration that has had no effect yet.
//! - **Snapshot** ([`snapshot::Snapshot`]): one installed configuration, immutable.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Base types that every layer uses.
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

pub mod credential;
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

// The application.
pub mod admin;
pub mod cli;
pub mod gateway;
pub mod signals;
pub mod systemd;
