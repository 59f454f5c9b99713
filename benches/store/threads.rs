//! Decisions a second: every thread for itself, over keys that are all counted already. Short rounds
//! with one thread and with two in turn.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockgate::store::{Store, StoreBounds};

use crate::load::{Rule, memory, now};
use crate::process::thread_time;

const KEYS: u64 = 1 << 20;

/// What one thread did.
struct Done {
    decisions: u64,
    nanos: u64,
}

pub fn run(rounds: usize, seconds: f64) {
    let store = Store::memory(StoreBounds::keys(KEYS as usize * 5 / 4));
    let mut rule = Rule::throttle("sliding_window", 1_000_000_000);
    for key in 0..KEYS {
        rule.ask(memory(&store), key, now());
    }
    for _ in 0..rounds {
        round(&store, 1, Duration::from_secs_f64(seconds));
        round(&store, 2, Duration::from_secs_f64(seconds));
    }
}

fn round(store: &Store, count: usize, length: Duration) {
    let (start, stop) = (Barrier::new(count + 1), AtomicBool::new(false));
    let work = |seed: usize| work(store, seed as u64, &start, &stop);
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || work(n))).collect();
        start.wait();
        let began = Instant::now();
        thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
        let done: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let wall = began.elapsed().as_nanos();
        let decisions: u64 = done.iter().map(|done| done.decisions).sum();
        let cpu: u64 = done.iter().map(|done| done.nanos).sum();
        println!("{count} {decisions} {wall} {cpu}");
    });
}

fn work(store: &Store, seed: u64, start: &Barrier, stop: &AtomicBool) -> Done {
    let mut rule = Rule::throttle("sliding_window", 1_000_000_000);
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    start.wait();
    let began = thread_time();
    let mut decisions = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            // Marsaglia's xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            rule.ask(memory(store), state % KEYS, now());
        }
        decisions += 1_000;
    }
    let nanos = thread_time() - began;
    Done { decisions, nanos }
}
