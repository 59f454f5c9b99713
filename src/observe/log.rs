//! The gateway's own log: few lines, for people, on the standard error stream; JSON lines where a
//! machine reads them. Never a line for every request: that is the access log.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use super::escape;
use super::sink::Sink;
use crate::clock::{Clock, Rfc3339};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a fault in the gateway.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something does not work.
    Error,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The gateway's log. Clones share level, format and target.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    clock: Clock,
    level: AtomicU8,
    json: AtomicBool,
    /// `None`: nobody listens.
    sink: Option<Sink>,
}

/// A value of a line, with its name. What it is in JSON goes by what it is, never by what it looks
/// like: a rule may be called `5`.
#[derive(Clone, Copy)]
pub enum Field<'a> {
    /// A string.
    Text(&'a str, &'a dyn Display),
    /// A number.
    Number(&'a str, u64),
    /// True or false.
    Flag(&'a str, bool),
}

// === impl Level ===

impl Level {
    /// The name in gateway.toml and in JSON lines.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO ",
            Level::Warn => "WARN ",
            Level::Error => "ERROR",
        }
    }
}

// === impl Field ===

impl Field<'_> {
    fn name(&self) -> &str {
        match self {
            Field::Text(name, _) | Field::Number(name, _) | Field::Flag(name, _) => name,
        }
    }
}

impl Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Text(_, value) => value.fmt(f),
            Field::Number(_, value) => value.fmt(f),
            Field::Flag(_, value) => value.fmt(f),
        }
    }
}

// === impl Log ===

impl Log {
    /// A text log of level `info` on the standard error stream.
    pub fn stderr(clock: Clock) -> io::Result<Self> {
        Ok(Self::to(Sink::stderr()?, clock))
    }

    /// A text log of level `info` to `sink`.
    pub fn to(sink: Sink, clock: Clock) -> Self {
        Self::new(Some(sink), clock)
    }

    /// A log that nobody hears.
    pub fn off() -> Self {
        Self::new(None, Clock::System)
    }

    fn new(sink: Option<Sink>, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            clock,
            level: AtomicU8::new(Level::Info as u8),
            json: AtomicBool::new(false),
            sink,
        }))
    }

    /// Sets level and format, for all clones.
    pub fn configure(&self, level: Level, format: Format) {
        self.0.level.store(level as u8, Ordering::Relaxed);
        self.0.json.store(format == Format::Json, Ordering::Relaxed);
    }

    /// Whether lines are JSON objects.
    pub fn is_json(&self) -> bool {
        self.0.json.load(Ordering::Relaxed)
    }

    /// Writes a line of level `debug`.
    pub fn debug(&self, event: &str, fields: &[Field<'_>]) {
        self.write(Level::Debug, event, fields);
    }

    /// Writes a line of level `info`.
    pub fn info(&self, event: &str, fields: &[Field<'_>]) {
        self.write(Level::Info, event, fields);
    }

    /// Writes a line of level `warn`.
    pub fn warn(&self, event: &str, fields: &[Field<'_>]) {
        self.write(Level::Warn, event, fields);
    }

    /// Writes a line of level `error`.
    pub fn error(&self, event: &str, fields: &[Field<'_>]) {
        self.write(Level::Error, event, fields);
    }

    /// Whether lines of `level` are written: ask before making costly fields.
    pub fn is_on(&self, level: Level) -> bool {
        self.0.sink.is_some() && level as u8 >= self.0.level.load(Ordering::Relaxed)
    }

    /// Lines lost so far.
    pub fn dropped(&self) -> u64 {
        self.0.sink.as_ref().map_or(0, Sink::dropped)
    }

    /// Waits until the lines so far were written, at most `timeout`; says whether they were. To
    /// be called before the process ends.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.0.sink.as_ref().is_none_or(|sink| sink.flush(timeout))
    }

    fn write(&self, level: Level, event: &str, fields: &[Field<'_>]) {
        let Some(sink) = &self.0.sink else { return };
        if !self.is_on(level) {
            return;
        }
        let mut line = Vec::with_capacity(256);
        let stamp = Rfc3339(self.0.clock.now());
        if self.is_json() {
            json(&mut line, stamp, level, event, fields);
        } else {
            text(&mut line, stamp, level, event, fields);
        }
        sink.line(&line);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("sink", &self.0.sink)
            .finish_non_exhaustive()
    }
}

fn text(out: &mut Vec<u8>, stamp: Rfc3339, level: Level, event: &str, fields: &[Field<'_>]) {
    out.extend_from_slice(&stamp.to_bytes());
    out.push(b' ');
    out.extend_from_slice(level.label().as_bytes());
    out.push(b' ');
    escape::text(out, event.as_bytes());
    let mut shown = Vec::new();
    for field in fields {
        out.push(b' ');
        escape::text(out, field.name().as_bytes());
        out.push(b'=');
        escape::word(out, show(&mut shown, field));
    }
}

fn json(out: &mut Vec<u8>, stamp: Rfc3339, level: Level, event: &str, fields: &[Field<'_>]) {
    out.extend_from_slice(b"{\"ts\":\"");
    out.extend_from_slice(&stamp.to_bytes());
    out.extend_from_slice(b"\",\"level\":");
    escape::json(out, level.name().as_bytes());
    out.extend_from_slice(b",\"event\":");
    escape::json(out, event.as_bytes());
    let mut shown = Vec::new();
    for field in fields {
        out.push(b',');
        escape::json(out, field.name().as_bytes());
        out.push(b':');
        let shown = show(&mut shown, field);
        match field {
            Field::Text(..) => escape::json(out, shown),
            // JSON writes them as Rust does.
            Field::Number(..) | Field::Flag(..) => out.extend_from_slice(shown),
        }
    }
    out.push(b'}');
}

fn show<'a>(buffer: &'a mut Vec<u8>, value: &dyn Display) -> &'a [u8] {
    buffer.clear();
    // A Vec takes all that is written; a Display that fails shows what it gave until then.
    let _ = write!(buffer, "{value}");
    buffer
}

#[cfg(test)]
mod tests;
