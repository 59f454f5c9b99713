//! Can a classifier tell a shadow response from a real one? 2,000 of each in random order, through a
//! relay that delays like a network; features of timing, size, headers and framing; boosted trees,
//! trained on one half and tested on the other. README.md beside it says what is measured.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement fails by panicking"
)]

mod answer;
mod dice;
mod features;
mod gateway;
mod h1;
mod h2;
mod origin;
mod relay;
mod trees;

use std::net::{IpAddr, Ipv4Addr};

use answer::Answer;
use dice::Dice;
use gateway::{Gateway, Way};
use origin::Origin;

/// Who is answered by the origin, and who is not.
const REAL: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const SHADOWED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// Before the measurement, so many clients get so many answers each.
const LEARNED_FROM: u8 = 12;
const LESSONS: usize = 50;
/// A classifier that is right no more often than this has learned nothing.
const GOAL: f64 = 0.55;
/// Halves that are drawn.
const FOLDS: u64 = 5;

/// A way to ask.
struct Case {
    name: &'static str,
    path: &'static str,
    /// A connection serves so many requests.
    reuse: usize,
    http2: bool,
}

const CASES: [Case; 4] = [
    Case {
        name: "HTTP/1.1, kept connection, `content-length`",
        path: "/length",
        reuse: 50,
        http2: false,
    },
    Case {
        name: "HTTP/1.1, a connection each, `content-length`",
        path: "/length",
        reuse: 1,
        http2: false,
    },
    Case {
        name: "HTTP/1.1, kept connection, chunks after the head",
        path: "/chunked",
        reuse: 50,
        http2: false,
    },
    Case {
        name: "HTTP/2 over TLS, kept connection",
        path: "/length",
        reuse: 50,
        http2: true,
    },
];

fn main() {
    let number = |name: &str, or| std::env::var(name).map_or(or, |v| v.parse().unwrap());
    let count: usize = number("SHADOW_COUNT", 2000);
    let only: usize = number("SHADOW_CASE", CASES.len());
    println!(
        "| how | AUC | AUC by timing alone | AUC of real beside real | AUC without `imitate` | \
         AUC on loopback |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut worst: f64 = 0.0;
    for (at, case) in CASES.iter().enumerate() {
        if only < CASES.len() && only != at {
            continue;
        }
        let imitated = measure(case, Way::Imitated, true, count);
        let real = measure(case, Way::Real, true, count);
        let configured = measure(case, Way::Configured, true, count.min(500));
        let loopback = measure(case, Way::Imitated, false, count);
        println!(
            "| {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
            case.name, imitated.0, imitated.1, real.0, configured.0, loopback.0
        );
        worst = worst.max(imitated.0);
    }
    assert!(worst < GOAL, "an AUC of {worst:.3}; the goal is {GOAL}");
}

/// The area under the curve with all features, and with those of timing.
fn measure(case: &Case, way: Way, relayed: bool, count: usize) -> (f64, f64) {
    let origin = Origin::start();
    let gateway = Gateway::start(&origin, way, relayed);
    let mut dice = Dice::new(1);
    for client in 1..=LEARNED_FROM {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 1, client));
        collect(case, &gateway, from, LESSONS);
    }
    let mut answers: Vec<(Answer, bool)> = Vec::new();
    let (mut real, mut shadows) = (count, count);
    let mut observer = Observer::new(case, &gateway);
    while real + shadows > 0 {
        let shadow = dice.below(real + shadows) >= real;
        if shadow {
            shadows -= 1;
        } else {
            real -= 1;
        }
        answers.push((observer.ask(shadow), shadow));
    }
    let answered = if way == Way::Real { 2 * count } else { count };
    origin.must_have_seen(answered + LESSONS * usize::from(LEARNED_FROM));
    let (names, rows) = features::of(&answers);
    let labels: Vec<bool> = answers.iter().map(|(_, shadow)| *shadow).collect();
    let timing: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row[..features::TIMING].to_vec())
        .collect();
    if let Ok(folder) = std::env::var("SHADOW_DUMP") {
        let file = format!("{}{way:?}{relayed}", case.name);
        features::dump(&folder, &file, &names, &rows, &answers);
    }
    if std::env::var_os("SHADOW_DETAIL").is_some() {
        features::detail(&names, &rows, &labels);
    }
    (area(&rows, &labels), area(&timing, &labels))
}

/// Asks with two clients, each on a connection of its own.
struct Observer<'a> {
    case: &'a Case,
    gateway: &'a Gateway,
    clients: [Option<Box<dyn answer::Asks>>; 2],
    used: [usize; 2],
}

impl<'a> Observer<'a> {
    fn new(case: &'a Case, gateway: &'a Gateway) -> Self {
        Self {
            case,
            gateway,
            clients: [None, None],
            used: [0, 0],
        }
    }

    fn ask(&mut self, shadow: bool) -> Answer {
        let at = usize::from(shadow);
        let from = if shadow { SHADOWED } else { REAL };
        if self.used[at].is_multiple_of(self.case.reuse) {
            self.clients[at] = Some(connect(self.case, self.gateway, from));
        }
        self.used[at] += 1;
        self.clients[at].as_mut().unwrap().ask(self.case.path)
    }
}

fn collect(case: &Case, gateway: &Gateway, from: IpAddr, count: usize) {
    let mut client = connect(case, gateway, from);
    for _ in 0..count {
        client.ask(case.path);
    }
}

fn connect(case: &Case, gateway: &Gateway, from: IpAddr) -> Box<dyn answer::Asks> {
    match case.http2 {
        true => Box::new(h2::Client::connect(gateway.tls, from)),
        false => Box::new(h1::Client::connect(gateway.plain, from)),
    }
}

/// The mean over some halves.
fn area(rows: &[Vec<f64>], labels: &[bool]) -> f64 {
    let areas = (0..FOLDS).map(|fold| {
        let mut dice = Dice::new(100 + fold);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at + 1));
        }
        let (train, test) = order.split_at(order.len() / 2);
        let model = trees::Model::train(rows, labels, train);
        trees::area(&model, rows, labels, test)
    });
    areas.sum::<f64>() / FOLDS as f64
}
