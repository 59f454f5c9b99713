//! Twelve hours of honest logins raise no alarm.
//!
//! The traffic is generated, because no recording of logins may be published: new devices of a site with 3.3 logins per
//! second, of which 60 % come from known devices. The shares are those of benches/attacks/population.py. Known devices
//! are left out: no rule that can raise an alarm counts them. A quarter of the attempts fails. The ratio is that share plus 25
//! points: with the default, 15 points, such a site has some false alarms a day.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, StatusCode};
use lockgate::clock::{Clock, ManualClock, Timestamp};
use lockgate::config::{self, Diagnostics};
use lockgate::facts::{ClientConnection, HelloFacts, TlsFacts};
use lockgate::observe::LogHandle;
use lockgate::pipeline::simulate::Simulation;
use lockgate::process::ProcessState;
use lockgate::rules::FixedKeys;
use lockgate::snapshot::Snapshot;
use lockgate::store::{StoreBounds, StoreHandle};

use crate::harness::Folder;

const HOURS: u64 = 12;
/// The mean time between two new devices.
const MEAN_GAP: f64 = 1000.0 / (3.3 * 0.4);

const CONFIG: &str = r#"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[upstreams]]
name = "origin"
servers = ["127.0.0.1:9"]
[[routes]]
upstream = "origin"
[[protect]]
kind = "login"
path = "/login"
user_field = "user"
ratio = 0.5
"#;

/// The rules of a site on a clock of its own, without sockets.
struct SimulatedSite {
    snapshot: Snapshot,
    store: Rc<StoreHandle>,
    clock: ManualClock,
    runtime: tokio::runtime::Runtime,
    _process: ProcessState,
}

/// Somebody who logs in with a new device. Those who mistype come back after some seconds.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Visitor {
    /// The time of the next attempt in milliseconds.
    at: u64,
    number: u32,
    typos: u32,
    address: IpAddr,
    /// The number of the fingerprint.
    browser: u64,
}

/// SplitMix64.
struct RandomNumbers(u64);

#[test]
fn twelve_hours_of_honest_logins_raise_no_alarm() {
    let site = SimulatedSite::start();
    let mut random = RandomNumbers(16);
    let mut visitors = BinaryHeap::new();
    let (mut arrival, mut number) = (0.0, 0);
    let (mut attempts, mut challenged) = (0, 0);
    while arrival < (HOURS * 3_600_000) as f64 {
        arrival += -MEAN_GAP * (1.0 - random.share()).ln();
        number += 1;
        visitors.push(Reverse(Visitor::new(arrival as u64, number, &mut random)));
        // Everybody who comes before the next arrival.
        while let Some(Reverse(next)) = visitors.peek()
            && next.at <= arrival as u64
            && let Some(Reverse(visitor)) = visitors.pop()
        {
            attempts += 1;
            let rule = site.log_in(&visitor);
            assert_ne!(
                rule.as_deref(),
                Some("login/site"),
                "{} s",
                visitor.at / 1000
            );
            challenged += u32::from(rule.is_some());
            visitors.extend(visitor.again(&mut random).map(Reverse));
        }
    }
    println!("{challenged} of {number} devices challenged, {attempts} attempts");
    // A rare fingerprint may be challenged for minutes.
    assert!(challenged * 1000 <= number, "{challenged} of {number}");
    // An attack on the same site is noticed within seconds: 1,000 guesses a minute, each from another address.
    let guess = |number: u32| Visitor {
        at: arrival as u64 + u64::from(number) * 60,
        number: 1_000_000 + number,
        typos: 1,
        address: IpAddr::from((0x0a00_0000 + number).to_be_bytes()),
        browser: u64::from(number) % 3,
    };
    let decisions = (0..500).map(|number| site.log_in(&guess(number)));
    let unnoticed = decisions.take_while(Option::is_none).count();
    assert!(unnoticed < 100, "{unnoticed}");
}

// === impl SimulatedSite ===

impl SimulatedSite {
    fn start() -> Self {
        let folder = Folder::new();
        let path = folder.write("gateway.toml", CONFIG);
        let clock = ManualClock::at(Timestamp::from_secs(1_700_000_040));
        let mut diagnostics = Diagnostics::new();
        let (source, file) = config::load(&path, &mut diagnostics);
        let file = file.unwrap();
        let blueprint = config::compile(&file, &source, clock.now(), None, &mut diagnostics);
        let bounds = StoreBounds::keys(500_000);
        let process = ProcessState::new(Clock::Manual(clock.clone()), LogHandle::off(), bounds);
        let process = process.unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Self {
            snapshot: process.install(blueprint.unwrap(), None, None),
            store: StoreHandle::new(process.store.clone(), process.clock.clone()),
            clock,
            runtime: runtime.unwrap(),
            _process: process,
        }
    }

    /// One attempt of a visitor, at its time. Returns the rule that acts on it.
    fn log_in(&self, visitor: &Visitor) -> Option<Arc<str>> {
        let start = Timestamp::from_secs(1_700_000_040);
        let at = start.plus(Duration::from_millis(visitor.at));
        self.clock.advance(at.since(self.clock.now()));
        let simulation = visitor.attempt();
        let run = simulation.run(&self.snapshot, &self.store, at, false);
        let (rule, _) = self.runtime.block_on(run).decided_by?;
        Some(rule)
    }
}

// === impl Visitor ===

impl Visitor {
    fn new(at: u64, number: u32, random: &mut RandomNumbers) -> Self {
        let typos = match random.share() {
            ..0.80 => 0,
            ..0.93 => 1,
            ..0.98 => 2,
            _ => 5,
        };
        // Some sit in one office, more of them in one mobile network, the others alone.
        let address = match random.share() {
            ..0.02 => [127, 25, 0, 1],
            ..0.15 => [127, 27, 0, 1],
            _ => (0xc000_0000 + number).to_be_bytes(),
        };
        // Three browsers are those of 70 %.
        let browser = match random.share() {
            ..0.7 => random.below(3),
            _ => 3 + random.below(30),
        };
        Self {
            at,
            number,
            typos,
            address: IpAddr::from(address),
            browser,
        }
    }

    /// The next attempt after one that failed.
    fn again(mut self, random: &mut RandomNumbers) -> Option<Self> {
        self.typos = self.typos.checked_sub(1)?;
        self.at += 3_000 + random.below(12_000);
        Some(self)
    }

    fn attempt(&self) -> Simulation {
        let body = format!("user=user{}&password=x", self.number);
        let request = Request::post("/login")
            .header("host", "shop.example")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("content-length", body.len());
        let status = if self.typos == 0 {
            StatusCode::FOUND
        } else {
            StatusCode::UNAUTHORIZED
        };
        let ja4 = format!("t13d1516h2_8daaf61527{:02x}_02713d6af862", self.browser);
        let hello = HelloFacts {
            ja4: ja4.as_str().into(),
            ..HelloFacts::default()
        };
        Simulation {
            parts: request.body(()).unwrap().into_parts().0,
            unreadable: None,
            connection: ClientConnection {
                peer: (self.address, 0).into(),
                listener: "".into(),
                tls: Some(TlsFacts {
                    version: "TLSv1.3",
                    cipher: "",
                    sni: Some("shop.example".into()),
                    alpn: Some("http/1.1"),
                    client: None,
                    hello,
                }),
            },
            client: Some(self.address),
            asn: None,
            country: None,
            body: body.into(),
            status: Some(status),
            response_headers: HeaderMap::new(),
            known: None,
            has_clearance: false,
            keys: FixedKeys::default(),
        }
    }
}

// === impl RandomNumbers ===

impl RandomNumbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number of at least 0 and less than 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
