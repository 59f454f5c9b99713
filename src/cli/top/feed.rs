//! The threads of `lockgate top`: one reads the stream, one the keyboard, one what the screen shows, one changes the
//! gateway, and one waits for signals. They send [`TopEvent`]s to the thread that draws.

mod changes;
mod event_stream;
mod keyboard;
mod screen_reads;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::event_stream::StreamTarget;
use self::screen_reads::ReadRequest;
use super::command::{ChangeResult, GatewayChange, TopKey};
use super::model::TopModel;
use super::screen::{ScreenFigures, StreamFilter, TopScreen};
use crate::cli::admin_client::AdminClient;
use crate::clock::{Clock, Timestamp};

/// The minimum time between two complete reads of a screen. Ticks bring the rates in between.
const COMPLETE_READ: Duration = Duration::from_secs(5);

/// Something that happened.
pub(super) enum TopEvent {
    Key(TopKey),
    Resized,
    Quit,
    /// A thread has panicked.
    Failed,
    Tick(Value),
    Decision(StreamFilter, Value),
    Skipped(Value),
    /// Something has changed that the screen may show.
    Mark,
    /// The stream has ended. It is opened again at this time.
    Lost(Timestamp, String),
    Status(Value),
    Rules(Value),
    History(Value),
    Figures(TopScreen, ScreenFigures),
    /// A read is complete.
    Read,
    /// A change is complete.
    Changed(ChangeResult),
}

/// The threads.
pub(super) struct TopFeed {
    reads: Sender<ReadRequest>,
    changes: Sender<GatewayChange>,
    stream: Arc<StreamTarget>,
    read_at: Instant,
    completely_read_at: Instant,
    /// Reads that have not ended.
    pending: usize,
}

/// Ends the program if a thread panics, so that the terminal is restored.
struct PanicGuard(Sender<TopEvent>);

/// What a thread does: it sends events until nothing receives them.
type FeedTask = Box<dyn FnOnce(&Sender<TopEvent>) + Send>;

// === impl TopFeed ===

impl TopFeed {
    /// Starts the threads, which end with the process.
    pub(super) fn start(client: &AdminClient) -> io::Result<(Self, Receiver<TopEvent>)> {
        let (events, received) = channel();
        let (reads, read) = channel();
        let (changes, changed) = channel();
        let stream = Arc::new(StreamTarget::default());
        let spawn = |name: &str, task: FeedTask| {
            let events = events.clone();
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(move || {
                let guard = PanicGuard(events);
                task(&guard.0);
            })
        };
        spawn("signals", Box::new(keyboard::wait_for_end))?;
        spawn("keys", Box::new(keyboard::read_keys))?;
        let (own, target) = (client.clone(), stream.clone());
        let task = move |events: &_| event_stream::read_forever(&own, &target, events);
        spawn("stream", Box::new(task))?;
        let own = client.clone();
        let task = move |events: &_| screen_reads::serve(&own, &read, events);
        spawn("reads", Box::new(task))?;
        let own = client.clone();
        let task = move |events: &_| changes::serve(&own, &changed, events);
        spawn("changes", Box::new(task))?;
        let now = Clock::System.instant();
        let feed = Self {
            reads,
            changes,
            stream,
            read_at: now,
            completely_read_at: now,
            pending: 0,
        };
        Ok((feed, received))
    }

    /// Reads everything that the screen shows.
    pub(super) fn refresh(&mut self, model: &TopModel) {
        self.read(model, true);
    }

    /// Reads what the screen shows if the last time is long enough ago and has ended.
    pub(super) fn refresh_if_due(&mut self, model: &TopModel) {
        let now = Clock::System.instant();
        let interval = model.refresh_interval();
        if self.pending > 0 || now.saturating_duration_since(self.read_at) < interval {
            return;
        }
        let age = now.saturating_duration_since(self.completely_read_at);
        self.read(model, age >= COMPLETE_READ.max(interval));
    }

    fn read(&mut self, model: &TopModel, is_complete: bool) {
        let now = Clock::System.instant();
        self.read_at = now;
        if is_complete {
            self.completely_read_at = now;
        }
        self.pending += 1;
        // The thread ends only with the process.
        let _ = self.reads.send(ReadRequest {
            screen: model.screen.clone(),
            described_key: model.described_key().map(str::to_owned),
            is_complete,
        });
    }

    /// Notes that a read has ended.
    pub(super) fn end_read(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// Changes the gateway.
    pub(super) fn change(&self, change: GatewayChange) {
        let _ = self.changes.send(change);
    }

    /// Opens the stream again if it has another filter: the gateway samples what the filter selects.
    pub(super) fn follow(&self, filter: &StreamFilter) {
        self.stream.follow(filter);
    }
}

// === impl PanicGuard ===

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(TopEvent::Failed);
        }
    }
}
