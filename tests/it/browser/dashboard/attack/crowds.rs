//! Who comes to the shop: visitors, partners, and attackers.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::SceneClock;
use crate::harness::{Client, Wire};

const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0 Safari/537.36";
const SAFARI: &str =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Mobile Safari/604.1";
/// All cipher suites of the TLS library.
const ALL_SUITES: usize = usize::MAX;

/// Clients that send the same kind of requests.
pub struct ClientCrowd {
    /// How many connections it uses, each with a thread of its own.
    pub threads: u32,
    /// How many TLS cipher suites it offers: another number is another fingerprint.
    suites: usize,
    /// How many requests all its threads send per second, at a part of the scene from 0 to 1.
    rate: fn(f64) -> f64,
    /// After how many requests each of its threads stops.
    most: u64,
    /// What a request is.
    request: fn(Moment) -> CrowdRequest,
}

/// When a request is sent.
#[derive(Clone, Copy)]
struct Moment {
    /// The part of the scene that has passed, from 0 to 1.
    part: f64,
    /// How many requests the thread has sent before.
    count: u64,
    /// A number that differs between all requests.
    random: u64,
}

/// A request of a client.
pub struct CrowdRequest {
    /// The method and the target.
    line: String,
    client: String,
    user_agent: &'static str,
    /// More headers.
    more: String,
}

pub const CROWDS: [ClientCrowd; 10] = [
    crowd(4, ALL_SUITES, visitors_per_second, visitor),
    crowd(1, ALL_SUITES, |part| 3.0 + wave(part, 31.0), employee),
    crowd(1, 4, |part| 1.2 + wave(part, 47.0), scanner),
    crowd(4, 3, stuffing_per_second, stuffing),
    crowd(2, 6, scraping_per_second, scraper),
    crowd(3, 5, |part| 8.0 * grow(part, 0.26, 0.32), crawler),
    crowd(1, 5, |part| 3.0 + wave(part, 41.0), searcher),
    crowd(2, 7, |part| 17.5 + 1.5 * wave(part, 23.0), partner),
    crowd(1, 7, |part| 0.8 * grow(part, 0.5, 0.52), inviter),
    ClientCrowd {
        most: 8 * 4,
        ..crowd(
            1,
            ALL_SUITES,
            |part| 2.0 * grow(part, 0.45, 0.46),
            forgetful_visitor,
        )
    },
];

const fn crowd(
    threads: u32,
    suites: usize,
    rate: fn(f64) -> f64,
    request: fn(Moment) -> CrowdRequest,
) -> ClientCrowd {
    ClientCrowd {
        threads,
        suites,
        rate,
        most: u64::MAX,
        request,
    }
}

// === impl ClientCrowd ===

impl ClientCrowd {
    /// Sends requests on one connection until the scene ends.
    pub fn visit(&self, gateway: SocketAddr, clock: &SceneClock) {
        let client = Client::tls(gateway).suites(self.suites);
        let mut connection: Option<Wire> = None;
        let mut due = Instant::now();
        let mut count = 0;
        while !clock.has_ended() && count < self.most {
            let part = clock.part();
            let rate = (self.rate)(part) / f64::from(self.threads);
            if rate < 0.1 {
                sleep(Duration::from_millis(100));
                continue;
            }
            sleep(due.saturating_duration_since(Instant::now()));
            due = due.max(Instant::now()) + Duration::from_secs_f64(1.0 / rate);
            let random = spread(clock.next_request());
            let request = (self.request)(Moment {
                part,
                count,
                random,
            });
            count += 1;
            let wire = connection.get_or_insert_with(|| client.connect());
            // A rule can close the connection.
            if exchange(wire, &request.head()).is_none() {
                connection = None;
            }
        }
    }
}

/// Sends a request and reads the response. `None` if the connection has ended.
fn exchange(wire: &mut Wire, head: &str) -> Option<()> {
    wire.try_send(head.as_bytes()).ok()?;
    let head = wire.try_head()?;
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let (_, rest) = head.split_once("content-length: ")?;
    let length = rest.lines().next()?.parse().ok()?;
    wire.try_exactly(length)?;
    (!head.contains("connection: close")).then_some(())
}

impl CrowdRequest {
    fn new(line: String, client: String, user_agent: &'static str) -> Self {
        Self {
            line,
            client,
            user_agent,
            more: String::new(),
        }
    }

    fn with(mut self, header: &str) -> Self {
        self.more.push_str(header);
        self.more.push_str("\r\n");
        self
    }

    fn head(&self) -> String {
        let Self {
            line,
            client,
            user_agent,
            more,
        } = self;
        format!(
            "{line} HTTP/1.1\r\nhost: shop.example\r\nx-forwarded-for: {client}\r\nuser-agent: {user_agent}\r\n\
             content-length: 0\r\n{more}\r\n"
        )
    }
}

// === Rates ===

/// A wave around 0 with some waves on it, so that no two minutes look alike.
fn wave(part: f64, turns: f64) -> f64 {
    let angle = part * turns;
    (angle.sin() + (angle * 2.7 + 1.0).sin() * 0.6 + (angle * 7.3).sin() * 0.3) / 1.9
}

/// Grows from 0 at `start` to 1 at `end`.
fn grow(part: f64, start: f64, end: f64) -> f64 {
    let grown = ((part - start) / (end - start)).clamp(0.0, 1.0);
    grown * grown * (3.0 - 2.0 * grown)
}

fn visitors_per_second(part: f64) -> f64 {
    150.0 + 18.0 * wave(part, 24.0)
}

/// The attack starts slowly, becomes strong, and pauses for a moment.
fn stuffing_per_second(part: f64) -> f64 {
    let pause = 1.0 - 0.75 * grow(part, 0.70, 0.71) * (1.0 - grow(part, 0.725, 0.735));
    let strength = 0.15 * grow(part, 0.28, 0.32) + 0.85 * grow(part, 0.40, 0.56);
    (150.0 + 15.0 * wave(part, 29.0)) * strength * pause
}

fn scraping_per_second(part: f64) -> f64 {
    (38.0 + 8.0 * wave(part, 35.0)) * grow(part, 0.30, 0.36)
}

// === Requests ===

/// Spreads consecutive numbers over all numbers (the finalizer of splitmix64).
fn spread(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn visitor(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let line = match number % 23 {
        0..8 => "GET /".to_owned(),
        8..10 => format!("GET /product/kettle-{}", number % 89),
        10..13 => format!(
            "GET /search?q={}",
            ["kettle", "tea", "filter", "cup"][number as usize % 4]
        ),
        13..16 => "GET /cart".to_owned(),
        16 => "POST /login".to_owned(),
        17 => "POST /cart".to_owned(),
        _ => format!("GET /image/{}", number % 997),
    };
    let client = if number % 5 == 0 {
        format!(
            "2001:db8:20:{:x}::{:x}",
            number / 7 % 4096,
            number / 11 % 256
        )
    } else {
        format!("192.0.2.{}", number / 7 % 240)
    };
    // The addresses of visitors are those of many households each, so that no limit per address applies.
    CrowdRequest::new(line, client, if number % 3 == 0 { SAFARI } else { CHROME })
}

fn employee(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let line = format!("GET /admin/orders/{}", number % 500);
    CrowdRequest::new(line, "192.0.2.241".to_owned(), CHROME)
}

fn scanner(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let path = ["/wp-login.php", "/.env", "/.git/config", "/phpmyadmin/"][number as usize % 4];
    CrowdRequest::new(
        format!("GET {path}"),
        "198.51.100.214".to_owned(),
        "zgrab/0.x",
    )
}

/// Tries stolen passwords, from more addresses the longer the attack lasts.
fn stuffing(
    Moment {
        part,
        random: number,
        ..
    }: Moment,
) -> CrowdRequest {
    let addresses = 4 + (180.0 * grow(part, 0.34, 0.7)) as u64;
    let client = format!("203.0.113.{}", 1 + number % addresses * 253 / 190 % 254);
    let line = if number % 11 == 0 {
        "POST /account/orders"
    } else {
        "POST /login"
    };
    CrowdRequest::new(line.to_owned(), client, "python-requests/2.32").with("x-password: wrong")
}

fn scraper(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let client = format!("198.51.100.{}", 40 + number % 24);
    CrowdRequest::new(
        format!("GET /product/sku-{:05}", number % 40_000),
        client,
        CHROME,
    )
}

fn crawler(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let client = format!("198.51.100.{}", 130 + number % 4);
    CrowdRequest::new(format!("GET /page/{}", number % 3000), client, "Bytespider")
}

/// Searches more often than a person. It uses POST, so that only the rule of searches counts it.
fn searcher(Moment { random: number, .. }: Moment) -> CrowdRequest {
    let client = format!("198.51.100.{}", 150 + number % 2);
    CrowdRequest::new("POST /search".to_owned(), client, "Go-http-client/2.0")
}

fn partner(Moment { random: number, .. }: Moment) -> CrowdRequest {
    // The first partner exceeds its plan, the second would exceed the one of the candidate.
    let (name, agent) = match number % 40 {
        0..23 => ("c41f", "stock-sync/3.1"),
        23..36 => ("77ab", "erp-bridge/1.8"),
        _ => ("90d2", "okhttp/4.12"),
    };
    let client = format!(
        "198.51.100.{}",
        10 + name.len() as u64 + u64::from(name.as_bytes()[0] % 9)
    );
    let line = format!("GET /api/v2/stock/{}", number % 10_000);
    CrowdRequest::new(line, client, agent).with(&format!("x-api-key: {name}"))
}

fn inviter(_: Moment) -> CrowdRequest {
    let request = CrowdRequest::new(
        "POST /invite".to_owned(),
        "198.51.100.23".to_owned(),
        "okhttp/4.12",
    );
    request.with("cookie: session=5f2a9c")
}

/// Visitors who do not remember their password, and stop after eight attempts.
fn forgetful_visitor(Moment { count, .. }: Moment) -> CrowdRequest {
    let client = format!("192.0.2.{}", 100 + count / 8);
    CrowdRequest::new("POST /login".to_owned(), client, SAFARI).with("x-password: wrong")
}
