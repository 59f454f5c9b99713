//! Gateways that share counters in async mode: how exact a limit is, what reaches the other gateways, and outages.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::fleet_gateway::{FleetConfig, FleetGateway, avoid_the_end_of_the_day, rule, unlimited};
use super::server::TestServer;
use crate::harness::{Client, wait_until};

const LIMIT: usize = 300;

const ALGORITHMS: &[(&str, &str)] = &[
    ("sliding_window", ""),
    ("slices", "slices = 60\n"),
    ("fixed_window", "algorithm = \"fixed_window\"\n"),
    ("token_bucket", "algorithm = \"token_bucket\"\n"),
    ("gcra", "algorithm = \"gcra\"\n"),
];

/// The longest time from a decision to the merge of its report, on a busy machine: δ. The goal is 5 ms.
const REPORT_TIME: Duration = Duration::from_millis(60);

const UNAVAILABLE: &str = "WARN  store unavailable";

fn config(server: &TestServer, rules: &str) -> FleetConfig {
    FleetConfig::new(&server.url(), rules).store("mode = \"async\"\ntimeout = \"500ms\"")
}

fn limited(name: &str, lines: &str) -> String {
    rule(
        name,
        &format!("limit = {LIMIT}\nperiod = \"24h\"\nheaders = \"none\"\n{lines}"),
    )
}

/// Starts gateways and waits until each knows the others.
fn fleet_of(size: usize, config: &FleetConfig, server: &TestServer) -> Vec<FleetGateway> {
    let fleet: Vec<_> = (0..size).map(|_| config.start()).collect();
    wait_until("the fleet is complete", || {
        server.command::<usize>("ZCARD lockgate:1:{fleet}nodes") == size
    });
    // Every node reads the number of nodes with its next exchange.
    thread::sleep(Duration::from_millis(300));
    fleet
}

/// Sends requests on four connections to each gateway, with a pause after each. Returns how many were admitted, and how
/// many were sent per second.
fn load(fleet: &[FleetGateway], path: &str, per_connection: usize) -> (usize, f64) {
    let admitted = AtomicUsize::new(0);
    let addresses: Vec<SocketAddr> = fleet.iter().map(|g| g.process.address(0)).collect();
    let connections = 4 * addresses.len();
    let began = Instant::now();
    thread::scope(|scope| {
        for address in addresses.iter().cycle().take(connections) {
            scope.spawn(|| {
                let mut wire = Client::plain(*address).connect();
                for _ in 0..per_connection {
                    let is_admitted = wire.get(path).status == 200;
                    admitted.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    let rate = (connections * per_connection) as f64 / began.elapsed().as_secs_f64();
    (admitted.into_inner(), rate)
}

/// The bound of docs/fleet.md for cost 1: `min(N, R·T_b) + R·δ + 1 + N·⌊φL/N⌋`.
fn bound(nodes: usize, rate: f64) -> usize {
    let unseen = nodes * (LIMIT / 5 / nodes);
    nodes + (rate * REPORT_TIME.as_secs_f64()) as usize + 1 + unseen
}

#[test]
fn three_gateways_exceed_a_limit_by_no_more_than_the_bound() {
    avoid_the_end_of_the_day();
    let server = TestServer::start(&[]);
    let rules = ALGORITHMS.iter().map(|(name, lines)| limited(name, lines));
    let config = config(&server, &rules.collect::<String>());
    let fleet = fleet_of(3, &config, &server);
    for (name, _) in ALGORITHMS {
        // Alone, the three gateways would admit 900 of 1,200.
        let (admitted, rate) = load(&fleet, &format!("/{name}"), 100);
        let most = LIMIT + bound(3, rate);
        println!("{name}: {admitted} of {LIMIT} at {rate:.0}/s, at most {most}");
        assert!(
            (LIMIT - LIMIT / 20..=most).contains(&admitted),
            "{name}: {admitted}, at most {most}"
        );
    }
    for gateway in &fleet {
        assert_eq!(gateway.state(), "ok");
        assert_eq!(gateway.all_errors(), 0.0);
    }
}

#[test]
fn a_ban_reaches_all_gateways_within_one_exchange() {
    let server = TestServer::start(&[]);
    let lines = "key = ['http.request.headers[\"x-key\"]']\nlimit = 20\nperiod = \"1h\"\n\
                 duration = \"1h\"";
    let fleet = fleet_of(3, &config(&server, &rule("ban", lines)), &server);
    let send = |gateway: &FleetGateway, key: &str| {
        let client = gateway.client().header("x-key", key).get("/ban");
        client.send()
    };
    wait_until("the gateway logs that the store bans the key", || {
        assert!(matches!(send(&fleet[0], "a").status, 200 | 429));
        !fleet[0].logged("INFO  banned").is_empty()
    });
    for gateway in &fleet {
        wait_until("the gateway knows the ban", || {
            send(gateway, "a").status == 429
        });
        let wait = send(gateway, "a").header("retry-after").unwrap().to_owned();
        let wait: u32 = wait.parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
        assert_eq!(send(gateway, "b").status, 200);
    }
    // The gateway whose report started the ban logs it, and no other.
    let logged: usize = fleet.iter().map(|g| g.logged("INFO  banned").len()).sum();
    assert_eq!(logged, 1);
}

#[test]
fn the_calls_do_not_depend_on_the_request_rate() {
    let server = TestServer::start(&[]);
    let fleet = fleet_of(1, &config(&server, &unlimited()), &server);
    let calls = || {
        let series = "lockgate_store_roundtrip_seconds_count";
        fleet[0].metric(series).unwrap()
    };
    let (before, began) = (calls(), Instant::now());
    let (admitted, _) = load(&fleet, "/many", 250);
    let (made, took) = (calls() - before, began.elapsed());
    assert_eq!(admitted, 1_000);
    println!("{made} calls for 1,000 requests in {took:?}");
    // One exchange per 100 ms, and some at the edges.
    assert!(
        made <= took.as_secs_f64() * 10.0 + 5.0,
        "{made} in {took:?}"
    );
}

#[test]
fn requests_never_wait_for_a_store_that_hangs() {
    let server = TestServer::start(&[]);
    let rules = unlimited() + &rule("small", "limit = 10\nperiod = \"24h\"");
    let fleet = fleet_of(2, &config(&server, &rules), &server);
    for gateway in &fleet {
        gateway.all_are("/many", 8, 200);
    }
    let before = fleet[0].open_resources();
    server.signal("STOP");
    let began = Instant::now();
    fleet[0].all_are("/many", 50, 200);
    let took = began.elapsed();
    println!("50 requests beside a hung store took {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    for gateway in &fleet {
        gateway.goes_down("/many");
        gateway.logs(UNAVAILABLE, 1);
    }
    // Each gateway alone: half of the limit.
    assert_eq!(
        fleet[0].statuses("/small", 7),
        [vec![200; 5], vec![429; 2]].concat()
    );
    server.signal("CONT");
    for gateway in &fleet {
        gateway.recovers("/many");
        gateway.logs(UNAVAILABLE, 1);
    }
    fleet[0].leaks_nothing(before);
}

#[test]
fn gateways_in_async_mode_survive_a_killed_store() {
    let server = TestServer::start(&[]);
    let rules = unlimited()
        + &rule("warm", "limit = 20\nperiod = \"24h\"")
        + &rule(
            "closed",
            "limit = 20\nperiod = \"24h\"\non_store_failure = \"closed\"",
        )
        + &rule(
            "open",
            "limit = 20\nperiod = \"24h\"\non_store_failure = \"open\"",
        );
    let gateway = &fleet_of(1, &config(&server, &rules), &server)[0];
    gateway.all_are("/many", 8, 200);
    let before = gateway.open_resources();
    assert_eq!(gateway.statuses("/warm", 8), [200; 8]);
    let port = server.port;
    drop(server);
    gateway.goes_down("/many");
    assert_eq!(gateway.state(), "local");
    // The counter knows the eight requests: 8 + 2 = half of 20.
    assert_eq!(
        gateway.statuses("/warm", 4),
        [vec![200; 2], vec![429; 2]].concat()
    );
    assert_eq!(gateway.statuses("/closed", 3), [503; 3]);
    assert_eq!(gateway.statuses("/open", 30), [200; 30]);

    let _server = TestServer::try_start("redis-server", port, &[]).unwrap();
    gateway.recovers("/many");
    assert_eq!(gateway.statuses("/closed", 3), [200; 3]);
    gateway.logs("INFO  store connected", 2);
    gateway.leaks_nothing(before);
}

/// One rule in a fleet can be counted in the other mode, and a reload can change the mode.
#[test]
fn a_rule_and_a_reload_choose_the_mode() {
    let server = TestServer::start(&[]);
    let login = |mode: &str| {
        let lines = format!("limit = 5\nperiod = \"24h\"\nstore_mode = \"{mode}\"");
        config(&server, &(rule("login", &lines) + &unlimited()))
    };
    let fleet = fleet_of(2, &login("exact"), &server);
    let mut statuses: Vec<u16> = Vec::new();
    for _ in 0..4 {
        for gateway in &fleet {
            statuses.extend(gateway.statuses("/login", 1));
        }
    }
    assert_eq!(statuses, [vec![200; 5], vec![429; 3]].concat());
    // In async mode, a node reads the fleet's counter with its first report.
    fleet[0].process.reload(&login("async").text());
    wait_until("the gateway reads the fleet's counter", || {
        fleet[0].statuses("/login", 1) == [429]
    });
    fleet[0].process.reload(&login("exact").text());
    assert_eq!(fleet[0].statuses("/login", 1), [429]);
    assert_eq!(fleet[1].statuses("/login", 1), [429]);
}
