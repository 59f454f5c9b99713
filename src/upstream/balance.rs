//! Which server a request goes to. Never looks at the request.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Balance, Server, Upstream};

/// How many servers are tried before a request is given up.
const MAX_TRIES: usize = 3;

/// A small generator (xorshift64), for choices whose quality does not matter.
pub(super) struct Random(Cell<u64>);

/// The servers to try, the chosen one first.
#[derive(Clone)]
pub(super) struct Candidates<'a> {
    servers: &'a [Arc<Server>],
    next: usize,
    left: usize,
}

// === impl Random ===

impl Random {
    pub(super) fn new() -> Self {
        // Zero is the one state that xorshift never leaves.
        Self(Cell::new(getrandom::u64().unwrap_or(1).max(1)))
    }

    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x
    }

    fn below(&self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound.max(1)
    }
}

// === impl Candidates ===

impl<'a> Candidates<'a> {
    pub(super) fn of(upstream: &'a Upstream, random: &Random) -> Self {
        let servers = upstream.servers.as_slice();
        let next = match (servers.len(), upstream.balance) {
            (0 | 1, _) => 0,
            (n, Balance::RoundRobin) => upstream.turn.fetch_add(1, Ordering::Relaxed) % n,
            (n, Balance::P2c) => less_busy_of_two(servers, n, random),
        };
        Self {
            servers,
            next,
            left: servers.len().min(MAX_TRIES),
        }
    }
}

impl<'a> Iterator for Candidates<'a> {
    type Item = &'a Arc<Server>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let server = self.servers.get(self.next);
        self.next = (self.next + 1) % self.servers.len().max(1);
        server
    }
}

fn less_busy_of_two(servers: &[Arc<Server>], n: usize, random: &Random) -> usize {
    let one = random.below(n);
    // Any but `one`, each as likely.
    let other = (one + 1 + random.below(n - 1)) % n;
    let busy = |i: usize| {
        servers
            .get(i)
            .map_or(usize::MAX, |server| server.in_flight())
    };
    if busy(other) < busy(one) { other } else { one }
}
