//! Which server is chosen.

use super::*;
use crate::upstream::balance::{Candidates, Random};
use crate::upstream::server::InFlight;
use crate::upstream::{Balance, Upstream};

fn upstream(n: u16, balance: Balance) -> Upstream {
    let registry = Registry::default();
    let server = |port| registry.server("app", SocketAddr::from(([127, 0, 0, 1], port)));
    let mut upstream = Upstream::new("app", (1..=n).map(server).collect());
    upstream.balance = balance;
    upstream
}

fn first(upstream: &Upstream, random: &Random) -> u16 {
    let mut candidates = Candidates::of(upstream, random);
    port(candidates.next().unwrap())
}

fn port(server: &Server) -> u16 {
    match server.endpoint {
        Endpoint::Tcp(address) => address.port(),
        Endpoint::Unix(_) => 0,
    }
}

#[test]
fn round_robin_takes_each_in_turn() {
    let (upstream, random) = (upstream(3, Balance::RoundRobin), Random::new());
    let turns: Vec<_> = (0..7).map(|_| first(&upstream, &random)).collect();
    assert_eq!(turns, [1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn p2c_never_takes_the_busier_of_two() {
    let (upstream, random) = (upstream(2, Balance::P2c), Random::new());
    let _busy = InFlight::begin(&upstream.servers[0]);
    assert!((0..100).all(|_| first(&upstream, &random) == 2));
}

#[test]
fn p2c_spreads_over_all_and_avoids_the_busiest() {
    let (upstream, random) = (upstream(5, Balance::P2c), Random::new());
    let _busy = InFlight::begin(&upstream.servers[2]);
    let mut seen = [0; 6];
    for _ in 0..2_000 {
        seen[usize::from(first(&upstream, &random))] += 1;
    }
    assert_eq!((seen[0], seen[3]), (0, 0));
    assert!(
        [1, 2, 4, 5].iter().all(|&port: &usize| seen[port] > 200),
        "{seen:?}"
    );
}

#[test]
fn candidates_are_three_different_servers_at_most() {
    for (n, tries) in [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)] {
        for balance in [Balance::RoundRobin, Balance::P2c] {
            let upstream = upstream(n, balance);
            let candidates = Candidates::of(&upstream, &Random::new());
            let mut ports: Vec<_> = candidates.map(|s| port(s)).collect();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), tries, "{n} {balance:?}");
        }
    }
}

#[test]
fn a_server_stays_the_same_while_it_is_configured() {
    let registry = Registry::default();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let one = registry.server("app", address);
    assert!(Arc::ptr_eq(&one, &registry.server("app", address)));
    assert!(!Arc::ptr_eq(&one, &registry.server("other", address)));
    let id = one.id();
    drop(one);
    assert_ne!(registry.server("app", address).id(), id);
    assert_eq!(&**registry.server("app", address).label(), "127.0.0.1:1");
}
