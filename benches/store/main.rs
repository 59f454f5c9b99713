//! Memory and speed of the store, measured on a process of its own: `benches/store/run` runs it
//! once for each figure and compares with the goals.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "not part of the gateway"
)]

mod flood;
mod load;
mod memory;
mod process;
mod restart;
mod threads;

fn main() {
    // `cargo bench` adds an argument of its own.
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["memory", algorithm, keys, ..] => memory::run(algorithm, keys.parse().unwrap()),
        ["threads", rounds, seconds, ..] => {
            threads::run(rounds.parse().unwrap(), seconds.parse().unwrap());
        }
        ["flood", keys, ..] => flood::run(keys.parse().unwrap()),
        ["restart", keys, ..] => restart::run(keys.parse().unwrap()),
        _ => println!("memory ALGORITHM KEYS | threads ROUNDS SECONDS | flood KEYS | restart KEYS"),
    }
}
