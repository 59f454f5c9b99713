//! How long a snapshot takes: to write, and to read into another store.

use std::time::Instant;

use lockgate::store::persist::SnapshotFile;
use lockgate::store::{Store, StoreBounds};

use crate::load::{Rule, memory, now, tracked};

pub fn run(keys: u64) {
    let path = std::env::temp_dir().join(format!("lockgate-snapshot-{}", std::process::id()));
    let (file, bounds) = (SnapshotFile::new(&path), StoreBounds::keys(keys as usize));
    let store = Store::memory(bounds);
    let mut rule = Rule::throttle("sliding_window", 10);
    for key in 0..keys {
        rule.ask(memory(&store), key, now());
    }
    let began = Instant::now();
    let rules = [rule.registered()];
    file.save(&store, &rules, now()).unwrap();
    let wrote = began.elapsed();
    let mut again = Store::memory(bounds);
    let began = Instant::now();
    let restored = file.load(&mut again, &rules, now()).unwrap().unwrap();
    println!("read {}", began.elapsed().as_micros());
    println!("wrote {}", wrote.as_micros());
    println!("bytes {}", std::fs::metadata(&path).unwrap().len());
    println!("saved {}", tracked(&store));
    println!("restored {}", restored.counters);
    std::fs::remove_file(&path).unwrap();
}
