//! A shop with visitors, and an attack on its login: real traffic over TLS that lasts as long as a test wants.

mod crowds;
mod shop;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::crowds::CROWDS;
use self::shop::ShopServers;
use crate::harness::{Client, Folder, Process};

/// The part of the scene after which one server fails.
const SERVER_FAILS: f64 = 0.62;
/// The part of the scene after which the configuration is reloaded, and the part after which a wrong one is refused.
const RELOADS: f64 = 0.12;
const ATTACK: f64 = 0.25;
const WRONG_RELOAD: f64 = 0.78;

/// A gateway before a shop, and everybody who uses it. Ends with this value.
pub struct AttackScene {
    pub gateway: Process,
    clock: Arc<SceneClock>,
    crowds: Vec<JoinHandle<()>>,
    shop: ShopServers,
}

/// How much of the scene has passed.
pub struct SceneClock {
    start: Instant,
    duration: Duration,
    has_ended: AtomicBool,
    /// A number for each request, so that requests differ.
    requests: AtomicU64,
}

// === impl AttackScene ===

impl AttackScene {
    /// Starts the gateway, and lets visitors and attackers come over `duration`. They stay until the value is dropped.
    pub fn start(duration: Duration) -> Self {
        let (shop, folder) = (ShopServers::start(), Folder::new());
        shop::write_certificate(&folder);
        let gateway = Process::run_in(folder, Process::command(), &config(&shop), Stdio::null());
        let clock = Arc::new(SceneClock {
            start: Instant::now(),
            duration,
            has_ended: AtomicBool::new(false),
            requests: AtomicU64::new(0),
        });
        let address = gateway.address(0);
        let clients = CROWDS
            .iter()
            .flat_map(|crowd| (0..crowd.threads).map(move |_| crowd));
        let crowds = clients.map(|crowd| {
            let clock = clock.clone();
            thread::spawn(move || crowd.visit(address, &clock))
        });
        let crowds = crowds.collect();
        Self {
            gateway,
            clock,
            crowds,
            shop,
        }
    }

    /// The address of the dashboard.
    pub fn url(&self) -> String {
        format!("http://{}/", self.gateway.admin())
    }

    /// Waits for the last calm moment. The configuration has been reloaded meanwhile.
    pub fn play_calm(&self) {
        self.clock.wait_until(RELOADS);
        self.gateway.reload(&config(&self.shop));
        self.clock.wait_until(ATTACK);
    }

    /// Waits until the attack is strong, one server has failed and a reload was refused. Visitors and attackers stay.
    pub fn play_attack(&self) {
        self.clock.wait_until(SERVER_FAILS);
        self.shop.fail();
        self.ban_by_hand();
        self.clock.wait_until(WRONG_RELOAD);
        self.reload_wrong();
        self.clock.wait_until(1.0);
    }

    fn ban_by_hand(&self) {
        let ban = r#"{"rule": "pages-too-fast", "key": "198.51.100.99", "duration": "90m", "note": "asked to crawl slower"}"#;
        let client = Client::admin(self.gateway.admin());
        let made = client.json(ban).post("/api/mitigations").send();
        assert_eq!(made.status, 201, "{}", made.text());
    }

    /// Reloads a configuration with a misspelled field.
    fn reload_wrong(&self) {
        let wrong = config(&self.shop).replace("uri.path eq \"/search\"", "uri.pth eq \"/search\"");
        self.gateway.reload(&wrong);
    }
}

impl Drop for AttackScene {
    fn drop(&mut self) {
        self.clock.has_ended.store(true, Ordering::Relaxed);
        for crowd in self.crowds.drain(..) {
            let _ = crowd.join();
        }
    }
}

fn config(shop: &ShopServers) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/browser/dashboard/attack/shop.toml");
    let config = fs::read_to_string(path).unwrap();
    let config = config.replace("{healthy}", &shop.healthy.to_string());
    config.replace("{failing}", &shop.failing.to_string())
}

// === impl SceneClock ===

impl SceneClock {
    /// Returns the part of the scene that has passed, from 0 to 1.
    fn part(&self) -> f64 {
        (self.start.elapsed().as_secs_f64() / self.duration.as_secs_f64()).min(1.0)
    }

    fn wait_until(&self, part: f64) {
        while self.part() < part {
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Returns the next number of a request.
    fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}
