//! File descriptors, of which the process has a bounded number: how many connections they are
//! enough for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept for what is no connection: sockets that listen, logs, files of a reload, the admin port.
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

/// How many connections so many descriptors are enough for: each may need one for its origin too.
pub fn connections_for(descriptors: u64) -> usize {
    let reserved = RESERVED.min(descriptors / 4);
    usize::try_from((descriptors - reserved) / 2)
        .unwrap_or(usize::MAX)
        .max(1)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn every_connection_has_room_for_its_origin() {
        for descriptors in [4, 20, 256, 1024, 65_536, 1 << 20] {
            let connections = connections_for(descriptors) as u64;
            assert!(2 * connections < descriptors, "{descriptors}");
            assert!(2 * connections >= descriptors / 2, "{descriptors}");
        }
        assert_eq!((connections_for(0), connections_for(1024)), (1, 384));
    }

    #[test]
    fn the_bound_is_raised_to_what_is_allowed() {
        let allowed = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_descriptors(), allowed.unwrap_or(u64::MAX));
    }
}
