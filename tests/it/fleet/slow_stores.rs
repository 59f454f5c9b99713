//! The store does not reply in time: a stopped process, a slow network, a half-open connection.

use std::thread;
use std::time::{Duration, Instant};

use super::fleet_gateway::{FleetConfig, FleetGateway, rule, unlimited};
use super::proxy::FaultProxy;
use super::server::TestServer;

/// The time that requests in flight may take: one timeout of 100 ms, on a busy machine.
const ONE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that twenty requests may take if none of them waits for the store. With a timeout each, they would take
/// ten seconds.
const NO_TIMEOUT: Duration = Duration::from_secs(4);

const UNAVAILABLE: &str = "WARN  store unavailable";

fn gateway(url: &str) -> FleetGateway {
    let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
    let config = FleetConfig::new(url, &rules).store("timeout = \"500ms\"");
    let gateway = config.start();
    gateway.all_are("/many", 8, 200);
    gateway
}

/// Sends requests at once. Returns the time until all have their response.
fn in_flight(gateway: &FleetGateway, count: usize) -> Duration {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| gateway.all_are("/many", 1, 200));
        }
    });
    began.elapsed()
}

/// Requests in flight pay one timeout, later ones none, and the log says once why.
#[track_caller]
fn store_hangs(gateway: &FleetGateway) {
    let took = in_flight(gateway, 24);
    println!("requests in flight took {took:?}");
    assert!(took < ONE_TIMEOUT, "{took:?}");
    gateway.goes_down("/many");
    let began = Instant::now();
    gateway.all_are("/many", 20, 200);
    let took = began.elapsed();
    println!("20 later requests took {took:?}");
    assert!(took < NO_TIMEOUT, "{took:?}");
    assert!(gateway.errors("timeout") >= 3.0);
    assert_eq!(gateway.state(), "local");
    gateway.logs(UNAVAILABLE, 1);
    let lines = gateway.logged(UNAVAILABLE);
    assert!(lines[0].contains("does not reply in time"), "{lines:?}");
}

#[track_caller]
fn store_is_back(gateway: &FleetGateway) {
    gateway.recovers("/many");
    gateway.logs(UNAVAILABLE, 1);
    gateway.logs("INFO  store connected", 2);
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
}

#[test]
fn a_stopped_store_costs_one_timeout() {
    let server = TestServer::start(&[]);
    let gateway = gateway(&server.url());
    let before = gateway.open_resources();
    server.signal("STOP");
    store_hangs(&gateway);
    // Without the store: half of the limit.
    let statuses = gateway.statuses("/limited", 6);
    assert_eq!(statuses, [vec![200; 5], vec![429]].concat());
    server.signal("CONT");
    store_is_back(&gateway);
    gateway.leaks_nothing(before);
}

/// The server executes the calls of a connection after it was stopped. Their deadline has passed.
#[test]
fn calls_that_arrive_too_late_do_not_count() {
    let server = TestServer::start(&[]);
    let gateway = gateway(&server.url());
    server.signal("STOP");
    assert_eq!(gateway.statuses("/limited", 1), [200]);
    thread::sleep(Duration::from_millis(100));
    server.signal("CONT");
    gateway.recovers("/many");
    let statuses = gateway.statuses("/limited", 11);
    assert_eq!(statuses, [vec![200; 10], vec![429]].concat());
}

#[test]
fn a_store_behind_a_slow_network_is_not_used() {
    let server = TestServer::start(&[]);
    let proxy = FaultProxy::before(server.port);
    let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
    let config = FleetConfig::new(&proxy.url(), &rules).store("timeout = \"100ms\"");
    let gateway = config.start();
    gateway.all_are("/many", 8, 200);
    let before = gateway.open_resources();
    proxy.delay(Duration::from_millis(200));
    store_hangs(&gateway);
    // It stays unused: a connection that is too slow for a request is no recovery.
    thread::sleep(Duration::from_secs(2));
    gateway.logs(UNAVAILABLE, 1);
    assert!(gateway.is_down());
    proxy.delay(Duration::ZERO);
    store_is_back(&gateway);
    gateway.leaks_nothing(before);
}

#[test]
fn a_half_open_connection_is_replaced() {
    let server = TestServer::start(&[]);
    let proxy = FaultProxy::before(server.port);
    let gateway = gateway(&proxy.url());
    let (before, connections) = (gateway.open_resources(), proxy.connections());
    proxy.swallow(true);
    store_hangs(&gateway);
    proxy.swallow(false);
    store_is_back(&gateway);
    assert!(proxy.connections() > connections);
    gateway.leaks_nothing(before);
}

/// After one timeout, the connection stays in use.
#[test]
fn a_single_timeout_is_no_outage() {
    let server = TestServer::start(&[]);
    let proxy = FaultProxy::before(server.port);
    let gateway = gateway(&proxy.url());
    let connections = proxy.connections();
    proxy.delay(Duration::from_millis(800));
    gateway.all_are("/many", 1, 200);
    proxy.delay(Duration::ZERO);
    assert_eq!(gateway.errors("timeout"), 1.0);
    thread::sleep(Duration::from_millis(500));
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
    assert_eq!(gateway.errors("timeout"), 1.0);
    assert_eq!(gateway.state(), "degraded");
    assert!(!gateway.is_down());
    assert_eq!(proxy.connections(), connections);
    assert_eq!(gateway.logged(UNAVAILABLE).len(), 0);
}
