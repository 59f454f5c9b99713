//! The store replies, but not as it should: errors, a full memory, a replica, garbage.

use std::thread;
use std::time::Duration;

use super::fake_server::FakeServer;
use super::fleet_gateway::{FleetConfig, FleetGateway, rule, unlimited};
use super::proxy::FaultProxy;
use super::server::TestServer;
use super::server_commands::run;
use crate::harness::{Origin, wait_until};

const UNAVAILABLE: &str = "WARN  store unavailable";

fn gateway(url: &str) -> FleetGateway {
    // Short enough for replies that never end, long enough for a busy machine.
    let timeout = "timeout = \"300ms\"";
    let rules = unlimited() + &rule("limited", "limit = 10\nperiod = \"24h\"");
    let config = FleetConfig::new(url, &rules).store(timeout);
    let gateway = config.start();
    gateway.all_are("/many", 8, 200);
    gateway
}

/// The log lines with a warning or an error.
fn complaints(gateway: &FleetGateway) -> Vec<String> {
    [gateway.logged("WARN "), gateway.logged("ERROR ")].concat()
}

#[test]
fn a_flushed_script_is_loaded_again_without_a_word() {
    let server = TestServer::start(&[]);
    let gateway = gateway(&server.url());
    let before = complaints(&gateway);
    for round in 1..=10 {
        server.command::<()>("SCRIPT FLUSH");
        assert_eq!(gateway.statuses("/limited", 1), [200], "{round}");
    }
    server.command::<()>("SCRIPT FLUSH");
    assert_eq!(gateway.statuses("/limited", 2), [429, 429]);
    assert_eq!(complaints(&gateway), before);
    assert_eq!(gateway.all_errors(), 0.0);
    assert_eq!(gateway.state(), "ok");
}

#[test]
fn a_full_store_is_named_in_the_log() {
    let server = TestServer::start(&["--maxmemory-policy", "noeviction"]);
    let gateway = gateway(&server.url());
    let clients: Vec<String> = ids(&server);
    let mut connection = server.connect();
    let filler = format!("SET filler {}", "x".repeat(2_000_000));
    run::<()>(&mut connection, &filler).unwrap();
    run::<()>(&mut connection, "CONFIG SET maxmemory 2mb").unwrap();
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 5], vec![429; 7]].concat());
    // The exchange of the gateway can fail too.
    assert!(gateway.errors("out_of_memory") >= 12.0);
    assert_eq!(gateway.state(), "degraded");
    assert!(!gateway.is_down());
    gateway.logs_of_cores("maxmemory-policy");
    assert_eq!(gateway.logged(UNAVAILABLE).len(), 0);
    // The connections have stayed.
    let now = ids(&server);
    assert!(clients.iter().all(|id| now.contains(id)), "{now:?}");
    run::<()>(&mut connection, "DEL filler").unwrap();
    run::<()>(&mut connection, "CONFIG SET maxmemory 0").unwrap();
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
}

/// The connections of gateways.
fn ids(server: &TestServer) -> Vec<String> {
    let list: String = server.command("CLIENT LIST");
    let of_gateway = |line: &&str| line.contains("cmd=evalsha");
    let id = |line: &str| line.split(' ').next().unwrap().to_owned();
    list.lines().filter(of_gateway).map(id).collect()
}

#[test]
fn a_replica_is_not_used() {
    let server = TestServer::start(&[]);
    let master = TestServer::start(&[]);
    let gateway = gateway(&server.url());
    let before = gateway.open_resources();
    server.command::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port));
    gateway.goes_down("/many");
    assert!(gateway.errors("read_only") >= 1.0);
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 5], vec![429; 7]].concat());
    thread::sleep(Duration::from_secs(1));
    gateway.all_are("/many", 4, 200);
    gateway.logs(UNAVAILABLE, 1);
    assert!(gateway.logged(UNAVAILABLE)[0].contains("read-only"));
    server.command::<()>("REPLICAOF NO ONE");
    gateway.recovers("/many");
    gateway.logs("INFO  store connected", 2);
    let statuses = gateway.statuses("/limited", 12);
    assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat());
    gateway.leaks_nothing(before);
}

/// The connection is dropped, and a reply that makes no sense decides nothing.
#[test]
fn replies_that_make_no_sense_are_survived() {
    let server = TestServer::start(&[]);
    let nested = b"*1\r\n".repeat(1_000_000);
    let huge = b"$536870912\r\n".to_vec();
    let many = b"*2000000000\r\n:1\r\n".to_vec();
    for (name, garbage) in [
        ("text", b"garbage\r\n\xff\0\xfe".to_vec()),
        ("short", b"$3\r\nabc\r\n".to_vec()),
        ("number", b":1\r\n".to_vec()),
        (
            "wrong status",
            [b"$29\r\n", [0xff; 29].as_slice(), b"\r\n"].concat(),
        ),
        ("negative", b"$-77\r\n".to_vec()),
        ("nested", nested),
        ("huge", huge),
        ("many", many),
        ("closed", Vec::new()),
    ] {
        server.command::<()>("FLUSHALL");
        let fake = FakeServer::before(server.port);
        let gateway = gateway(&fake.url());
        let before = gateway.open_resources();
        fake.spoil(Some(garbage));
        let statuses = gateway.statuses("/limited", 12);
        assert_eq!(statuses, [vec![200; 5], vec![429; 7]].concat(), "{name}");
        gateway.goes_down("/many");
        gateway.all_are("/many", 20, 200);
        assert!(gateway.all_errors() >= 12.0, "{name}");
        assert!(gateway.logged(UNAVAILABLE).len() <= 2, "{name}");
        fake.spoil(None);
        gateway.recovers("/many");
        let statuses = gateway.statuses("/limited", 12);
        assert_eq!(statuses, [vec![200; 10], vec![429; 2]].concat(), "{name}");
        gateway.leaks_nothing(before);
        let memory = gateway.process.memory("VmHWM");
        println!("{name}: {memory} KiB at most");
        assert!(memory < 300 * 1024, "{name}: {memory} KiB");
    }
}

/// The server grants a slot, but the reply and the release get lost. Nobody renews the lease.
#[test]
fn a_lease_whose_reply_is_lost_expires() {
    let server = TestServer::start(&[]);
    let proxy = FaultProxy::before(server.port);
    let origin = Origin::start();
    let rules = unlimited() + &rule("slow", "algorithm = \"concurrency\"\nlimit = 1");
    let config = FleetConfig::new(&proxy.url(), &rules).store("timeout = \"1s\"");
    let gateway = config.upstream("/slow", origin.address).start();
    gateway.all_are("/many", 8, 200);
    proxy.swallow_replies(true);
    thread::scope(|scope| {
        scope.spawn(|| gateway.all_are("/slow", 1, 200));
        wait_until("the slot is taken", || lease(&server).is_some());
        proxy.swallow(true);
    });
    thread::sleep(Duration::from_millis(200));
    proxy.swallow_replies(false);
    proxy.swallow(false);
    server.command::<()>("CLIENT KILL TYPE normal SKIPME yes");
    // Requests on the closed connections notice it: enough of them that every core gets some.
    gateway.all_are("/many", 32, 200);
    gateway.recovers("/many");
    let (key, member, left) = lease(&server).unwrap();
    println!("the lease lasts {left} s");
    assert!((1.0..=30.0).contains(&left), "{left}");
    let expiry: i64 = server.command(&format!("PTTL {key}"));
    assert!((1..=31_000).contains(&expiry), "{expiry}");
    gateway.all_are("/slow", 2, 429);
    // As if the rest of the thirty seconds had passed.
    let mut expire = redis::cmd("ZADD");
    expire.arg(&key).arg(1).arg(&member);
    expire.exec(&mut server.connect()).unwrap();
    for _ in 0..2 {
        // A slot is released behind the response.
        wait_until("the slot is free", || gateway.statuses("/slow", 1) == [200]);
    }
}

/// The only lease: its key, its member, and the seconds until it expires.
fn lease(server: &TestServer) -> Option<(String, Vec<u8>, f64)> {
    let mut keys = server.keys().into_iter();
    let key = keys.find(|key| key.ends_with(":leases"))?;
    let leases: Vec<(Vec<u8>, f64)> = server.command(&format!("ZRANGE {key} 0 -1 WITHSCORES"));
    let (seconds, micros): (f64, f64) = server.command("TIME");
    let (member, end) = leases.into_iter().next()?;
    Some((key, member, end / 1e6 - seconds - micros / 1e6))
}
