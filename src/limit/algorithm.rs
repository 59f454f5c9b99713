//! The table of algorithms, one row each, for the configuration, lints, planner, stores and docs.

/// An algorithm for counting requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Two counters, the older one weighted by the share of its window that is still in the sliding window.
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
    /// The generic cell rate algorithm: the theoretical arrival time of the next unit.
    Gcra,
    /// The number of requests in flight.
    Concurrency,
}

/// The properties of an algorithm that other modules use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmRow {
    /// The name in `algorithm = "…"`.
    pub name: &'static str,
    /// What limits the units admitted at once.
    pub capacity: CapacityKind,
    /// How units become available again.
    pub recovery: RecoveryKind,
    /// Whether the setting `slices` divides its window.
    pub has_slices: bool,
}

/// What limits the units that a limiter admits at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityKind {
    /// The limit.
    Limit,
    /// The setting `burst`.
    Burst,
    /// The setting `queue`, plus the request that is forwarded at once.
    Queue,
}

/// How units become available again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// All at once, when their window ends, or each after its own period.
    Expires,
    /// Evenly, `limit` per `period`.
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

    /// Whether the algorithm has the setting `burst`.
    pub const fn has_burst(self) -> bool {
        matches!(self.row().capacity, CapacityKind::Burst)
    }
}
