//! The shared store in exact mode: latency beside a bare client, throughput of one Redis, memory per key.

#![allow(clippy::print_stdout, reason = "prints its results")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use lockgate::clock::Clock;
use lockgate::decision::RuleIndex;
use lockgate::limit::{Algorithm, Limiter};
use lockgate::rules::plan::{
    BanLength, OnStoreFailure, Plan, PlanResult, RuleId, Step, StepOp, StoreMode,
};
use lockgate::store::redis::address::RedisAddress;
use lockgate::store::redis::{RedisSettings, bare_command};
use lockgate::store::{Store, StoreBounds, StoreHandle};
use redis::Cmd;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};

use self::server::TestServer;

#[path = "../../src/store/redis/tests/server.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "it is a part of the tests")]
mod server;

const PREFIX: &str = "bench:";
const KEYS: usize = 20_000;
const ROUNDS: usize = 30;
const CALLS: usize = 2_000;
const THROUGHPUT_TIME: Duration = Duration::from_secs(4);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, run());
}

async fn run() {
    let server = TestServer::start(&[]);
    let handle = handle(&server).await;
    let client = redis::Client::open(server.url()).expect("a client");
    let mut bare = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    println!("# Shared store, exact mode\n");
    latency(&handle, &mut bare).await;
    throughput(&handle, &server).await;
    memory(&handle, &mut bare).await;
}

async fn handle(server: &TestServer) -> Rc<StoreHandle> {
    let settings = RedisSettings {
        address: RedisAddress::parse(&server.url()).expect("a URL"),
        timeout: Duration::from_secs(2),
        sync_interval: Duration::from_millis(100),
        prefix: PREFIX.to_owned(),
        username: None,
        password: None,
        password_source: "none",
        authorities: None,
        client_certificate: None,
    };
    let store = Store::memory(StoreBounds::keys(1_000_000));
    let store = store.shared(settings, 0.5, OnStoreFailure::Local);
    let handle = StoreHandle::new(Arc::new(store), Clock::System);
    tokio::task::spawn_local(handle.clone().run());
    handle.first_attempt().await;
    handle
}

/// A plan with `rules` counting rules, all for the key with this number.
fn plan(limiter: Limiter, rules: usize, key: usize) -> Plan {
    let mut plan = Plan {
        lease: key as u64,
        ..Plan::default()
    };
    plan.keys
        .extend_from_slice(format!("client {key}").as_bytes());
    let end = plan.keys.len() as u32;
    for rule in 0..rules {
        plan.steps.push(Step {
            rule: RuleIndex(rule as u16),
            id: RuleId::unregistered(rule as u64 + 1 + 100 * limiter.algorithm as u64),
            key: 0..end,
            limiter,
            cost: 1,
            only_total: false,
            op: StepOp::Admit,
            ban: BanLength::Never,
            max_hold: Duration::ZERO,
            candidate: false,
            mitigates: true,
            is_terminal: true,
            peek_after_end: false,
            on_failure: OnStoreFailure::Closed,
            mode: StoreMode::Exact,
        });
    }
    plan
}

fn window() -> Limiter {
    let hour = Duration::from_secs(3_600);
    Limiter::new(Algorithm::SlidingWindow, 1_000_000, hour)
}

/// The times of calls, of the store and of a bare client by turns.
async fn latency(handle: &StoreHandle, bare: &mut MultiplexedConnection) {
    println!("## Latency, one counting rule\n");
    println!("| in flight | store p50 µs | bare p50 µs | ratio | store p99 µs | bare p99 µs |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for in_flight in [1, 64] {
        let (mut store_times, mut bare_times) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for batch in 0..CALLS / in_flight / 4 {
                let keys = (0..in_flight).map(|n| (round * CALLS + batch * in_flight + n) % KEYS);
                let plans: Vec<_> = keys.map(|key| plan(window(), 1, key)).collect();
                let calls = plans.iter().map(|plan| timed_store(handle, plan));
                store_times.extend(join_all(calls).await);
                let commands = plans.iter().map(|plan| bare_command(plan, PREFIX));
                let commands: Vec<_> = commands.collect();
                let calls = commands.iter();
                let calls = calls.map(|command| timed_bare(bare.clone(), command));
                bare_times.extend(join_all(calls).await);
            }
        }
        let (store_p50, store_p99) = percentiles(&mut store_times);
        let (bare_p50, bare_p99) = percentiles(&mut bare_times);
        let ratio = store_p50 as f64 / bare_p50.max(1) as f64;
        println!(
            "| {in_flight} | {store_p50} | {bare_p50} | {ratio:.2} | {store_p99} | {bare_p99} |"
        );
    }
    println!();
}

async fn timed_store(handle: &StoreHandle, plan: &Plan) -> u128 {
    let start = Instant::now();
    let mut result = PlanResult::default();
    let mut plan = plan.clone();
    let refusing_rule = handle
        .apply(&mut plan, Clock::System.now(), &mut result)
        .await;
    assert_eq!(refusing_rule, None, "the store replies");
    start.elapsed().as_micros()
}

/// The time of a bare call, without that of making its command.
async fn timed_bare(mut bare: MultiplexedConnection, command: &Cmd) -> u128 {
    let start = Instant::now();
    let reply = bare.req_packed_command(command).await;
    reply.expect("the server replies");
    start.elapsed().as_micros()
}

fn percentiles(times: &mut [u128]) -> (u128, u128) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied();
    (at(50).unwrap_or(0), at(99).unwrap_or(0))
}

async fn throughput(handle: &StoreHandle, server: &TestServer) {
    println!("## Throughput of one Redis, 64 calls in flight\n");
    println!("| counting rules | calls/s | rules/s | Redis CPU µs per call |");
    println!("| --- | --- | --- | --- |");
    for rules in [1, 5, 20] {
        let (start, cpu) = (Instant::now(), cpu_time(server.pid));
        let worker = async |worker: usize| {
            let mut calls = 0;
            while start.elapsed() < THROUGHPUT_TIME {
                let key = (worker * 7_919 + calls * 64) % KEYS;
                timed_store(handle, &plan(window(), rules, key)).await;
                calls += 1;
            }
            calls
        };
        let calls: usize = join_all((0..64).map(worker)).await.into_iter().sum();
        let per_second = calls as f64 / start.elapsed().as_secs_f64();
        let used = (cpu_time(server.pid) - cpu).as_micros() as f64 / calls as f64;
        let rules_per_second = per_second * rules as f64;
        println!("| {rules} | {per_second:.0} | {rules_per_second:.0} | {used:.1} |");
    }
    println!();
}

/// The CPU time of a process, from `/proc`.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server runs");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

async fn memory(handle: &StoreHandle, bare: &mut MultiplexedConnection) {
    println!("## Memory of a key in Redis\n");
    println!("| algorithm | bytes per key |");
    println!("| --- | --- |");
    let slices = Limiter {
        slices: 60,
        ..window()
    };
    // A bucket that drains slowly, so that its record stays.
    let of = |algorithm| Limiter {
        algorithm,
        limit: 10,
        burst: 10,
        ..window()
    };
    for (name, limiter) in [
        ("sliding_window", window()),
        ("fixed_window", of(Algorithm::FixedWindow)),
        (
            "token_bucket, gcra, leaky_bucket",
            of(Algorithm::TokenBucket),
        ),
        ("slices = 60", slices),
        ("sliding_log, one entry", of(Algorithm::SlidingLog)),
        ("concurrency, one lease", of(Algorithm::Concurrency)),
    ] {
        let _: () = redis::cmd("FLUSHALL")
            .query_async(bare)
            .await
            .expect("flush");
        let before = used_memory(bare).await;
        for batch in 0..KEYS / 100 {
            let plans: Vec<_> = (0..100)
                .map(|n| plan(limiter, 1, batch * 100 + n))
                .collect();
            join_all(plans.iter().map(|plan| timed_store(handle, plan))).await;
        }
        let bytes = (used_memory(bare).await - before) / KEYS as i64;
        println!("| {name} | {bytes} |");
    }
}

async fn used_memory(bare: &mut MultiplexedConnection) -> i64 {
    let info: String = redis::cmd("INFO")
        .arg("memory")
        .query_async(bare)
        .await
        .expect("INFO");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|bytes| bytes.trim().parse().ok())
        .unwrap_or(0)
}
