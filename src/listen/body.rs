//! Reading a request body that nobody wants, within a bound.
//!
//! HTTP/1 has no other way to reach the next request on a connection than through the body of
//! this one (RFC 9112, 9.3). Where it is not read to its end, the connection must be closed after
//! the answer: hyper does so, and never takes what is left of a body for a request.

use std::cell::Cell;
use std::time::Duration;

use http_body::Body;
use http_body_util::BodyExt;

use super::{Incoming, TooSlow};

/// What became of an unwanted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It was read to its end; the connection can go on.
    Whole,
    /// It is longer than allowed; the connection must close after the answer.
    TooLong,
    /// It did not come in time; the connection must close after the answer.
    TooSlow,
    /// It broke off, or has no meaning; the connection must close after the answer.
    Broken,
}

/// Reads `body` to its end and forgets it, up to `max_bytes` and for no longer than `within`.
///
/// Not for a request with `Expect: 100-continue` whose body was not asked for yet: reading is
/// what makes hyper ask for it. Drop such a body and close.
///
/// What is not read must live until the answer has ended: HTTP/2 resets the stream when it goes.
/// `read` counts the bytes.
pub async fn drain_body(
    body: &mut Incoming,
    max_bytes: u64,
    within: Duration,
    read: &Cell<u64>,
) -> Drained {
    if body.is_end_stream() {
        return Drained::Whole;
    }
    tokio::time::timeout(within, read_out(body, max_bytes, read))
        .await
        .unwrap_or(Drained::TooSlow)
}

/// Reads `body` to its end and forgets it, up to `max_bytes` and for as long as its client keeps
/// the pace. One that says it is longer is not waited for. `read` counts the bytes.
pub async fn read_out(body: &mut Incoming, max_bytes: u64, read: &Cell<u64>) -> Drained {
    if body.size_hint().lower() > max_bytes {
        return Drained::TooLong;
    }
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if error.is::<TooSlow>() => return Drained::TooSlow,
            Err(_) => return Drained::Broken,
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        read.set(read.get() + bytes);
        if read.get() > max_bytes {
            return Drained::TooLong;
        }
    }
    Drained::Whole
}
