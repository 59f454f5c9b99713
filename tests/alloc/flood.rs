//! Floods of keys that come once: the store takes no more memory than it was given, and no ban is
//! freed. At full size this is `benches/store/run`.

use std::hint::black_box;

use allocation_counter::measure;
use lockgate::rules::plan::KeyStatus;
use lockgate::store::{Store, StoreBounds};

use crate::load::{ALGORITHMS, Rule, memory, now, tracked};

const KEYS: u64 = 100_000;
const BOUNDS: StoreBounds = StoreBounds {
    max_keys: 20_000,
    max_log_bytes: 1 << 20,
};
const BANNED: u64 = 5_000;

#[test]
fn a_flood_of_keys_adds_no_memory_and_evicts_no_ban() {
    for (algorithm, ..) in ALGORITHMS {
        let store = Store::memory(BOUNDS);
        let mut ban = Rule::ban();
        for key in 0..BANNED {
            ban.ask(memory(&store), key, now());
        }
        let mut flood = Rule::throttle(algorithm, 10);
        let taken = measure(|| {
            for key in 0..KEYS {
                black_box(flood.ask(memory(&store), key, now()));
            }
        });
        assert!(
            taken.bytes_max <= allowed(algorithm),
            "{algorithm}: {taken:?}"
        );
        assert!(tracked(&store) <= BOUNDS.max_keys, "{algorithm}");
        assert_eq!(store.evictions().bans, 0, "{algorithm}");
        for key in 0..BANNED {
            let found = ban.ask(memory(&store), key, now());
            let held = matches!(found, KeyStatus::Banned { started: false, .. });
            assert!(held, "{algorithm}: {key}");
        }
    }
}

/// Where a key's numbers are in the table, nothing is taken at all. Logs, and what stands for them
/// when they have no room, have a bound each; handles and the list of free ones come on top. Leases are kept beside the
/// table while their requests are in flight, which here are as many as there are keys.
fn allowed(algorithm: &str) -> u64 {
    match algorithm {
        "sliding_log" | "slices_60" => 2 * BOUNDS.max_log_bytes as u64 + (1 << 20),
        "concurrency" => 400 * BOUNDS.max_keys as u64,
        _ => 0,
    }
}

#[test]
fn a_flood_of_bans_stays_within_its_capacity() {
    let store = Store::memory(BOUNDS);
    let mut ban = Rule::ban();
    let taken = measure(|| {
        for key in 0..KEYS {
            black_box(ban.ask(memory(&store), key, now()));
        }
    });
    assert_eq!(store.bans(now()).len() as u64, BANNED);
    assert_eq!(store.evictions().bans, KEYS - BANNED);
    // A key, its place in two orders and the spare room of maps that double.
    let each = taken.bytes_max / BANNED;
    assert!(each <= 1_000, "{each} bytes a ban");
}
