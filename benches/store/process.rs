//! What the kernel says of this process.

use std::fs;

/// Bytes in memory now.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// The most bytes that were in memory at once.
pub fn peak() -> u64 {
    status("VmHWM:")
}

/// Nanoseconds that this thread has run.
pub fn thread_time() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse().unwrap()
}

fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1_024
}
