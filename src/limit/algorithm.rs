//! The table of algorithms: one row each, read by the configuration, its lints, the planner, the stores and the docs.

/// How requests are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Two counters, the older one weighted by how much of it still lies in the window.
    #[default]
    SlidingWindow,
    /// One counter per window.
    FixedWindow,
    /// The time of every unit.
    SlidingLog,
    /// A bucket of tokens that refills evenly.
    TokenBucket,
    /// A queue that drains evenly.
    LeakyBucket,
    /// The generic cell rate algorithm: the time at which everything admitted is paid for.
    Gcra,
    /// The number of requests in flight.
    Concurrency,
}

/// What the rest of the gateway has to know about an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmRow {
    /// The name in `algorithm = "…"`.
    pub name: &'static str,
    /// What bounds the units admitted at once.
    pub capacity: CapacityKind,
    /// How units become available again.
    pub recovery: RecoveryKind,
    /// Whether `slices` divides its window.
    pub has_slices: bool,
}

/// What bounds the units that a limiter admits at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityKind {
    /// The limit.
    Limit,
    /// The setting `burst`.
    Burst,
    /// The setting `queue`, and the request that passes at once.
    Queue,
}

/// How units become available again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// Together, when their window or their own period has passed.
    Expires,
    /// One by one, `limit` in a `period`.
    Refills,
    /// When the request that holds them ends: the algorithm has leases and no period.
    Released,
}

// === impl Algorithm ===

impl Algorithm {
    /// Every algorithm, in the order of the docs.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::Gcra,
        Algorithm::Concurrency,
    ];

    /// Every algorithm with its name.
    #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
    pub const NAMED: [(&'static str, Algorithm); 7] = {
        let mut named = [("", Algorithm::SlidingWindow); 7];
        let mut at = 0;
        while at < named.len() {
            named[at] = (Self::ALL[at].row().name, Self::ALL[at]);
            at += 1;
        }
        named
    };

    /// The algorithm's row.
    pub const fn row(self) -> AlgorithmRow {
        use CapacityKind::{Burst, Limit, Queue};
        use RecoveryKind::{Expires, Refills, Released};
        let (name, capacity, recovery) = match self {
            Algorithm::SlidingWindow => ("sliding_window", Limit, Expires),
            Algorithm::FixedWindow => ("fixed_window", Limit, Expires),
            Algorithm::SlidingLog => ("sliding_log", Limit, Expires),
            Algorithm::TokenBucket => ("token_bucket", Burst, Refills),
            Algorithm::LeakyBucket => ("leaky_bucket", Queue, Refills),
            Algorithm::Gcra => ("gcra", Burst, Refills),
            Algorithm::Concurrency => ("concurrency", Limit, Released),
        };
        AlgorithmRow {
            name,
            capacity,
            recovery,
            has_slices: matches!(self, Algorithm::SlidingWindow),
        }
    }

    /// Whether a request holds a lease until it ends.
    pub const fn holds_leases(self) -> bool {
        matches!(self.row().recovery, RecoveryKind::Released)
    }

    /// Whether admitted requests may have to wait for their turn.
    pub const fn has_queue(self) -> bool {
        matches!(self.row().capacity, CapacityKind::Queue)
    }

    /// Whether `burst` is one of its settings.
    pub const fn has_burst(self) -> bool {
        matches!(self.row().capacity, CapacityKind::Burst)
    }
}
