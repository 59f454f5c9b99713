//! An answer as a client sees it.

use std::time::Duration;

/// An answer with all that can be seen of it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// To the first byte.
    pub first: Duration,
    /// To the last one.
    pub last: Duration,
    /// Fields in order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The sizes of its chunks or DATA frames.
    pub pieces: Vec<usize>,
    /// How many reads it took.
    pub reads: usize,
    /// Seconds since 1970, when it was there.
    pub at: f64,
}

/// A client on one connection.
pub trait Asks {
    fn ask(&mut self, path: &str) -> Answer;
}

pub fn now() -> f64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs_f64()
}
