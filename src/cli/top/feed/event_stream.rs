//! Reads the stream of events, opens it again after an error, and with another filter when the screen changes.

use std::io::BufRead as _;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Sender;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::TopEvent;
use crate::cli::admin_client::{AdminBody, AdminClient, AdminClientError, query};
use crate::cli::top::screen::StreamFilter;
use crate::clock::Clock;

/// The wait before the stream is opened again, which doubles with each attempt.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// How long the stream may be silent. The gateway sends a tick each second.
const SILENCE: Duration = Duration::from_secs(10);
/// The maximum length of a line, in bytes. A tick has about 200 bytes per rule.
const MAX_LINE: u64 = 16 << 20;

/// Which decisions are wanted. It belongs to the thread that reads and to the one that draws.
#[derive(Default)]
pub(super) struct StreamTarget {
    state: Mutex<TargetState>,
    changed: Condvar,
}

#[derive(Default)]
struct TargetState {
    filter: StreamFilter,
    /// The connection of the stream, which a change of the filter ends.
    connection: Option<TcpStream>,
}

// === impl StreamTarget ===

impl StreamTarget {
    /// Opens the stream again if it has another filter.
    pub(super) fn follow(&self, filter: &StreamFilter) {
        let mut state = self.state.lock();
        if state.filter == *filter {
            return;
        }
        state.filter = filter.clone();
        if let Some(connection) = state.connection.take() {
            // A connection that has ended already needs no end.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn filter(&self) -> StreamFilter {
        self.state.lock().filter.clone()
    }

    /// Notes the connection of a stream. Returns `false` if the filter has changed since.
    fn connected(&self, filter: &StreamFilter, body: &AdminBody) -> bool {
        let mut state = self.state.lock();
        state.connection = body.get_ref().try_clone().ok();
        state.filter == *filter
    }

    /// Waits, at most until the filter is another one. Returns whether it is.
    fn wait(&self, filter: &StreamFilter, duration: Duration) -> bool {
        let mut state = self.state.lock();
        if state.filter == *filter {
            self.changed.wait_for(&mut state, duration);
        }
        state.filter != *filter
    }
}

/// Sends events until the program ends.
pub(super) fn read_forever(client: &AdminClient, target: &StreamTarget, events: &Sender<TopEvent>) {
    let client = client.with_io_timeout(SILENCE);
    let mut backoff = MIN_BACKOFF;
    loop {
        let filter = target.filter();
        let mut has_ticked = false;
        let reason = match read_stream(&client, target, &filter, events, &mut has_ticked) {
            Ok(()) => return,
            Err(reason) => reason,
        };
        if target.filter() != filter {
            continue;
        }
        if has_ticked {
            backoff = MIN_BACKOFF;
        }
        let retry_at = Clock::System.now().plus(backoff);
        if events.send(TopEvent::Lost(retry_at, reason)).is_err() {
            return;
        }
        let is_changed = target.wait(&filter, backoff);
        backoff = if is_changed {
            MIN_BACKOFF
        } else {
            (backoff * 2).min(MAX_BACKOFF)
        };
    }
}

/// Reads a stream. Returns why it has ended, or `Ok` if the program ends.
fn read_stream(
    client: &AdminClient,
    target: &StreamTarget,
    filter: &StreamFilter,
    events: &Sender<TopEvent>,
    has_ticked: &mut bool,
) -> Result<(), String> {
    let body = client.open("GET", &path(filter), None);
    let mut body = body.map_err(|error: AdminClientError| error.to_string())?;
    let ended = || "the stream has ended".to_owned();
    if !target.connected(filter, &body) {
        return Err(ended());
    }
    let (mut line, mut name) = (String::new(), String::new());
    loop {
        line.clear();
        let read = std::io::Read::take(&mut body, MAX_LINE).read_line(&mut line);
        match read {
            Ok(0) => return Err(ended()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
        let text = line.trim_end();
        if let Some(event) = text.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = text.strip_prefix("data: ") {
            *has_ticked |= name == "tick";
            let Some(event) = event_of(&name, data, filter) else {
                continue;
            };
            if events.send(event).is_err() {
                return Ok(());
            }
        }
    }
}

fn path(filter: &StreamFilter) -> String {
    let parameters = [("rule", &filter.rule), ("ip", &filter.ip)];
    let parameters = parameters
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    format!("/api/events{}", query(&parameters.collect::<Vec<_>>()))
}

/// Returns `None` for an event of a later version.
fn event_of(name: &str, data: &str, filter: &StreamFilter) -> Option<TopEvent> {
    let object = serde_json::from_str(data).ok()?;
    Some(match name {
        "tick" => TopEvent::Tick(object),
        "decision" => TopEvent::Decision(filter.clone(), object),
        "skipped" => TopEvent::Skipped(object),
        "mark" => TopEvent::Mark,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_part_of_the_path() {
        let mut filter = StreamFilter::default();
        assert_eq!(path(&filter), "/api/events");
        filter.rule = Some("login/site".into());
        filter.ip = Some("::1".into());
        assert_eq!(path(&filter), "/api/events?rule=login%2Fsite&ip=%3A%3A1");
    }

    #[test]
    fn another_filter_ends_the_wait() {
        let target = StreamTarget::default();
        let filter = target.filter();
        assert!(!target.wait(&filter, Duration::ZERO));
        let other = StreamFilter {
            rule: Some("a".into()),
            ip: None,
        };
        target.follow(&other);
        assert!(target.wait(&filter, Duration::from_secs(60)));
        assert_eq!(target.filter(), other);
    }
}
