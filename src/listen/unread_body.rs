//! The rest of a request body that nothing needs: it is kept until the response begins, then read and dropped within
//! `limits.linger`.
//!
//! A client that is still sending its body must be able to go on, or it may not see the response. Over HTTP/1, a socket
//! that is closed with unread bytes is reset, and some clients do not read after a failed write. Over HTTP/2, some
//! clients report RST_STREAM as a failure even if it follows the whole response with NO_ERROR (RFC 9113, 8.1).

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::RequestBody;
use super::min_rate::{Transfer, TransferHandle};

/// The rest of one request body.
#[derive(Default)]
pub(super) struct UnreadBody {
    /// The body that its reader has dropped before the response began. Its handle refers back here, so
    /// [`UploadGuard`] takes it out in any case.
    kept: Cell<Option<(Incoming, TransferHandle)>>,
    has_response: Cell<bool>,
}

/// Holds what the reader of a request body leaves until the response begins. If it is dropped before, so is the rest:
/// the connection or the stream ends.
pub(super) struct UploadGuard(Option<Rc<Transfer>>);

// === impl UnreadBody ===

impl UnreadBody {
    /// Keeps the rest of a body that its reader has dropped, or reads it if the response has begun.
    pub(super) fn keep(body: Incoming, transfer: TransferHandle) {
        if transfer.unread.has_response.get() {
            return linger(body, transfer);
        }
        let owner = transfer.transfer.clone();
        owner.unread.kept.set(Some((body, transfer)));
    }
}

// === impl UploadGuard ===

impl UploadGuard {
    /// Creates the guard of the body in `transfer`. `None` if the request has no body.
    pub(super) fn new(transfer: Option<&TransferHandle>) -> Self {
        Self(transfer.map(|transfer| transfer.transfer.clone()))
    }

    /// Records that the response begins.
    pub(super) fn begin_response(self) {
        let Some(transfer) = &self.0 else { return };
        // From here on, client and server may alternate, so the minimum rate of the body ends.
        transfer.rate_exempt.set(true);
        transfer.unread.has_response.set(true);
        if let Some((body, transfer)) = transfer.unread.kept.take() {
            linger(body, transfer);
        }
    }
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        drop(
            self.0
                .as_ref()
                .and_then(|transfer| transfer.unread.kept.take()),
        );
    }
}

/// Reads and drops `body` within `limits.linger`, in a task of its own, and at its minimum rate. The request is in
/// flight until then.
fn linger(body: Incoming, transfer: TransferHandle) {
    let limits = transfer.connection.linger_limits();
    if limits.bytes == 0 || limits.time.is_zero() || std::thread::panicking() {
        return;
    }
    let in_flight = transfer.connection.stay_busy();
    transfer.rate_exempt.set(false);
    tokio::task::spawn_local(async move {
        let mut body = RequestBody::new(body, Some(transfer), None);
        // If the time is over, the rest is dropped as if it were too long.
        let _ = tokio::time::timeout(limits.time, read_up_to(limits.bytes, &mut body)).await;
        body.forget();
        drop(in_flight);
    });
}

/// Reads and drops `body` until it ends, fails or exceeds `bytes`.
async fn read_up_to(bytes: u64, body: &mut RequestBody) {
    let mut left = bytes;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
