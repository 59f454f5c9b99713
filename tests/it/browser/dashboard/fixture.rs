//! A gateway with rules, an origin server, and clients that attack it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Browser;
use crate::harness::{Client, Origin, Process, wait_until};

pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";

pub const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[client_ip]
trusted_proxies = ["127.0.0.1"]
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "site"
servers = ["{origin}"]
[[routes]]
upstream = "site"
[[rules]]
name = "stuffing"
mitigate = 'http.request.uri.path eq "/login"'
count = 'http.request.uri.path eq "/login" and http.response.code eq 401'
key = ["ip.src"]
limit = 5
period = "1m"
action = "shadow"
duration = "10m"
[[rules]]
name = "searching"
count = 'http.request.uri.path eq "/search"'
key = ["ip.src"]
limit = 3
period = "1m"
dry_run = true
"#;

/// Collects everything that must not happen in the page: errors, violations of the content security policy, and
/// moves of what the user reads.
const WATCH: &str = r#"
    {
        window.problems = [];
        window.shift = 0;
        const note = (text) => window.problems.push(String(text));
        addEventListener("error", (event) => note(event.message));
        addEventListener("unhandledrejection", (event) => note(event.reason));
        addEventListener("securitypolicyviolation", (event) => note(`${event.violatedDirective}: ${event.blockedURI}`));
        for (const level of ["error", "warn"]) console[level] = (...texts) => note(texts.join(" "));
        new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
        }).observe({ type: "layout-shift", buffered: true });
    }
"#;

/// A gateway with a dashboard.
pub struct Dashboard {
    pub gateway: Process,
    pub origin: Origin,
}

impl Dashboard {
    /// Starts the gateway and its origin server.
    pub fn start() -> Self {
        Self::with(|config| config.to_owned())
    }

    /// Starts the gateway with a changed configuration.
    pub fn with(change: impl Fn(&str) -> String) -> Self {
        let origin = Origin::start();
        let config = CONFIG.replace("{origin}", &origin.address.to_string());
        let gateway = Process::run(&change(&config));
        Self { gateway, origin }
    }

    /// The configuration, complete.
    pub fn config(&self) -> String {
        CONFIG.replace("{origin}", &self.origin.address.to_string())
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.gateway.admin())
    }

    /// Opens the page in a window of 1440 × 900 and waits until figures are live.
    pub fn open(&self, browser: &Browser) {
        self.open_at(browser, 1440, 900);
        wait_until_live(browser);
    }

    /// Opens the page in a window of this size.
    pub fn open_at(&self, browser: &Browser, width: u32, height: u32) {
        open_page(browser, &self.url(), width, height);
    }

    /// A client behind the trusted proxy.
    pub fn client(&self, address: &str) -> Client {
        Client::plain(self.gateway.address(0)).from(address)
    }

    /// Gets an address banned.
    pub fn ban(&self, address: &str) {
        let login = self.client(address).wants(401).post("/login");
        login.times(7);
        assert!(self.is_banned(address));
        // The gateway collects decisions once per second.
        wait_until("the ban's decisions are known", || {
            let path = format!("/api/clients/{address}");
            let client = Client::admin(self.gateway.admin()).get(&path).send();
            client.text().contains("\"mitigated\":") && client.text().contains("POST")
        });
    }

    /// Whether a login from this address gets a shadow response.
    pub fn is_banned(&self, address: &str) -> bool {
        self.client(address).wants(401).post("/login").send().status == 200
    }

    /// Attacks the login from many addresses, and searches, until the value is dropped.
    pub fn attack(&self) -> Attack {
        let client = Client::plain(self.gateway.address(0));
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let task = thread::spawn(move || {
            for round in 0.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // Each address comes ten times: it is counted at first, and then banned.
                let address = format!("203.0.113.{}", round / 10 % 250 + 1);
                let login = client.clone().from(&address).wants(401).post("/login");
                login.times(2);
                let searcher = client.clone().from("198.51.100.7");
                searcher.get("/search?q=kettle").send();
                let visitor = client.clone().from("192.0.2.9");
                visitor.get("/product").times(2);
                thread::sleep(Duration::from_millis(50));
            }
        });
        Attack {
            ends,
            task: Some(task),
        }
    }
}

/// Traffic that stops when this value is dropped.
pub struct Attack {
    ends: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
    }
}

/// Fails if the page had an error, wrote to the console or violated its content security policy.
#[track_caller]
pub fn assert_no_problem(browser: &Browser) {
    assert_eq!(browser.run("return window.problems"), json!([]));
    let mut console = browser.console_problems();
    // The browser notes each refused request, whatever the page does with the response.
    console.retain(|message| !message.contains("the server responded with a status of 4"));
    assert_eq!(console, [""; 0]);
}

/// Opens a page in a window of this size, and watches for problems.
pub fn open_page(browser: &Browser, url: &str, width: u32, height: u32) {
    let script = json!({"source": WATCH});
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", script);
    resize(browser, width, height);
    browser.open(url);
}

/// Waits until the page shows live figures.
#[track_caller]
pub fn wait_until_live(browser: &Browser) {
    wait_until("figures are live", || {
        browser.run("return document.documentElement.dataset.state") == "live"
    });
}

/// Gives the window this size.
pub fn resize(browser: &Browser, width: u32, height: u32) {
    let size =
        json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
    browser.devtools("Emulation.setDeviceMetricsOverride", size);
}

/// Shows the page as in a theme of the system.
pub fn set_theme(browser: &Browser, theme: &str) {
    let features: Value = json!([{"name": "prefers-color-scheme", "value": theme}]);
    browser.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
}
