//! Tests which server is selected.

use proptest::prelude::*;

use super::*;
use crate::upstream::BalancePolicy;
use crate::upstream::balance::{BalanceState, SmallRng};
use crate::upstream::server::ServerInFlight;
use crate::upstream::server_health::Eligibility;

/// Servers at the ports 1, 2, … with these weights.
fn weighted(weights: &[u32], balance: BalancePolicy) -> Upstream {
    upstream(
        (1..)
            .zip(weights)
            .map(|(port, &weight)| (port, weight, false)),
        balance,
    )
}

fn upstream(
    servers: impl IntoIterator<Item = (u16, u32, bool)>,
    balance: BalancePolicy,
) -> Upstream {
    let place = |(port, weight, backup)| ServerSpec {
        weight,
        backup,
        ..place(SocketAddr::from(([127, 0, 0, 1], port)))
    };
    let places = servers.into_iter().map(place).collect();
    let mut upstream = Upstream::new("app", places, &ServerRegistry::default());
    upstream.balance = balance;
    upstream
}

/// Selects repeatedly with `key`.
struct Choice<'a> {
    upstream: &'a Upstream,
    random: SmallRng,
    clock: Clock,
    key: u64,
}

impl<'a> Choice<'a> {
    fn of(upstream: &'a Upstream) -> Self {
        Self {
            upstream,
            random: SmallRng::new(),
            clock: Clock::System,
            key: 0,
        }
    }

    fn chooser(&self) -> BalanceState<'_> {
        BalanceState {
            upstream: self.upstream,
            key: self.key,
            random: &self.random,
            clock: &self.clock,
        }
    }

    fn first(&self) -> u16 {
        port(self.chooser().first().unwrap().in_flight.server())
    }

    /// Returns how often each port is selected in `n` turns.
    fn shares(&self, n: usize) -> Vec<usize> {
        let mut seen = vec![0; self.upstream.servers().len()];
        for _ in 0..n {
            seen[usize::from(self.first()) - 1] += 1;
        }
        seen
    }

    fn by_key(&mut self, key: u64) -> u16 {
        self.key = key;
        self.first()
    }
}

fn port(server: &UpstreamServer) -> u16 {
    match server.endpoint {
        ServerEndpoint::Tcp(address) => address.port(),
        ServerEndpoint::Unix(_) => 0,
    }
}

const ALL: [BalancePolicy; 4] = [
    BalancePolicy::RoundRobin,
    BalancePolicy::P2c,
    BalancePolicy::LeastRequests,
    BalancePolicy::Hash,
];

#[test]
fn round_robin_uses_each_server_in_turn() {
    let upstream = weighted(&[1, 1, 1], BalancePolicy::RoundRobin);
    let choice = Choice::of(&upstream);
    let turns: Vec<_> = (0..7).map(|_| choice.first()).collect();
    assert_eq!(turns, [1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn round_robin_with_weights_is_smooth() {
    for (weights, order) in [
        ([5, 1, 1], [1, 1, 2, 1, 3, 1, 1]),
        ([2, 2, 2], [1, 2, 3, 1, 2, 3, 1]),
        ([20, 10, 10], [1, 2, 3, 1, 1, 2, 3]),
    ] {
        let upstream = weighted(&weights, BalancePolicy::RoundRobin);
        let choice = Choice::of(&upstream);
        let turns: Vec<_> = (0..7).map(|_| choice.first()).collect();
        assert_eq!(turns, order, "{weights:?}");
    }
}

#[test]
fn p2c_never_chooses_the_busier_of_two() {
    let upstream = weighted(&[1, 1], BalancePolicy::P2c);
    let _busy = ServerInFlight::begin(&upstream.servers()[0]);
    assert_eq!(Choice::of(&upstream).shares(100), [0, 100]);
}

#[test]
fn p2c_uses_all_servers_except_the_busiest() {
    let upstream = weighted(&[1; 5], BalancePolicy::P2c);
    let _busy = ServerInFlight::begin(&upstream.servers()[2]);
    let seen = Choice::of(&upstream).shares(2_000);
    assert_eq!(seen[2], 0);
    assert!([0, 1, 3, 4].iter().all(|&at| seen[at] > 200), "{seen:?}");
}

#[test]
fn without_requests_in_flight_weights_are_shares() {
    for balance in [
        BalancePolicy::P2c,
        BalancePolicy::LeastRequests,
        BalancePolicy::RoundRobin,
    ] {
        let upstream = weighted(&[3, 1], balance);
        let seen = Choice::of(&upstream).shares(4_000);
        assert!((2_700..3_300).contains(&seen[0]), "{balance:?}: {seen:?}");
    }
}

#[test]
fn a_heavier_server_carries_more_at_once() {
    for balance in [BalancePolicy::P2c, BalancePolicy::LeastRequests] {
        let upstream = weighted(&[3, 1], balance);
        let choice = Choice::of(&upstream);
        let held: Vec<_> = (0..40).map(|_| choice.chooser().first().unwrap()).collect();
        let on_first = upstream.servers()[0].in_flight();
        assert!(
            (29..=31).contains(&on_first),
            "{balance:?}: {on_first} of {}",
            held.len()
        );
    }
}

#[test]
fn least_requests_finds_the_one_idle_server() {
    let upstream = weighted(&[1; 9], BalancePolicy::LeastRequests);
    let servers = upstream.servers();
    let busy = servers.iter().filter(|server| port(server) != 7);
    let _busy: Vec<_> = busy.map(ServerInFlight::begin).collect();
    assert_eq!(Choice::of(&upstream).shares(20)[6], 20);
}

#[test]
fn backups_are_used_only_if_no_other_server_is_eligible() {
    for balance in ALL {
        let mut upstream = upstream([(1, 1, true), (2, 1, false), (3, 9, true)], balance);
        upstream.breaker = Some(breaker(1));
        let choice = Choice::of(&upstream);
        assert_eq!(choice.shares(50), [0, 50, 0], "{balance:?}");
        let primary = &upstream.servers()[0];
        assert_eq!(port(primary), 2);
        open(&upstream, primary);
        assert_eq!(choice.shares(50)[1], 0, "{balance:?}");
    }
}

#[test]
fn no_server_is_eligible_when_every_circuit_is_open() {
    for balance in ALL {
        let mut upstream = weighted(&[1, 1], balance);
        upstream.breaker = Some(breaker(1));
        for server in upstream.servers() {
            open(&upstream, &server);
        }
        let choice = Choice::of(&upstream);
        let time = choice.chooser().first().unwrap_err();
        assert!(time <= Duration::from_secs(5) && time > Duration::from_secs(4));
    }
    let none = weighted(&[], BalancePolicy::P2c);
    let none = Choice::of(&none).chooser().first().unwrap_err();
    assert_eq!(none, Duration::from_secs(10));
}

#[test]
fn the_remaining_servers_share_requests_by_weight() {
    for balance in [
        BalancePolicy::RoundRobin,
        BalancePolicy::P2c,
        BalancePolicy::LeastRequests,
    ] {
        let mut upstream = weighted(&[1, 3, 5, 1], balance);
        upstream.breaker = Some(breaker(1));
        open(&upstream, &upstream.servers()[2]);
        let seen = Choice::of(&upstream).shares(5_000);
        assert_eq!(seen[2], 0);
        assert!((2_700..3_300).contains(&seen[1]), "{balance:?}: {seen:?}");
        assert!((800..1_200).contains(&seen[3]), "{balance:?}: {seen:?}");
    }
}

#[test]
fn a_retry_chooses_another_server() {
    for balance in ALL {
        let upstream = weighted(&[1, 1, 1], balance);
        let choice = Choice::of(&upstream);
        let ids: Vec<_> = upstream.servers().iter().map(|s| s.id()).collect();
        for _ in 0..20 {
            let other = choice.chooser().other(&ids[..2], Eligibility::Yes).unwrap();
            assert_eq!(other.in_flight.server().id(), ids[2]);
        }
        assert!(
            choice
                .chooser()
                .other(&ids, Eligibility::Reluctant)
                .is_none()
        );
    }
}

#[test]
fn a_server_keeps_its_identity_while_it_is_configured() {
    let registry = ServerRegistry::default();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let server = |upstream| registry.server(upstream, &address.to_string(), address.into());
    let one = server("app");
    assert!(Arc::ptr_eq(&one, &server("app")));
    assert!(!Arc::ptr_eq(&one, &server("other")));
    let id = one.id();
    drop(one);
    assert_ne!(server("app").id(), id);
    assert_eq!(&**server("app").label(), "127.0.0.1:1");
}

fn breaker(failures: u32) -> crate::upstream::BreakerPolicy {
    crate::upstream::BreakerPolicy {
        failures,
        within: Duration::from_secs(10),
        open_for: Duration::from_secs(5),
    }
}

fn open(upstream: &Upstream, server: &UpstreamServer) {
    let now = Clock::System.now();
    let breaker = upstream.breaker.as_ref();
    server.health.failed(false, now, breaker, || false);
}

/// The ports of `servers`, each with a weight from its port.
fn hashed(ports: &[u16], weighted: bool) -> Upstream {
    let weight = |port: u16| if weighted { u32::from(port % 3) + 1 } else { 1 };
    let servers = ports.iter().map(|&port| (port, weight(port), false));
    upstream(servers, BalancePolicy::Hash)
}

proptest! {
    /// A new server takes its share from all others and moves no keys between them. A removed server leaves the
    /// keys of the others unchanged.
    #[test]
    fn adding_or_removing_a_server_moves_only_its_share(
        ports in proptest::collection::hash_set(1..60_000u16, 2..12),
        heavy in any::<bool>(),
        start in any::<u64>(),
    ) {
        let ports: Vec<_> = ports.into_iter().collect();
        let (&newcomer, before) = ports.split_last().unwrap();
        let (few, many) = (hashed(before, heavy), hashed(&ports, heavy));
        let (mut few, mut many) = (Choice::of(&few), Choice::of(&many));
        for key in (0..400).map(|i| start.wrapping_add(i)) {
            let (old, new) = (few.by_key(key), many.by_key(key));
            prop_assert!(new == old || new == newcomer, "{key}: {old} to {new}");
        }
    }

    /// The order in the file does not affect which server gets a key.
    #[test]
    fn the_order_of_servers_does_not_move_keys(
        ports in proptest::collection::hash_set(1..60_000u16, 2..12),
        key in any::<u64>(),
    ) {
        let mut ports: Vec<_> = ports.into_iter().collect();
        let forward = hashed(&ports, true);
        ports.reverse();
        let backward = hashed(&ports, true);
        prop_assert_eq!(Choice::of(&forward).by_key(key), Choice::of(&backward).by_key(key));
    }
}

#[test]
fn keys_are_distributed_by_weight() {
    let upstream = weighted(&[1, 2, 5], BalancePolicy::Hash);
    let mut choice = Choice::of(&upstream);
    let mut seen = [0; 3];
    for key in 0..8_000 {
        seen[usize::from(choice.by_key(key)) - 1] += 1;
    }
    for (share, weight) in seen.into_iter().zip([1_000, 2_000, 5_000]) {
        assert!(
            (weight * 8 / 10..weight * 12 / 10).contains(&share),
            "{seen:?}"
        );
    }
}

#[test]
fn a_key_moves_while_its_server_is_ejected_and_then_returns() {
    let mut upstream = weighted(&[1; 4], BalancePolicy::Hash);
    upstream.breaker = Some(breaker(1));
    let mut choice = Choice::of(&upstream);
    let before: Vec<_> = (0..200).map(|key| choice.by_key(key)).collect();
    let out = &upstream.servers()[1];
    open(&upstream, out);
    for (key, &old) in (0..).zip(&before) {
        let new = choice.by_key(key);
        assert!(
            new != 2 && (old == 2 || new == old),
            "{key}: {old} to {new}"
        );
    }
    out.health.succeeded(true);
    let after: Vec<_> = (0..200).map(|key| choice.by_key(key)).collect();
    assert_eq!(before, after);
}
