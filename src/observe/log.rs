//! The gateway's own log: `tracing` events on standard error, as text or JSON lines. Requests are logged
//! in the access log, never here.
//!
//! All modules use `tracing`'s macros. The fields of an event follow its message. Only events of lockgate
//! are written, unless `LOCKGATE_LOG` names another crate.

use std::any::Any;
use std::fmt::{self, Debug};
use std::io;
use std::panic;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Event, Level, Subscriber, error};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::{Registry, reload};

use super::escape;
use super::metrics::MetricCounter;
use super::sink::LineSink;
use crate::clock::{Clock, Rfc3339};

/// The environment variable that overrides `log.level`, also per module.
pub const VARIABLE: &str = "LOCKGATE_LOG";

/// The modules of lockgate that a filter can name.
const MODULES: &str = "action admin body cli clock config credential decision expr facts fingerprint \
                       gateway geo limit listen observe pipeline process route rules signals snapshot store \
                       systemd tls trust upstream";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogOutput {
    /// Text on a terminal, otherwise JSON.
    #[default]
    Auto,
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A handle to the gateway's log: sets its level and format, and flushes it. Clones share the log.
#[derive(Clone)]
pub struct LogHandle(Option<Arc<LogShared>>);

struct LogShared {
    output: Arc<Output>,
    filter: LogFilter,
    /// The error in the filter, until it was reported.
    bad_filter: Mutex<Option<String>>,
    targets: reload::Handle<Targets, Registry>,
}

/// Writes each event as one line.
struct EventWriter(Arc<Output>);

struct Output {
    clock: Clock,
    format: Mutex<LogOutput>,
    sink: LineSink,
}

/// `LOCKGATE_LOG`: a level, and levels of single modules, such as `info,upstream=debug`.
#[derive(Default)]
struct LogFilter {
    /// The default level. `None` for `log.level`.
    level: Option<LevelFilter>,
    /// The `tracing` targets, which are module paths, with their levels.
    targets: Vec<(String, LevelFilter)>,
}

/// Collects the fields of an event in a line. JSON types follow the type of a field, never its value: a rule
/// may be called `5`.
struct LogLine {
    out: Vec<u8>,
    json: bool,
    /// Whether the message, which is the first field, was written.
    has_message: bool,
}

// === impl LogHandle ===

impl LogHandle {
    /// Makes standard error the log of the process. `filter` is the value of `LOCKGATE_LOG`. Returns an error if
    /// the stream cannot be opened or the process already has a log.
    pub fn install(clock: Clock, filter: &str) -> io::Result<Self> {
        let (log, dispatch) = Self::to(LineSink::stderr()?, clock, filter);
        tracing::dispatcher::set_global_default(dispatch).map_err(io::Error::other)?;
        Ok(log)
    }

    /// Creates a log to `sink` with level `info` and format `auto`, for threads that use the dispatch.
    pub fn to(sink: LineSink, clock: Clock, filter: &str) -> (Self, Dispatch) {
        let (filter, bad_filter) = match LogFilter::parse(filter) {
            Ok(filter) => (filter, None),
            Err(error) => (LogFilter::default(), Some(error)),
        };
        let (targets, handle) = reload::Layer::new(filter.targets(Level::INFO));
        let output = Arc::new(Output {
            clock,
            format: Mutex::default(),
            sink,
        });
        let writer = EventWriter(output.clone());
        let subscriber = Registry::default().with(targets).with(writer);
        let log = Self(Some(Arc::new(LogShared {
            output,
            filter,
            bad_filter: Mutex::new(bad_filter),
            targets: handle,
        })));
        (log, subscriber.into())
    }

    /// Returns a handle without a log.
    pub fn off() -> Self {
        Self(None)
    }

    /// Sets the format and the level. `LOCKGATE_LOG` overrides the level.
    pub fn configure(&self, level: Level, format: LogOutput) {
        let Some(log) = &self.0 else { return };
        *log.output.format.lock() = format;
        // An error means that the subscriber was dropped, so nothing is written.
        let _ = log.targets.reload(log.filter.targets(level));
        self.report_bad_filter();
    }

    /// Reports an error in `LOCKGATE_LOG` once. Call it after the format is set.
    pub fn report_bad_filter(&self) {
        let bad = self.0.as_ref().and_then(|log| log.bad_filter.lock().take());
        if let Some(error) = bad {
            error!(variable = VARIABLE, %error, "log filter ignored");
        }
    }

    /// Returns whether lines are JSON objects.
    pub fn is_json(&self) -> bool {
        self.0.as_ref().is_some_and(|log| log.output.is_json())
    }

    /// Returns whether people read the lines as they are written: text on a terminal.
    pub fn is_for_people(&self) -> bool {
        let log = self.0.as_ref();
        log.is_some_and(|log| log.output.sink.is_terminal() && !log.output.is_json())
    }

    /// Returns the configured format.
    pub fn format(&self) -> LogOutput {
        let log = self.0.as_ref();
        log.map_or(LogOutput::Auto, |log| *log.output.format.lock())
    }

    /// Returns the number of lines lost so far.
    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |log| log.output.sink.dropped())
    }

    /// Waits at most `timeout` until all lines so far are written, and returns whether they are. Call it before
    /// the process ends.
    pub fn flush(&self, timeout: Duration) -> bool {
        let log = self.0.as_ref();
        log.is_none_or(|log| log.output.sink.flush(timeout))
    }
}

impl fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sink = self.0.as_ref().map(|log| &log.output.sink);
        f.debug_struct("Log").field("sink", &sink).finish()
    }
}

// === impl LogFilter ===

impl LogFilter {
    fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for directive in text.split(',').map(str::trim).filter(|d| !d.is_empty()) {
            match directive.split_once('=') {
                None => filter.level = Some(level(directive)?),
                Some((module, word)) => {
                    let target = target(module.trim())?;
                    filter.targets.push((target, level(word.trim())?));
                }
            }
        }
        Ok(filter)
    }

    /// Returns the targets to log. Other crates must be named: their `debug` lines cost time, and clients can
    /// cause their warnings.
    fn targets(&self, configured: Level) -> Targets {
        let level = self.level.unwrap_or(configured.into());
        let all = Targets::new().with_target("lockgate", level);
        all.with_targets(self.targets.iter().cloned())
    }
}

fn level(word: &str) -> Result<LevelFilter, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let known = LEVELS.contains(&&*word.to_ascii_lowercase());
    let level = word.parse().ok().filter(|_| known);
    level.ok_or_else(|| format!("`{word}` is not a level; levels are {}", LEVELS.join(", ")))
}

/// Returns the target of a module, which may be written as `upstream` or `lockgate::upstream`.
fn target(name: &str) -> Result<String, String> {
    let module = name.strip_prefix("lockgate::").unwrap_or(name);
    if MODULES.split(' ').any(|known| known == module) {
        Ok(format!("lockgate::{module}"))
    } else if ["lockgate", "h2"].contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("`{name}` is not a module; modules are {MODULES}"))
    }
}

// === impl EventWriter ===

impl<S: Subscriber> Layer<S> for EventWriter {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Self(output) = self;
        let stamp = Rfc3339(output.clock.now());
        let mut line = LogLine::start(stamp, *event.metadata().level(), output.is_json());
        event.record(&mut line);
        output.sink.line(&line.finish());
    }
}

// === impl Output ===

impl Output {
    fn is_json(&self) -> bool {
        match *self.format.lock() {
            LogOutput::Auto => !self.sink.is_terminal(),
            format => format == LogOutput::Json,
        }
    }
}

// === impl LogLine ===

impl LogLine {
    fn start(stamp: Rfc3339, level: Level, json: bool) -> Self {
        let mut out = Vec::with_capacity(256);
        if json {
            out.extend_from_slice(b"{\"ts\":\"");
            out.extend_from_slice(&stamp.to_bytes());
            out.extend_from_slice(b"\",\"level\":\"");
            out.extend(level.as_str().bytes().map(|b| b.to_ascii_lowercase()));
            out.push(b'"');
        } else {
            out.extend_from_slice(&stamp.to_bytes());
            out.extend_from_slice(format!(" {level:<5}").as_bytes());
        }
        Self {
            out,
            json,
            has_message: false,
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.json {
            self.out.push(b'}');
        }
        self.out
    }

    /// Writes the name of a field; the value follows.
    fn name(&mut self, name: &str) {
        if self.json {
            self.out.push(b',');
            escape::json(&mut self.out, name.as_bytes());
            self.out.push(b':');
        } else {
            self.out.push(b' ');
            escape::text(&mut self.out, name.as_bytes());
            self.out.push(b'=');
        }
    }

    fn text(&mut self, field: &Field, value: &str) {
        let is_message =
            field.name() == "message" && !std::mem::replace(&mut self.has_message, true);
        match (self.json, is_message) {
            (false, true) => {
                self.out.push(b' ');
                escape::text(&mut self.out, value.as_bytes());
            }
            (false, false) => {
                self.name(field.name());
                escape::word(&mut self.out, value.as_bytes());
            }
            (true, _) => {
                self.name(if is_message { "event" } else { field.name() });
                escape::json(&mut self.out, value.as_bytes());
            }
        }
    }

    /// Writes a number or a boolean, which JSON and Rust write alike.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.name(field.name());
        self.out.extend_from_slice(value.to_string().as_bytes());
    }
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

// === panics ===

/// Counts and logs every panic of the process from now on. Panics are no longer written to standard error,
/// unless `RUST_BACKTRACE` is set.
pub fn install_panic_hook(count: &MetricCounter) {
    let count = count.clone();
    let before = env::var_os("RUST_BACKTRACE").map(|_| panic::take_hook());
    panic::set_hook(Box::new(move |panic| {
        count.inc();
        let (thread, at) = (thread::current(), panic.location().map(ToString::to_string));
        error!(
            thread = thread.name().unwrap_or("-"),
            at = at.as_deref().unwrap_or("-"),
            message = without_values(message(panic.payload())),
            "panic"
        );
        if let Some(before) = &before {
            before(panic);
        }
    }));
}

fn message(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    text.unwrap_or("-")
}

/// Returns the text before the first backtick, because quoted values may be secrets of a client.
fn without_values(message: &str) -> &str {
    message.split('`').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
