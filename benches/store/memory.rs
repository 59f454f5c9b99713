//! What a key costs: the growth of the process while a store is filled with as many keys as it may
//! track.

use lockgate::store::{Store, StoreBounds};

use crate::load::{Rule, memory, now, tracked};
use crate::process::{peak, resident};

pub fn run(algorithm: &str, keys: u64) {
    let before = resident();
    let store = Store::memory(StoreBounds::keys(keys as usize));
    let mut rule = Rule::throttle(algorithm, 10);
    for key in 0..keys {
        rule.ask(memory(&store), key, now());
    }
    let after = resident();
    println!("tracked {}", tracked(&store));
    println!("evicted {}", store.evictions().counters);
    println!("before {before}");
    println!("after {after}");
    println!("peak {}", peak());
}
