//! A gateway with a shared store, and what its metrics and its log say about it.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Answer, Client, Folder, Process, wait_until};

/// The longest time in which a gateway notices that the store is back. The goal is 0.5 s.
const LONGEST_RECOVERY: Duration = Duration::from_secs(4);

/// A running gateway of a fleet.
pub struct FleetGateway {
    /// The process.
    pub process: Process,
}

/// What a process has open: file descriptors and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenResources {
    descriptors: usize,
    threads: usize,
}

/// The settings of a gateway.
pub struct FleetConfig {
    url: String,
    store: String,
    rules: String,
    upstream: Option<(&'static str, std::net::SocketAddr)>,
    password: Option<String>,
}

// === impl OpenResources ===

impl OpenResources {
    /// The same with further file descriptors.
    pub fn with_descriptors(self, count: usize) -> Self {
        Self {
            descriptors: self.descriptors + count,
            ..self
        }
    }
}

// === impl FleetConfig ===

impl FleetConfig {
    /// A gateway on the store at `url`, with these rules.
    pub fn new(url: &str, rules: &str) -> Self {
        Self {
            url: url.to_owned(),
            store: String::new(),
            rules: rules.to_owned(),
            upstream: None,
            password: None,
        }
    }

    /// Adds lines to `[store.redis]`.
    pub fn store(mut self, lines: &str) -> Self {
        self.store.push_str(lines);
        self.store.push('\n');
        self
    }

    /// Waits so long for the store that only an outage makes a request fall back, and then responds with 503.
    pub fn strict(self) -> Self {
        self.store("timeout = \"5s\"\non_failure = \"closed\"")
    }

    /// Forwards requests for a path, such as `/slow`, to this origin.
    pub fn upstream(mut self, path: &'static str, address: std::net::SocketAddr) -> Self {
        self.upstream = Some((path, address));
        self
    }

    /// Sets the password by the environment.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Starts the gateway.
    pub fn start(&self) -> FleetGateway {
        let folder = Folder::new();
        folder.write("secret", [7; 32]);
        let stdout = fs::File::create(folder.path().join("stdout")).unwrap();
        let mut command = Process::command();
        match &self.password {
            Some(password) => command.env("LOCKGATE_REDIS_PASSWORD", password),
            None => command.env_remove("LOCKGATE_REDIS_PASSWORD"),
        };
        let process = Process::run_in(folder, command, &self.text(), stdout.into());
        FleetGateway { process }
    }

    /// The text of gateway.toml.
    pub fn text(&self) -> String {
        let Self {
            url, store, rules, ..
        } = self;
        let upstream = self.upstream.map_or(String::new(), |(path, address)| {
            format!(
                "[[upstreams]]\nname = \"origin\"\nservers = [\"{address}\"]\n\
                 [[routes]]\npath = \"{path}\"\nupstream = \"origin\"\n"
            )
        });
        format!(
            "[server]\nworkers = 2\nsecret_file = \"secret\"\n[log]\naccess = \"off\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n\
             [store]\nkind = \"redis\"\nmax_keys = 1000\n[store.redis]\nurl = \"{url}\"\n{store}\n\
             [[listeners]]\naddress = \"127.0.0.1:0\"\n{upstream}\
             [[routes]]\nrespond = {{ body = \"hello\" }}\n{rules}"
        )
    }
}

// === impl FleetGateway ===

impl FleetGateway {
    /// A client.
    pub fn client(&self) -> Client {
        Client::plain(self.process.address(0))
    }

    /// Requests `path` this many times and returns the statuses.
    pub fn statuses(&self, path: &str, count: usize) -> Vec<u16> {
        self.client().get(path).times(count).statuses()
    }

    /// Sends requests over new connections, so that every core gets some. All must have this status.
    #[track_caller]
    pub fn all_are(&self, path: &str, count: usize, status: u16) {
        self.client().get(path).times(count).all_are(status);
    }

    /// Requests a path of the admin port.
    pub fn admin(&self, path: &str) -> Answer {
        Client::admin(self.process.admin()).get(path).send()
    }

    /// The value of a series. `None` if there is none.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let text = self.admin("/metrics").text();
        let value = |line: &str| line.strip_prefix(series)?.trim().parse().ok();
        text.lines().find_map(value)
    }

    /// The number of failed calls of a kind.
    pub fn errors(&self, kind: &str) -> f64 {
        let series = format!("lockgate_store_errors_total{{kind=\"{kind}\"}}");
        self.metric(&series).unwrap_or_default()
    }

    /// The number of failed calls of all kinds.
    pub fn all_errors(&self) -> f64 {
        let text = self.admin("/metrics").text();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("lockgate_store_errors_total{"));
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        lines.filter_map(value).sum()
    }

    /// The state of the store, as the metrics have it.
    pub fn state(&self) -> String {
        let text = self.admin("/metrics").text();
        let name = |line: &str| {
            let rest = line.strip_prefix("lockgate_store_state{state=\"")?;
            let name = rest.strip_suffix("\"} 1")?;
            Some(name.to_owned())
        };
        text.lines().find_map(name).unwrap_or_default()
    }

    /// Whether requests are decided without the store.
    pub fn is_down(&self) -> bool {
        self.metric("lockgate_store_failed_open") == Some(1.0)
    }

    /// Waits until requests are decided without the store, while requesting `path`. None may fail.
    #[track_caller]
    pub fn goes_down(&self, path: &str) {
        wait_until("the gateway notices the outage", || {
            self.passes(path);
            self.is_down()
        });
    }

    /// Waits until the store decides again, while requesting `path`. None may fail. Returns the time it took.
    #[track_caller]
    pub fn recovers(&self, path: &str) -> Duration {
        self.recovers_within(path, LONGEST_RECOVERY)
    }

    /// Waits until the store decides again, for at most `longest`.
    #[track_caller]
    pub fn recovers_within(&self, path: &str, longest: Duration) -> Duration {
        let began = Instant::now();
        wait_until("the gateway notices the end of the outage", || {
            self.passes(path);
            !self.is_down()
        });
        let took = began.elapsed();
        println!("recovered after {took:?}");
        assert!(took < longest, "{took:?}");
        took
    }

    /// A request is either admitted or limited.
    #[track_caller]
    pub fn passes(&self, path: &str) {
        let status = self.client().get(path).send().status;
        assert!(matches!(status, 200 | 429), "{status}");
    }

    /// The log lines that contain `text`.
    pub fn logged(&self, text: &str) -> Vec<String> {
        self.process.logged(text)
    }

    /// Waits until exactly this many log lines contain `text`.
    #[track_caller]
    pub fn logs(&self, text: &str, count: usize) {
        wait_until(text, || self.logged(text).len() >= count);
        let lines = self.logged(text);
        assert_eq!(lines.len(), count, "{lines:?}");
    }

    /// The log lines that contain `text`. Each of the two cores has written one, or only one of them has.
    #[track_caller]
    pub fn logs_of_cores(&self, text: &str) -> Vec<String> {
        wait_until(text, || !self.logged(text).is_empty());
        let lines = self.logged(text);
        assert!((1..=2).contains(&lines.len()), "{lines:?}");
        lines
    }

    /// What the process has open while it has no clients.
    pub fn open_resources(&self) -> OpenResources {
        let samples = (0..20).map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.open_resources_now()
        });
        samples.min().unwrap()
    }

    fn open_resources_now(&self) -> OpenResources {
        let count = |name: &str| {
            let path = format!("/proc/{}/{name}", self.process.id());
            fs::read_dir(path).unwrap().count()
        };
        OpenResources {
            descriptors: count("fd"),
            threads: count("task"),
        }
    }

    /// Waits until the process has no more open than `before`.
    #[track_caller]
    pub fn leaks_nothing(&self, before: OpenResources) {
        let mut now = before;
        for _ in 0..500 {
            now = self.open_resources_now();
            if now.descriptors <= before.descriptors && now.threads <= before.threads {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let files = Command::new("ls")
            .args(["-l", &format!("/proc/{}/fd", self.process.id())])
            .output();
        let files = String::from_utf8(files.unwrap().stdout).unwrap();
        panic!("{before:?} became {now:?}\n{files}");
    }
}

/// A rule that counts all requests for `/NAME` together.
pub fn rule(name: &str, lines: &str) -> String {
    format!(
        "[[rules]]\nname = \"{name}\"\nmitigate = 'http.request.uri.path eq \"/{name}\"'\n{lines}\n"
    )
}

/// A rule that never stops a request for `/many`.
pub fn unlimited() -> String {
    rule("many", "limit = 1000000\nperiod = \"24h\"")
}

/// Waits until the day is old enough and young enough that no window of 24 hours ends during a test.
pub fn avoid_the_end_of_the_day() {
    const DAY: u64 = 24 * 60 * 60;
    wait_until("the day has begun", || {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let into = now.as_secs() % DAY;
        (1..DAY - 15).contains(&into)
    });
}
