//! Floods against the program itself: each ends or is held up, memory stays bounded, and an honest
//! client is served meanwhile.

mod http1;
mod http2;
mod memory;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use self::wire::{Ended, Flood};
use crate::harness::{Client, Origin, Process};

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[routes]]
upstream = "origin"
[[rules]]
name = "held"
mitigate = 'http.request.uri.path eq "/held"'
action = "tarpit"
max_delay = "60s"
"#;

/// MiB that no flood of one connection may take.
const ROOM: u64 = 24;

/// Ends the honest client's round with the attack, however that ends.
struct Round<'a>(&'a AtomicBool);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A gateway under attack, with somebody honest beside.
struct Site {
    process: Process,
    _origin: Origin,
}

impl Site {
    fn open() -> Self {
        Self::with(Origin::start(), "")
    }

    /// Before this origin, with more configuration.
    fn with(origin: Origin, more: &str) -> Self {
        let config = CONFIG.replace("{origin}", &origin.address.to_string());
        let process = Process::run(&format!("{config}{more}"));
        let site = Self {
            process,
            _origin: origin,
        };
        // What every gateway takes before anybody floods it.
        site.honest().times(20).all_are(200);
        site
    }

    fn honest(&self) -> Client {
        Client::plain(self.process.address(0)).get("/honest")
    }

    /// Attacks while an honest client asks again and again; gives what came of the attack and how
    /// many MiB it took.
    fn under<T>(&self, attack: impl FnOnce() -> T) -> (T, u64) {
        let before = self.process.memory("VmRSS");
        let over = AtomicBool::new(false);
        let served = AtomicUsize::new(0);
        let came = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) || served.load(Ordering::Relaxed) == 0 {
                    self.honest().times(1).all_are(200);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _round = Round(&over);
            attack()
        });
        let peak = self.process.memory("VmHWM");
        (came, peak.saturating_sub(before) / 1024)
    }

    /// One flood over one connection.
    fn flood(&self, flood: &Flood) -> Ended {
        let (ended, mib) = self.under(|| flood.run(self.process.address(0)));
        assert!(mib < ROOM, "{}: {mib} MiB", flood.name);
        ended
    }

    /// A counter of the program.
    fn metric(&self, series: &str) -> u64 {
        let answer = Client::admin(self.process.admin()).get("/metrics").send();
        let text = answer.text();
        let line = text.lines().find(|line| line.starts_with(series)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}
