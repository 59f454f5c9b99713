//! Gateways that share counters through Redis: the limits of a fleet, and what happens when the store fails.
//!
//! The gateways and the servers are real processes. The tests skip nothing: `redis-server` must be installed.

mod administration;
mod async_mode;
mod certificates;
mod clearances;
mod clock_jumps;
mod cluster;
mod credentials;
mod explain;
mod fake_server;
mod fleet_gateway;
mod login_attack;
mod misconfigured;
mod outages;
mod proxy;
mod sentinel;
#[path = "../../src/store/redis/tests/server.rs"]
mod server;
mod server_commands;
mod server_errors;
mod shared_limits;
mod slow_stores;
mod test_cluster;
mod wrong_types;

pub use fleet_gateway::avoid_the_end_of_the_day;
pub(crate) use server::TestServer;
