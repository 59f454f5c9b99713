//! Streams of server-sent events: their number, their bodies, and their end.
//!
//! A stream has no time limit. It is closed if its client cannot take an event for ten seconds, or if a reload
//! changes the token.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::api_error::ApiError;

/// The maximum number of open streams.
pub(super) const MAX_STREAMS: usize = 16;
/// How long a client may take no event.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of texts that wait for the connection. Each has at most the events of a second.
const QUEUE: usize = 4;

/// Connects a stream with its connection: the connection ends when the stream closes, even if its client does not
/// read.
#[derive(Default)]
pub(super) struct StreamControl {
    started: Notify,
    closed: Notify,
}

/// The slots for streams.
#[derive(Clone)]
pub(super) struct StreamSlots(Arc<Semaphore>);

/// The body of a stream. It holds a slot.
pub(super) struct EventBody {
    events: mpsc::Receiver<Bytes>,
    _slot: OwnedSemaphorePermit,
}

/// Writes the events of a stream. Dropping it ends the stream.
pub(super) struct EventWriter {
    events: mpsc::Sender<Bytes>,
    control: Arc<StreamControl>,
    stall_timeout: Duration,
}

/// Events as in the HTML standard, section 9.2.
#[derive(Default)]
pub(super) struct EventText(Vec<u8>);

/// The client has disconnected, or has not read for too long.
#[derive(Debug)]
pub(super) struct StreamEnded;

// === impl StreamControl ===

impl StreamControl {
    /// Waits until the connection has become a stream.
    pub(super) async fn started(&self) {
        self.started.notified().await;
    }

    /// Waits until the stream is closed.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }
}

// === impl StreamSlots ===

impl StreamSlots {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STREAMS)))
    }

    /// Opens a stream if a slot is free.
    pub(super) fn open(
        &self,
        control: Arc<StreamControl>,
    ) -> Result<(EventWriter, EventBody), ApiError> {
        let slot = self.0.clone().try_acquire_owned();
        let slot = slot.map_err(|_| ApiError::too_many_streams())?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        control.started.notify_one();
        let writer = EventWriter {
            events: sender,
            control,
            stall_timeout: STALL_TIMEOUT,
        };
        let body = EventBody {
            events: receiver,
            _slot: slot,
        };
        Ok((writer, body))
    }
}

// === impl EventWriter ===

impl EventWriter {
    /// Sends events. Waits while the client does not read, at most ten seconds.
    pub(super) async fn send(&self, events: EventText) -> Result<(), StreamEnded> {
        let sent = timeout(self.stall_timeout, self.events.send(events.into_bytes())).await;
        sent.ok().and_then(Result::ok).ok_or(StreamEnded)
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // A client that reads gets the end of the body when the sender is dropped. One that does not read keeps its
        // connection busy, so it is closed.
        if self.events.capacity() == 0 {
            self.control.closed.notify_one();
        }
    }
}

// === impl EventText ===

impl EventText {
    /// Adds an event with one line of JSON.
    pub(super) fn push(&mut self, event: &str, data: &str) {
        for part in ["event: ", event, "\ndata: ", data, "\n\n"] {
            self.0.extend_from_slice(part.as_bytes());
        }
    }

    /// Returns the text.
    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

// === impl EventBody ===

impl EventBody {
    pub(super) fn poll_event(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = self.events.poll_recv(context);
        event.map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_seventeenth_stream_gets_a_slot_when_another_ends() {
        let slots = StreamSlots::new();
        let open = || slots.open(Arc::default());
        let mut streams: Vec<_> = (0..MAX_STREAMS).map(|_| open().ok().unwrap()).collect();
        let error = open().err().unwrap();
        assert_eq!(error.status, 503);
        assert_eq!(error.header.unwrap().1, "5");
        drop(streams.pop());
        assert!(open().is_ok());
    }

    #[tokio::test]
    async fn a_stream_that_takes_no_event_is_closed() {
        let control = Arc::new(StreamControl::default());
        let opened = StreamSlots::new().open(control.clone());
        let (mut writer, _body) = opened.ok().unwrap();
        writer.stall_timeout = Duration::from_millis(1);
        for _ in 0..QUEUE {
            writer.send(EventText::default()).await.unwrap();
        }
        assert!(writer.send(EventText::default()).await.is_err());
        drop(writer);
        control.closed().await;
    }

    #[test]
    fn an_event_is_one_line_of_data() {
        let mut text = EventText::default();
        text.push("tick", "{}");
        assert_eq!(text.into_bytes(), "event: tick\ndata: {}\n\n");
    }
}
