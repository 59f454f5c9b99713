//! File descriptors, of which the process has a bounded number: how many connections they are
//! enough for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Always open: standard streams, logs, signals, the admin port with what it keeps.
const ALWAYS: u64 = 32;
/// Of a worker: its poll, its waker, its view of signals.
const WORKER: u64 = 4;
/// Of a worker and a listener: the socket, and the worker's own handle of it.
const LISTENER: u64 = 2;
/// Kept for what comes and goes: files of a reload, name lookups, checks of servers, the admin
/// port's connections.
const RESERVED: u64 = 256;

/// Raises the process's own bound as far as it may, and gives how many descriptors it can have.
pub fn raise_descriptors() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    // Where that is refused, what it has is what counts.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many connections so many descriptors are enough for, beside what so many workers with so
/// many listeners have open: each may need one for its origin too.
pub fn connections_for(descriptors: u64, workers: usize, listeners: usize) -> usize {
    let each = LISTENER.saturating_mul(listeners as u64);
    let own = (workers as u64).saturating_mul(WORKER.saturating_add(each));
    let left = descriptors.saturating_sub(ALWAYS.saturating_add(own));
    let reserved = RESERVED.min(left / 4);
    usize::try_from((left - reserved) / 2)
        .unwrap_or(usize::MAX)
        .max(1)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn every_connection_has_room_for_its_origin() {
        for descriptors in [100, 256, 1024, 65_536, 1 << 20] {
            let connections = connections_for(descriptors, 1, 1) as u64;
            assert!(2 * connections + 38 < descriptors, "{descriptors}");
            assert!(3 * connections + 38 >= descriptors / 2, "{descriptors}");
        }
        assert_eq!(connections_for(1024, 2, 1), 367);
        assert_eq!(
            connections_for(u64::MAX, 2, 1),
            (u64::MAX / 2 - 150) as usize
        );
    }

    #[test]
    fn what_workers_have_open_is_not_for_connections() {
        for (workers, listeners) in [(1, 1), (16, 1), (64, 2), (64, 8)] {
            let connections = connections_for(2048, workers, listeners);
            let own = workers * (4 + 2 * listeners) + 32;
            assert!(2 * connections + own <= 2048, "{workers} {listeners}");
        }
        let none = [(0, 1, 1), (37, 1, 1), (1024, 1000, 1)];
        let none = none.map(|(descriptors, workers, listeners)| {
            connections_for(descriptors, workers, listeners)
        });
        assert_eq!(none, [1, 1, 1]);
        assert_eq!(connections_for(1024, usize::MAX, usize::MAX), 1);
    }

    #[test]
    fn the_bound_is_raised_to_what_is_allowed() {
        let allowed = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_descriptors(), allowed.unwrap_or(u64::MAX));
    }
}
