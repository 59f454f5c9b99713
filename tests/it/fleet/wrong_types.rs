//! Another program writes values of other types under the keys of the gateways.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::fleet_gateway::{FleetConfig, avoid_the_end_of_the_day, rule};
use super::server::TestServer;
use super::server_commands::run;
use crate::harness::Origin;

const LIMIT: usize = 3;

/// Rules that count to three, each with the settings of its algorithm.
const RULES: &[(&str, &str)] = &[
    ("sliding_window", ""),
    ("slices", "slices = 60"),
    ("fixed_window", "algorithm = \"fixed_window\""),
    ("sliding_log", "algorithm = \"sliding_log\""),
    ("token_bucket", "algorithm = \"token_bucket\""),
    ("gcra", "algorithm = \"gcra\""),
    ("ban", "duration = \"1h\""),
    ("log_ban", "algorithm = \"sliding_log\"\nduration = \"1h\""),
];

/// Commands that write a value of each type under the key `@`.
const VALUES: &[&str] = &[
    "RPUSH @ foreign 1 2",
    "HSET @ field value",
    "ZADD @ 1 member",
    "SADD @ member",
    "XADD @ * field value",
    "SET @ foreign",
    "SET @ \u{1}\u{2}",
];

/// Every path with its number of requests and their statuses.
fn requests() -> BTreeMap<String, Vec<u16>> {
    let names = RULES.iter().map(|(name, _)| format!("/{name}"));
    let statuses = [vec![200; LIMIT], vec![429; 2]].concat();
    let mut all: BTreeMap<_, _> = names.map(|path| (path, statuses.clone())).collect();
    all.insert("/queue".to_owned(), vec![200, 429, 429]);
    all.insert("/slow".to_owned(), vec![200; 4]);
    all
}

#[test]
fn values_of_other_types_are_replaced() {
    avoid_the_end_of_the_day();
    let server = TestServer::start(&[]);
    // Leases exist only while a request is in flight.
    let keys = Arc::new(Mutex::new(Vec::new()));
    let (found, url) = (keys.clone(), server.url());
    let origin = Origin::answering(move |_| {
        let client = redis::Client::open(url.as_str()).unwrap();
        let mut connection = client.get_connection().unwrap();
        *found.lock().unwrap() = run::<Vec<String>>(&mut connection, "KEYS lockgate:*").unwrap();
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()
    });
    let counting = RULES.iter().map(|(name, lines)| {
        let lines = format!("{lines}\nlimit = {LIMIT}\nperiod = \"24h\"");
        rule(name, &lines)
    });
    let mut rules: String = counting.collect();
    rules += &rule(
        "queue",
        "algorithm = \"leaky_bucket\"\nlimit = 1\nperiod = \"1h\"\nqueue = 0",
    );
    rules += &rule("slow", "algorithm = \"concurrency\"\nlimit = 9");
    let config = FleetConfig::new(&server.url(), &rules).strict();
    let config = config.upstream("/slow", origin.address);
    let gateway = config.start();
    let requests = requests();
    for (path, statuses) in &requests {
        assert_eq!(gateway.statuses(path, statuses.len()), *statuses, "{path}");
    }
    gateway.all_are("/slow", 1, 200);
    let mut connection = server.connect();
    let keys = keys.lock().unwrap().clone();
    // The list of bans is written behind the response.
    let is_listed = |key: &String| key.contains("{bans}");
    let (listed, mut keys): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_listed);
    // The records of all rules but `slow`, a log, the leases and the nodes. A ban has deleted the other log.
    assert_eq!(keys.len(), RULES.len() + 4, "{keys:?}");
    let is_record = |key: &&String| {
        let others = [":log", ":leases", "{fleet}nodes"];
        !others.iter().any(|end| key.ends_with(end))
    };
    let logs = keys
        .iter()
        .filter(is_record)
        .map(|key| format!("{key}:log"));
    keys.extend(logs.collect::<Vec<_>>());
    keys.extend(listed);
    drop(gateway);
    for value in VALUES {
        // A gateway that knows none of the bans.
        let gateway = config.start();
        for key in &keys {
            run::<()>(&mut connection, &format!("DEL {key}")).unwrap();
            run::<redis::Value>(&mut connection, &value.replace('@', key)).unwrap();
        }
        for (path, statuses) in &requests {
            let found = gateway.statuses(path, statuses.len());
            assert_eq!(found, *statuses, "{path} after {value}");
        }
        assert_eq!(gateway.all_errors(), 0.0, "{value}");
        assert_eq!(
            gateway.logged("store returned an error").len(),
            0,
            "{value}"
        );
        drop(gateway);
    }
}
