//! A gateway whose metrics have every series that alerts and the dashboard read.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use super::promql::Expression;
use crate::fleet::TestServer;
use crate::harness::{Challenge, Client, Origin, Process};

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[store]
kind = "redis"
[store.redis]
url = "{redis}"
[challenge]
[[listeners]]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[upstreams]]
name = "dead"
servers = ["127.0.0.1:1"]
[[routes]]
path = "/dead"
upstream = "dead"
[[routes]]
upstream = "origin"
[[rules]]
name = "limited"
count = 'http.request.uri.path eq "/limited"'
key = ["ip.src"]
limit = 3
period = "1h"
candidate = { limit = 1 }
[[rules]]
name = "trial"
count = 'http.request.uri.path eq "/trial"'
key = ["ip.src"]
limit = 1
period = "1h"
dry_run = true
[[rules]]
name = "share"
count = 'http.request.uri.path eq "/share" and http.response.code eq 200'
total = 'http.request.uri.path eq "/share"'
mitigate = 'http.request.uri.path eq "/share"'
ratio = 0.5
limit = 1
period = "1h"
"#;

/// Every action, with what its rule needs.
const ACTIONS: [(&str, &str); 10] = [
    ("block", ""),
    ("shadow", ""),
    ("divert", "upstream = \"origin\""),
    ("delay", "max_delay = \"20ms\""),
    ("tarpit", "max_delay = \"20ms\""),
    ("close", ""),
    ("challenge", ""),
    ("tag", ""),
    ("log", ""),
    ("allow", ""),
];

/// A gateway with a shared store, under traffic.
pub struct MonitoredGateway {
    process: Process,
    _origin: Origin,
    _redis: TestServer,
}

/// The labels of a metric, with their values.
pub type Labels = BTreeMap<String, BTreeSet<String>>;

// === impl MonitoredGateway ===

impl MonitoredGateway {
    /// Starts a gateway and sends requests to every rule.
    pub fn start() -> Self {
        let (origin, redis) = (Origin::start(), TestServer::start(&[]));
        let mut config = CONFIG
            .replace("{redis}", &redis.url())
            .replace("{origin}", &origin.address.to_string());
        for (action, more) in ACTIONS {
            config += &format!(
                "[[rules]]\nname = \"{action}\"\naction = \"{action}\"\n{more}\n\
                 mitigate = 'http.request.uri.path eq \"/{action}\"'\n"
            );
        }
        let gateway = Self {
            process: Process::run(&config),
            _origin: origin,
            _redis: redis,
        };
        gateway.send_requests();
        gateway.solve_challenge();
        gateway
    }

    /// The metrics as text.
    pub fn scrape(&self) -> String {
        let answer = Client::admin(self.process.admin()).get("/metrics").send();
        assert_eq!(answer.status, 200);
        answer.text()
    }

    /// Calls `check` with the metrics, again and again, while clients send requests.
    pub fn scrape_under_load(&self, mut check: impl FnMut(&str)) {
        thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..5).for_each(|_| self.send_requests())))
                .collect();
            while clients.iter().any(|client| !client.is_finished()) {
                check(&self.scrape());
            }
        });
        check(&self.scrape());
    }

    fn send_requests(&self) {
        let client = Client::plain(self.process.address(0));
        for (action, _) in ACTIONS {
            // `close` sends no response.
            let fields = "host: a\r\nconnection: close";
            client.raw(format!("GET /{action} HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes());
        }
        for path in ["/", "/dead", "/limited", "/trial", "/share"] {
            client.clone().get(path).times(3).statuses();
        }
        client.get("/%00").times(1).all_are(400);
        Client::tls(self.process.address(1))
            .get("/")
            .times(1)
            .all_are(200);
    }

    fn solve_challenge(&self) {
        let client = Client::tls(self.process.address(1));
        Challenge::request(&client, "/challenge").clear(&client);
    }
}

/// The labels of each metric in Prometheus text.
pub fn labels_by_metric(text: &str) -> BTreeMap<String, Labels> {
    let mut found: BTreeMap<String, Labels> = BTreeMap::new();
    for (series, _) in series(text) {
        let mut selectors = Expression::parse(series).selectors;
        let selector = selectors.pop().unwrap();
        let labels = found.entry(selector.metric).or_default();
        for (label, values) in selector.labels {
            labels.entry(label).or_default().extend(values);
        }
    }
    found
}

/// The series in Prometheus text, with their values.
pub fn series(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').unwrap())
}
