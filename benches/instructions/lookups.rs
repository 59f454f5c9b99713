//! How long a look-up in a list of 100,000 takes on this machine, over random values that are in
//! the list and not. Wall-clock time: information, the instruction counts are the measure.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "not part of the gateway"
)]

#[allow(dead_code, reason = "shared with the instruction counts")]
mod cases;

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use lockgate::expr::{FieldFacts, NamedLists, Predicate};

use cases::{Asked, Random};

/// Different requests; more than the caches hold of the list's memory.
const PROBES: usize = 20_000;
const ROUNDS: usize = 5;

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

/// Prints the best of the rounds: the least disturbed by other programs.
fn report(name: &str, text: &str, lists: &NamedLists, asked: &[&dyn FieldFacts]) {
    let predicate = cases::predicate(text, lists);
    let rounds = (0..ROUNDS).map(|_| nanoseconds(&predicate, asked));
    let best = rounds.fold(f64::INFINITY, f64::min);
    #[allow(clippy::print_stdout, reason = "this program is for its output")]
    {
        println!("{name} {best:.0}");
    }
}

fn nanoseconds(predicate: &Predicate, asked: &[&dyn FieldFacts]) -> f64 {
    let start = Instant::now();
    for facts in asked {
        black_box(predicate.test(black_box(*facts)));
    }
    start.elapsed().as_nanos() as f64 / asked.len() as f64
}
