//! Gateways that share counters through Redis: the limits of a fleet, and what happens when the store fails.
//!
//! The gateways and the servers are real processes. The tests skip nothing: `redis-server` must be installed.

mod fleet_gateway;
#[path = "../../src/store/redis/tests/server.rs"]
mod server;
mod server_commands;
mod shared_limits;
