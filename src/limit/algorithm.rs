//! The table of algorithms, one row each, for the configuration, lints, planner, stores and docs.

use super::CounterShape;

/// The largest number of sub-windows that gateways exchange in async mode.
const MAX_ASYNC_SLICES: u16 = 60;
const TOO_MANY_SLICES: &str = "more than 60 sub-windows are too large to be exchanged";

/// Declares [`Algorithm`] and its rows from one list: variant, name, capacity, recovery, shape of the counters,
/// whether `slices` divides the window, and what prevents async mode.
macro_rules! algorithms {
    ($($(#[$meta:meta])* $variant:ident $name:literal $capacity:ident $recovery:ident $shape:ident $slices:literal $obstacle:expr;)*) => {
        /// An algorithm for counting requests.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Algorithm {
            $($(#[$meta])* $variant,)*
        }

        /// The number of algorithms.
        const COUNT: usize = [$($name),*].len();

        impl Algorithm {
            /// Every algorithm, in the order of the docs.
            pub const ALL: [Algorithm; COUNT] = [$(Algorithm::$variant),*];

            /// Every algorithm with its name.
            pub const NAMED: [(&'static str, Algorithm); COUNT] =
                [$(($name, Algorithm::$variant)),*];

            /// The algorithm's row.
            pub const fn row(self) -> AlgorithmRow {
                match self {
                    $(Algorithm::$variant => AlgorithmRow {
                        name: $name,
                        capacity: CapacityKind::$capacity,
                        recovery: RecoveryKind::$recovery,
                        shape: CounterShape::$shape,
                        has_slices: $slices,
                        async_obstacle: $obstacle,
                    },)*
                }
            }
        }
    };
}

algorithms! {
    /// Two counters, the older one weighted by the share of its window that is still in the sliding window.
    #[default]
    SlidingWindow "sliding_window" Limit Expires Words true None;
    /// One counter per window.
    FixedWindow "fixed_window" Limit Expires Words false None;
    /// The time of every unit.
    SlidingLog "sliding_log" Limit Expires Log false Some("it needs the time of every unit");
    /// A bucket of tokens that refills evenly.
    TokenBucket "token_bucket" Burst Refills Words false None;
    /// A queue that drains evenly.
    LeakyBucket "leaky_bucket" Queue Refills Words false Some("it needs the exact order of requests");
    /// The generic cell rate algorithm: the theoretical arrival time of the next unit.
    Gcra "gcra" Burst Refills Words false None;
    /// The number of requests in flight.
    Concurrency "concurrency" Limit Released Leases false Some("it needs the exact number of requests in flight");
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
    /// The shape of its counters. With `slices`, it is [`CounterShape::Slices`].
    pub shape: CounterShape,
    /// Whether the setting `slices` divides its window.
    pub has_slices: bool,
    /// Why the gateways of a fleet cannot share its counters in async mode. `None` if they can.
    pub async_obstacle: Option<&'static str>,
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

    /// Whether its windows can have a total, of which the count is a share.
    pub const fn has_ratio(self) -> bool {
        matches!(self, Algorithm::SlidingWindow | Algorithm::FixedWindow)
    }

    /// Why the gateways of a fleet cannot share its counters in async mode, if they have this many sub-windows. `None`
    /// if they can.
    pub const fn async_obstacle(self, slices: u16) -> Option<&'static str> {
        match self.row().async_obstacle {
            None if self.row().has_slices && slices > MAX_ASYNC_SLICES => Some(TOO_MANY_SLICES),
            obstacle => obstacle,
        }
    }
}
