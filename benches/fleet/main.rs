//! Simulates fleets that share a limit: the gateway's async mode, which decides with the code of
//! `lockgate::store::async_mode`, beside delta sync and a divided limit. Prints the report as Markdown and exits
//! with 1 if a key of async mode exceeds its bound.
//!
//! `--quick` simulates a small part in seconds. `--plot FILE` writes a chart of the overshoot.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "not part of the gateway"
)]

mod load;
mod plot;
mod policy;
mod score;
mod simulation;
mod summary;
mod table;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lockgate::limit::{Algorithm, Limiter};
use lockgate::store::async_mode::FleetInfo;

use policy::Design;
use simulation::Scenario;
use summary::Summary;

/// The seed of every simulation.
const SEED: u64 = 0x006c_6f63_6b67_6174;
const PERIOD: Duration = Duration::from_secs(60);
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// The load of all simulations, and what varies between them.
struct Campaign {
    nodes: Vec<u32>,
    limits: Vec<u64>,
    /// Requests per second of the fleet.
    rate: f64,
    keys: usize,
    seconds: u64,
}

/// One row of the report: the three designs under equal conditions.
struct Comparison {
    shared: Summary,
    delta: Summary,
    divided: Summary,
}

#[allow(clippy::print_stdout, reason = "this program is for its output")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let campaign = if arguments.iter().any(|argument| argument == "--quick") {
        Campaign::quick()
    } else {
        Campaign::full()
    };
    let rows = campaign.run();
    print!("{}", table::report(&campaign, &rows));
    let plot = arguments.iter().position(|argument| argument == "--plot");
    if let Some(path) = plot.and_then(|index| arguments.get(index + 1)) {
        std::fs::write(path, plot::chart(&campaign, &rows)).unwrap();
    }
    let is_kept = rows.iter().all(|row| row.shared.above_bound == 0);
    if is_kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

// === impl Campaign ===

impl Campaign {
    fn full() -> Self {
        Self {
            nodes: vec![2, 10, 100, 1_000],
            limits: vec![10, 100, 1_000],
            rate: 10_000.0,
            keys: 10_000,
            seconds: 130,
        }
    }

    fn quick() -> Self {
        Self {
            nodes: vec![2, 10, 100],
            limits: vec![10, 100],
            rate: 1_000.0,
            keys: 500,
            seconds: 70,
        }
    }

    /// Runs every combination, on all cores.
    fn run(&self) -> Vec<Comparison> {
        let conditions = self.conditions();
        let next = AtomicUsize::new(0);
        let rows: Mutex<Vec<_>> = Mutex::new(Vec::new());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(scenario) = conditions.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let row = compare(scenario);
                        rows.lock().unwrap().push(row);
                    }
                });
            }
        });
        let mut rows = rows.into_inner().unwrap();
        rows.sort_by_key(|row| row.shared.order());
        rows
    }

    fn conditions(&self) -> Vec<Scenario> {
        let mut conditions = Vec::new();
        for algorithm in [Algorithm::SlidingWindow, Algorithm::TokenBucket] {
            for &nodes in &self.nodes {
                for &limit in &self.limits {
                    for round_trip in [500, 5_000] {
                        conditions.push(Scenario {
                            design: Design::Async,
                            limiter: Limiter::new(algorithm, limit, PERIOD),
                            fleet: FleetInfo {
                                nodes,
                                sync_interval: SYNC_INTERVAL,
                            },
                            round_trip,
                            largest_cost: 1,
                            rate: self.rate,
                            keys: self.keys,
                            seconds: self.seconds,
                        });
                    }
                }
            }
        }
        conditions
    }
}

fn compare(scenario: &Scenario) -> Comparison {
    let run = |design| {
        let scenario = Scenario {
            design,
            ..*scenario
        };
        Summary::new(&scenario, &simulation::run(&scenario, SEED))
    };
    Comparison {
        shared: run(Design::Async),
        delta: run(Design::DeltaSync),
        divided: run(Design::Divided),
    }
}
