//! Reading a request body that nobody wants, within a bound.
//!
//! HTTP/1 has no other way to reach the next request on a connection than through the body of
//! this one (RFC 9112, 9.3). Where it is not read to its end, the connection must be closed after
//! the answer: hyper does so, and never takes what is left of a body for a request.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// What became of an unwanted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It was read to its end; the connection can go on.
    Whole,
    /// It was too long, too slow or broken; the connection must close after the answer.
    TooMuch,
}

/// Reads `body` to its end and forgets it, up to `max_bytes` and for no longer than `within`.
///
/// Not for a request with `Expect: 100-continue` whose body was not asked for yet: reading is
/// what makes hyper ask for it. Drop such a body and close.
pub async fn drain_body(body: Incoming, max_bytes: u64, within: Duration) -> Drained {
    if body.is_end_stream() {
        return Drained::Whole;
    }
    if body.size_hint().lower() > max_bytes {
        return Drained::TooMuch;
    }
    tokio::time::timeout(within, read_out(body, max_bytes))
        .await
        .unwrap_or(Drained::TooMuch)
}

async fn read_out(mut body: Incoming, max_bytes: u64) -> Drained {
    let mut left = max_bytes;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Drained::TooMuch;
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return Drained::TooMuch,
        }
    }
    Drained::Whole
}
