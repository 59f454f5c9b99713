//! Gateways that share counters through Redis: the limits of a fleet, and what happens when the store fails.
//!
//! The gateways and the servers are real processes. The tests skip nothing: `redis-server` must be installed.

mod async_mode;
mod certificates;
mod clock_jumps;
mod cluster;
mod credentials;
mod fake_server;
mod fleet_gateway;
mod outages;
mod proxy;
mod sentinel;
#[path = "../../src/store/redis/tests/server.rs"]
mod server;
mod server_commands;
mod server_errors;
mod shared_limits;
mod slow_stores;
mod wrong_types;
