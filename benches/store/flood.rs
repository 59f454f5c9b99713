//! A flood of keys that come once: the process must not grow, and every ban must hold.

use std::thread;

use lockgate::rules::plan::KeyStatus;
use lockgate::store::{Store, StoreBounds};

use crate::load::{Rule, memory, now, tracked};
use crate::process::{peak, resident};

const MAX_KEYS: usize = 1_000_000;
/// All that may be banned at once.
const BANNED: u64 = MAX_KEYS as u64 / 4;
const THREADS: u64 = 2;

pub fn run(keys: u64) {
    let store = Store::memory(StoreBounds::keys(MAX_KEYS));
    for key in 0..BANNED {
        Rule::ban().ask(memory(&store), key, now());
    }
    let before = resident();
    thread::scope(|scope| {
        for part in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mut rule = Rule::throttle("sliding_window", 10);
                for key in 0..keys / THREADS {
                    rule.ask(memory(store), key * THREADS + part, now());
                }
            });
        }
    });
    let after = resident();
    let mut rule = Rule::ban();
    let held = (0..BANNED).filter(|key| {
        let found = rule.ask(memory(&store), *key, now());
        matches!(found, KeyStatus::Banned { started: false, .. })
    });
    println!("keys {keys}");
    println!("max_keys {MAX_KEYS}");
    println!("tracked {}", tracked(&store));
    println!("evicted {}", store.evictions().counters);
    println!("banned {BANNED}");
    println!("held {}", held.count());
    println!("bans_evicted {}", store.evictions().bans);
    println!("before {before}");
    println!("after {after}");
    println!("peak {}", peak());
}
