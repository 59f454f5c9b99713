//! How an answer that had begun can break off. It only names it.

/// Who or what broke off an answer before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The origin closed its connection, reset its stream or sent what has no meaning.
    Upstream,
    /// The client left.
    Client,
    /// The client did not take it fast enough for `[limits]`.
    Slow,
    /// The request's body was still on its way and broke off, was too slow or too large.
    RequestBody,
    /// The gateway stopped, and `drain_timeout` was over.
    Drain,
    /// The gateway failed.
    Panic,
}

// === impl Cut ===

impl Cut {
    /// All of them, in the order they are declared.
    pub const ALL: [Cut; 6] = [
        Cut::Upstream,
        Cut::Client,
        Cut::Slow,
        Cut::RequestBody,
        Cut::Drain,
        Cut::Panic,
    ];

    /// The word in the access log and the metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Cut::Upstream => "upstream",
            Cut::Client => "client",
            Cut::Slow => "slow_client",
            Cut::RequestBody => "request_body",
            Cut::Drain => "drain",
            Cut::Panic => "panic",
        }
    }
}
