//! The store cannot be reached: it is down at start, or killed. What rules do then.

use std::time::{Duration, Instant};

use super::fleet_gateway::{FleetConfig, rule, unlimited};
use super::server::{TestServer, free_port};
use crate::harness::wait_until;

/// The time in which a request gets its response without the store. The goal is a millisecond.
const IMMEDIATELY: Duration = Duration::from_secs(2);

const UNAVAILABLE: &str = "WARN  store unavailable";

fn limited(name: &str, lines: &str) -> String {
    rule(name, &format!("limit = 10\nperiod = \"24h\"\n{lines}"))
}

#[test]
fn a_gateway_starts_without_its_store() {
    let port = free_port();
    let rules = limited("limited", "") + &unlimited();
    let url = format!("redis://127.0.0.1:{port}");
    let gateway = FleetConfig::new(&url, &rules)
        .store("timeout = \"500ms\"")
        .start();
    assert_eq!(gateway.admin("/readyz").status, 200);
    assert!(gateway.is_down());
    assert_eq!(gateway.state(), "local");

    // Half of the limit, immediately.
    let began = Instant::now();
    let statuses = gateway.statuses("/limited", 12);
    let took = began.elapsed();
    println!("12 requests without a store took {took:?}");
    assert!(took < IMMEDIATELY, "{took:?}");
    assert_eq!(statuses, [vec![200; 5], vec![429; 7]].concat());
    assert_eq!(gateway.errors("unavailable"), 12.0);
    gateway.logs(UNAVAILABLE, 1);

    let server = TestServer::try_start("redis-server", port, &[]).unwrap();
    gateway.recovers("/many");
    gateway.logs("INFO  store connected", 1);
    gateway.logs(UNAVAILABLE, 1);
    // The store has not counted yet.
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
    assert!(!server.keys().is_empty());
}

#[test]
fn a_gateway_survives_a_killed_store() {
    let rules = limited("limited", "") + &unlimited();
    let server = TestServer::start(&[]);
    let gateway = FleetConfig::new(&server.url(), &rules)
        .store("timeout = \"500ms\"")
        .start();
    gateway.all_are("/many", 8, 200);
    assert_eq!(gateway.state(), "ok");
    assert!(!gateway.is_down());
    let before = gateway.open_resources();
    gateway.all_are("/limited", 3, 200);

    let port = server.port;
    drop(server);
    let began = Instant::now();
    // The counters of this process know the three requests: 3 + 2 = half of 10.
    let statuses = gateway.statuses("/limited", 6);
    assert_eq!(statuses, [vec![200; 2], vec![429; 4]].concat());
    assert!(began.elapsed() < IMMEDIATELY, "{:?}", began.elapsed());
    gateway.goes_down("/many");
    assert_eq!(gateway.state(), "local");
    assert!(gateway.errors("unavailable") >= 6.0);
    gateway.logs(UNAVAILABLE, 1);

    let _server = TestServer::try_start("redis-server", port, &[]).unwrap();
    gateway.recovers("/many");
    gateway.logs("INFO  store connected", 2);
    gateway.logs(UNAVAILABLE, 1);
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
    gateway.leaks_nothing(before);
    wait_until("ten seconds have passed", || gateway.state() == "ok");
}

#[test]
fn connections_are_replaced_while_requests_arrive() {
    let server = TestServer::start(&[]);
    let gateway = FleetConfig::new(&server.url(), &unlimited()).start();
    gateway.all_are("/many", 8, 200);
    let before = gateway.open_resources();
    for _ in 0..5 {
        let closed: usize = server.command("CLIENT KILL TYPE normal SKIPME yes");
        assert!(closed >= 1);
        gateway.all_are("/many", 8, 200);
        gateway.recovers("/many");
    }
    gateway.leaks_nothing(before);
}

#[test]
fn rules_choose_what_they_do_without_a_store() {
    let url = format!("redis://127.0.0.1:{}", free_port());
    let rules = [
        limited("default", ""),
        limited("local", "on_store_failure = \"local\""),
        limited("open", "on_store_failure = \"open\""),
        limited("closed", "on_store_failure = \"closed\""),
        rule(
            "one",
            "limit = 1\nperiod = \"24h\"\non_store_failure = \"local\"",
        ),
        rule("denied", "on_store_failure = \"open\""),
    ]
    .concat();
    let paths = ["local", "open", "closed", "one", "denied"];
    let part = |admitted: usize| [vec![200; admitted], vec![429; 12 - admitted]].concat();
    for (setting, expected) in [
        ("local", part(2)),
        ("open", vec![200; 12]),
        ("closed", vec![503; 12]),
    ] {
        let store = format!("on_failure = \"{setting}\"\nlocal_fraction = 0.25");
        let gateway = FleetConfig::new(&url, &rules).store(&store).start();
        assert_eq!(gateway.state(), setting);
        assert_eq!(gateway.statuses("/default", 12), expected, "{setting}");
        // A deny rule needs no store.
        let rows = [part(2), vec![200; 12], vec![503; 12], part(1), part(0)];
        for (path, expected) in paths.iter().zip(rows) {
            let path = format!("/{path}");
            let found = gateway.statuses(&path, 12);
            assert_eq!(found, expected, "{path}");
        }
        // Other requests need no store either.
        gateway.all_are("/", 3, 200);
    }
}
