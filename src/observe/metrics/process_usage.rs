//! What the process itself uses, from `/proc`. Read for each scrape.

use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// What the process uses. A value is `None` where the system does not tell it.
#[derive(Clone, Debug, Default)]
pub struct ProcessUsage {
    /// The user and system CPU time since the start.
    pub cpu_time: Option<Duration>,
    /// The resident memory in bytes.
    pub resident_memory: Option<u64>,
    /// The number of open file descriptors.
    pub open_descriptors: Option<u64>,
    /// The maximum number of open file descriptors. `None` without a limit.
    pub max_descriptors: Option<u64>,
}

// === impl ProcessUsage ===

impl ProcessUsage {
    /// Reads what the process uses now.
    pub fn read() -> Self {
        let open = fs::read_dir("/proc/self/fd").ok();
        Self {
            cpu_time: fs::read_to_string("/proc/self/stat")
                .ok()
                .and_then(|stat| cpu_time(&stat)),
            resident_memory: fs::read_to_string("/proc/self/statm")
                .ok()
                .and_then(|statm| resident_memory(&statm)),
            // One of them reads the folder.
            open_descriptors: open.map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_descriptors: getrlimit(Resource::Nofile).current,
        }
    }
}

/// Reads the fields `utime` and `stime`. The name of the command before them can contain spaces.
fn cpu_time(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    let ticks = next()?.saturating_add(next()?);
    let per_second = clock_ticks_per_second().max(1);
    Some(Duration::from_millis(
        ticks.saturating_mul(1000) / per_second,
    ))
}

/// Reads the second field, in pages.
fn resident_memory(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let stat = "1 (a) b) S 0 1 1 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 5 6 7";
        let seconds = cpu_time(stat).unwrap().as_secs_f64() * clock_ticks_per_second() as f64;
        assert_eq!(seconds.round(), 200.0);
        assert_eq!(
            resident_memory("9 3 1 1 0 1 0"),
            Some(3 * page_size() as u64)
        );
        for wrong in ["", ")", "1 (a) S 1 2"] {
            assert_eq!(cpu_time(wrong), None);
        }
        assert_eq!(resident_memory("9"), None);
    }

    #[test]
    fn a_process_uses_memory_and_descriptors() {
        let usage = ProcessUsage::read();
        assert!(usage.resident_memory.unwrap() > 100_000, "{usage:?}");
        assert!(usage.open_descriptors.unwrap() >= 3, "{usage:?}");
        assert!(usage.cpu_time.is_some(), "{usage:?}");
    }
}
