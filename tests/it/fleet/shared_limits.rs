//! Three gateways share one limit exactly, and bans too.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;

use super::fleet_gateway::{FleetConfig, FleetGateway, avoid_the_end_of_the_day, rule};
use super::server::TestServer;
use crate::harness::{Client, Origin, Wire, wait_until};

const LIMIT: usize = 40;

/// Algorithms whose counters do not change by themselves during a test.
const ALGORITHMS: &[(&str, &str)] = &[
    ("sliding_window", ""),
    ("slices", "slices = 60\n"),
    ("fixed_window", "algorithm = \"fixed_window\"\n"),
    ("sliding_log", "algorithm = \"sliding_log\"\n"),
    ("token_bucket", "algorithm = \"token_bucket\"\n"),
    ("gcra", "algorithm = \"gcra\"\n"),
];

/// An origin that holds requests until it is opened.
struct HoldingOrigin {
    origin: Origin,
    in_flight: Arc<AtomicUsize>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

fn three_gateways(config: &FleetConfig) -> Vec<FleetGateway> {
    (0..3).map(|_| config.start()).collect()
}

fn addresses(fleet: &[FleetGateway]) -> Vec<SocketAddr> {
    let address = |gateway: &FleetGateway| gateway.process.address(0);
    fleet.iter().map(address).collect()
}

/// Sends requests on four connections to each gateway at once. Returns the numbers of 200 and 429.
fn load(addresses: &[SocketAddr], path: &str, per_connection: usize) -> (usize, usize) {
    let (admitted, limited) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for address in addresses.iter().cycle().take(4 * addresses.len()) {
            scope.spawn(|| {
                let mut wire = Client::plain(*address).connect();
                for _ in 0..per_connection {
                    match wire.get(path).status {
                        200 => admitted.fetch_add(1, Ordering::Relaxed),
                        429 => limited.fetch_add(1, Ordering::Relaxed),
                        status => panic!("{path}: {status}"),
                    };
                }
            });
        }
    });
    (admitted.into_inner(), limited.into_inner())
}

#[test]
fn three_gateways_admit_exactly_the_limit_with_every_algorithm() {
    avoid_the_end_of_the_day();
    let server = TestServer::start(&[]);
    let rules = ALGORITHMS.iter().map(|(name, lines)| {
        rule(
            name,
            &format!("{lines}limit = {LIMIT}\nperiod = \"24h\"\nheaders = \"none\""),
        )
    });
    let config = FleetConfig::new(&server.url(), &rules.collect::<String>()).strict();
    let fleet = three_gateways(&config);
    let addresses = addresses(&fleet);
    for (name, _) in ALGORITHMS {
        let (admitted, limited) = load(&addresses, &format!("/{name}"), 8);
        assert_eq!((admitted, limited), (LIMIT, 12 * 8 - LIMIT), "{name}");
    }
    for gateway in &fleet {
        assert_eq!(gateway.state(), "ok");
        assert_eq!(gateway.all_errors(), 0.0);
    }
}

/// A leaky bucket of one request per six minutes: nothing leaves the queue during the test.
#[test]
fn three_gateways_share_the_queue_of_a_leaky_bucket() {
    let server = TestServer::start(&[]);
    let lines = "algorithm = \"leaky_bucket\"\nlimit = 10\nperiod = \"1h\"\nqueue = 5\n\
                 max_delay = \"1h\"";
    let config = FleetConfig::new(&server.url(), &rule("queue", lines)).strict();
    let fleet = three_gateways(&config);
    let (sender, responses) = mpsc::channel();
    for address in addresses(&fleet).into_iter().cycle().take(24) {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut wire = Client::plain(address).connect();
            wire.send(b"GET /queue HTTP/1.1\r\nhost: example.com\r\n\r\n");
            // The connection of a request that waits ends with its gateway.
            let head = wire.try_head().unwrap_or_default();
            _ = sender.send(crate::harness::Answer::parse(&head).status);
        });
    }
    let statuses: Vec<u16> = responses.iter().take(24 - 5).collect();
    let count = |status| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((count(200), count(429)), (1, 18), "{statuses:?}");
    let held = |gateway: &FleetGateway| gateway.metric("lockgate_held_requests").unwrap();
    assert_eq!(fleet.iter().map(held).sum::<f64>(), 5.0);
    assert!(responses.try_recv().is_err());
}

#[test]
fn three_gateways_share_the_slots_of_a_concurrency_rule() {
    let server = TestServer::start(&[]);
    let held = HoldingOrigin::start();
    let lines = "algorithm = \"concurrency\"\nlimit = 7";
    let config = FleetConfig::new(&server.url(), &rule("slow", lines)).strict();
    let fleet = three_gateways(&config.upstream("/slow", held.origin.address));
    let addresses = addresses(&fleet);
    let requests = |count: usize| {
        let targets: Vec<_> = addresses.iter().copied().cycle().take(count).collect();
        let send = |address| thread::spawn(move || Client::plain(address).get("/slow").send());
        targets.into_iter().map(send).collect::<Vec<_>>()
    };
    let first = requests(24);
    wait_until("seven requests are in flight", || {
        let refused = first.iter().filter(|request| request.is_finished()).count();
        held.in_flight.load(Ordering::SeqCst) == 7 && refused == 24 - 7
    });
    held.open();
    let mut statuses: Vec<u16> = first
        .into_iter()
        .map(|request| request.join().unwrap().status)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 7], vec![429; 17]].concat());
    wait_until("the slots are free", || {
        let keys = server.keys();
        let leases = keys.iter().find(|key| key.ends_with(":leases"));
        leases.is_none_or(|key| server.command::<usize>(&format!("ZCARD {key}")) == 0)
    });
    for request in requests(7) {
        assert_eq!(request.join().unwrap().status, 200);
    }
}

#[test]
fn a_ban_of_one_gateway_applies_on_the_others() {
    let server = TestServer::start(&[]);
    let lines = "key = ['http.request.headers[\"x-key\"]']\nlimit = 2\nperiod = \"1h\"\n\
                 duration = \"1h\"";
    let fleet = three_gateways(&FleetConfig::new(&server.url(), &rule("ban", lines)).strict());
    let send = |gateway: &FleetGateway, key: &str| {
        let client = gateway.client().header("x-key", key).get("/ban");
        client.send()
    };
    // The third request is counted by a gateway that has seen only one of them.
    assert_eq!(send(&fleet[0], "a").status, 200);
    assert_eq!(send(&fleet[1], "a").status, 200);
    assert_eq!(send(&fleet[2], "a").status, 429);
    for gateway in &fleet {
        for _ in 0..3 {
            let refused = send(gateway, "a");
            assert_eq!(refused.status, 429);
            let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
            assert!((3500..=3600).contains(&wait), "{wait}");
        }
        assert_eq!(gateway.all_errors(), 0.0);
    }
    assert_eq!(send(&fleet[0], "b").status, 200);
    assert_eq!(send(&fleet[1], "c").status, 200);
}

/// Every gateway knows the ban after its first request. Further ones cost the store nothing.
#[test]
fn a_known_ban_needs_no_call() {
    let server = TestServer::start(&[]);
    let lines = "limit = 1\nperiod = \"1h\"\nduration = \"1h\"";
    let gateway = FleetConfig::new(&server.url(), &rule("ban", lines)).strict();
    // No heartbeat during the test.
    let gateway = gateway.store("sync_interval = \"10s\"").start();
    gateway.client().get("/ban").times(2).then(200, 429);
    let calls = || {
        let series = "lockgate_store_roundtrip_seconds_count";
        gateway.metric(series).unwrap()
    };
    // The ban is added to the list of the fleet's bans behind the response.
    wait_until("no call follows the first requests", || {
        let before = calls();
        std::thread::sleep(std::time::Duration::from_millis(500));
        calls() == before
    });
    let before = calls();
    gateway.all_are("/ban", 20, 429);
    assert_eq!(calls(), before);
}

/// A banned request takes no slot of an earlier rule, so nothing is left for requests that are not banned.
#[test]
fn requests_of_a_banned_client_leave_no_slots_behind() {
    let server = TestServer::start(&[]);
    let key = "key = ['http.request.headers[\"x-key\"]']";
    let rules = format!(
        "[[rules]]\nname = \"slots\"\n{key}\nalgorithm = \"concurrency\"\nlimit = 3\n\
         mitigate = 'http.request.uri.path in {{\"/ban\" \"/slots\"}}'\n"
    ) + &rule(
        "ban",
        &format!("{key}\nlimit = 5\nperiod = \"1h\"\nduration = \"1h\""),
    );
    let fleet = three_gateways(&FleetConfig::new(&server.url(), &rules).strict());
    let client = |gateway: &FleetGateway| gateway.client().header("x-key", "a");
    for number in 0..40 {
        let response = client(&fleet[number % 2]).get("/ban").send();
        if number < 5 {
            assert_eq!(response.status, 200);
        } else {
            let wait: u32 = response.header("retry-after").unwrap().parse().unwrap();
            assert!(wait > 60, "the ban decides, and not the slots: {wait}");
        }
        if number % 8 == 7 {
            server.command::<()>("SCRIPT FLUSH");
        }
    }
    for gateway in &fleet {
        wait_until("the slots are free", || {
            client(gateway).get("/slots").send().status == 200
        });
    }
    wait_until("no slot is taken", || {
        let keys = server.keys();
        let leases = keys.iter().filter(|key| key.ends_with(":leases"));
        let count = |key: &String| server.command::<usize>(&format!("ZCARD {key}"));
        leases.map(count).sum::<usize>() == 0
    });
}

// === impl HoldingOrigin ===

impl HoldingOrigin {
    fn start() -> Self {
        let (in_flight, gate) = <(Arc<AtomicUsize>, Arc<(Mutex<bool>, Condvar)>)>::default();
        let (counted, opened) = (in_flight.clone(), gate.clone());
        let origin = Origin::scripted(move |stream: TcpStream| {
            let mut wire = Wire::new(stream);
            while wire.try_head().is_some() {
                counted.fetch_add(1, Ordering::SeqCst);
                let (is_open, changed) = &*opened;
                let waited = changed.wait_while(is_open.lock().unwrap(), |open| !*open);
                drop(waited.unwrap());
                _ = wire.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Self {
            origin,
            in_flight,
            gate,
        }
    }

    /// Responds to all requests from now on.
    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}
