//! The CPU time on this machine of a look-up in a list of 100,000, over random values that are in the list and not, of
//! the check of a known client's cookie, and of a count of a rule with a ratio.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "not part of the gateway"
)]

#[allow(dead_code, reason = "shared with the instruction counts")]
mod cases;
#[allow(dead_code, reason = "shared with other programs")]
#[path = "../store/load.rs"]
mod load;

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use lockgate::expr::{FieldFacts, NamedLists, Predicate};
use lockgate::store::{Store, StoreBounds};
use rustix::time::{ClockId, clock_gettime};

use cases::{Asked, Random};

/// Different requests; more than the caches hold of the list's memory.
const PROBES: usize = 20_000;
const ROUNDS: usize = 5;
/// Requests with a cookie in each round. They are new in each, because a request checks its cookie once.
const COOKIES: usize = 2_000;
/// Keys that are counted.
const KEYS: u64 = 1_000;

fn main() {
    let mut random = Random(7);
    let blocks = cases::lists("list", &cases::blocks_v4(100_000));
    let v4 = |r: &mut Random| IpAddr::V4(Ipv4Addr::from_bits(r.next() as u32));
    report(
        "v4_100k",
        "ip.src in $list",
        &blocks,
        &addresses(&mut random, v4),
    );

    let blocks = cases::lists("list", &cases::blocks_v6(100_000));
    let v6 = |r: &mut Random| {
        let high = 0x2000_0000_0000_0000 | r.next() >> 3;
        IpAddr::V6(Ipv6Addr::from_bits(
            u128::from(high) << 64 | u128::from(r.next()),
        ))
    };
    report(
        "v6_100k",
        "ip.src in $list",
        &blocks,
        &addresses(&mut random, v6),
    );

    let texts = cases::strings(200_000);
    let half = cases::lists("list", &texts[..100_000]);
    let asked = (0..PROBES).map(|_| {
        let agent = &texts[random.below(texts.len() as u64) as usize];
        let facts = Asked {
            agent,
            ..Asked::browsing()
        }
        .facts();
        facts as &dyn FieldFacts
    });
    let asked: Vec<&dyn FieldFacts> = asked.collect();
    report("strings_100k", "http.user_agent in $list", &half, &asked);

    print("known_client", cookie_check);
    print("ratio", ratio_count);
}

fn cookie_check() -> f64 {
    let predicate = cases::predicate("client.known", &NamedLists::new());
    let credentials = cases::credentials();
    let known = |_| Asked::browsing().known(credentials) as &dyn FieldFacts;
    let asked: Vec<&dyn FieldFacts> = (0..COOKIES).map(known).collect();
    nanoseconds(&predicate, &asked)
}

fn ratio_count() -> f64 {
    let store = Store::memory(StoreBounds::keys(2 * KEYS as usize));
    let mut rule = load::Rule::throttle("ratio", 1_000);
    let mut count_all = || {
        for key in 0..KEYS {
            black_box(rule.ask(load::memory(&store), key, load::now()));
        }
    };
    // The first request of a key takes a longer path.
    count_all();
    let start = cpu_time();
    (0..10).for_each(|_| count_all());
    (cpu_time() - start).as_nanos() as f64 / (10 * KEYS) as f64
}

fn addresses(
    random: &mut Random,
    one: impl Fn(&mut Random) -> IpAddr,
) -> Vec<&'static dyn FieldFacts> {
    let facts = |_| {
        let client = one(random);
        Asked {
            client,
            ..Asked::browsing()
        }
        .facts() as &dyn FieldFacts
    };
    (0..PROBES).map(facts).collect()
}

fn report(name: &str, text: &str, lists: &NamedLists, asked: &[&dyn FieldFacts]) {
    let predicate = cases::predicate(text, lists);
    print(name, || nanoseconds(&predicate, asked));
}

/// Prints the best of the rounds: the least disturbed by other programs.
fn print(name: &str, round: impl Fn() -> f64) {
    let rounds = (0..ROUNDS).map(|_| round());
    let best = rounds.fold(f64::INFINITY, f64::min);
    #[allow(clippy::print_stdout, reason = "this program is for its output")]
    {
        println!("{name} {best:.0}");
    }
}

fn nanoseconds(predicate: &Predicate, asked: &[&dyn FieldFacts]) -> f64 {
    let start = cpu_time();
    for facts in asked {
        black_box(predicate.test(black_box(*facts)));
    }
    (cpu_time() - start).as_nanos() as f64 / asked.len() as f64
}

/// The CPU time of this thread, which other programs on the machine do not use up.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
