//! Writes lines: a bounded queue, and a thread that writes it in batches.
//!
//! A caller never waits for the target. Lines that exceed the queue or that the target rejects are lost and
//! counted: a full disk or a stopped reader costs lines, never requests.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tracing::error;

/// The maximum size of the queue in bytes. The writer may hold another batch of this size.
const CAPACITY: usize = 8 << 20;
/// The buffer size that an idle sink keeps, in bytes.
const KEPT: usize = 256 << 10;
/// How long the writer collects lines, so that one wake-up handles a burst.
const GATHER: Duration = Duration::from_millis(5);
/// The interval at which the writer retries a full non-blocking target.
const RETRY: Duration = Duration::from_millis(10);

/// A target for lines. Clones share it. The writer ends when the last clone is dropped.
#[derive(Clone)]
pub struct LineSink(Arc<Handle>);

/// The callers' side. Dropping it makes the writer finish.
struct Handle(Arc<SinkShared>);

/// The state that callers and the writer share.
#[derive(Default)]
struct SinkShared {
    is_terminal: bool,
    /// The file to reopen. `None` for a stream.
    path: Option<PathBuf>,
    queue: Mutex<LineQueue>,
    /// Notifies the writer of work.
    wake: Condvar,
    /// Notifies callers of `flush` that a batch is finished.
    done: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct LineQueue {
    bytes: Vec<u8>,
    /// The number of lines accepted so far.
    accepted: u64,
    /// The number of lines written or lost so far.
    completed: u64,
    /// Whether the writer sleeps until it is notified.
    parked: bool,
    /// Whether a caller waits, so that the writer does not collect more lines.
    flush_requested: bool,
    /// The number of requests to reopen the file, and the number of those completed.
    reopen_requests: u64,
    reopened: u64,
    /// The number of bytes in `bytes` that belong to the file before the last reopen request.
    before: usize,
    closed: bool,
}

/// The state of the writer thread.
struct SinkWriter {
    shared: Arc<SinkShared>,
    file: File,
    /// Whether failures are logged. `false` for standard error, which cannot log its own failures.
    reports: bool,
    batch: Vec<u8>,
    /// Whether the last write stopped inside a line.
    mid_line: bool,
    /// Whether the failure was already logged.
    reported: bool,
}

/// The next work of the writer.
struct Work {
    accepted: u64,
    reopen_requests: u64,
    /// The number of bytes to write before the file is reopened. `None` for no reopen.
    reopen: Option<usize>,
}

// === impl LineSink ===

impl LineSink {
    /// Opens standard output.
    pub fn stdout() -> io::Result<Self> {
        Self::stream(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    /// Opens standard error.
    pub fn stderr() -> io::Result<Self> {
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        Self::open(stderr.into(), None, false)
    }

    /// Opens the file at `path` for appending. Creates it if it does not exist.
    pub fn file(path: &Path) -> io::Result<Self> {
        Self::open(append(path)?, Some(path.to_owned()), true)
    }

    /// Uses an open file, pipe or socket.
    pub fn stream(file: File) -> io::Result<Self> {
        Self::open(file, None, true)
    }

    fn open(file: File, path: Option<PathBuf>, reports: bool) -> io::Result<Self> {
        let shared = Arc::new(SinkShared {
            is_terminal: file.is_terminal(),
            path,
            ..SinkShared::default()
        });
        let writer = SinkWriter {
            shared: shared.clone(),
            file,
            reports,
            batch: Vec::new(),
            mid_line: false,
            reported: false,
        };
        let thread = thread::Builder::new().name("log".into());
        thread.spawn(|| writer.run())?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Queues one line, which must not contain a line feed. Never blocks.
    pub fn line(&self, line: &[u8]) {
        let shared = &*self.0.0;
        let mut queue = shared.queue.lock();
        if queue.bytes.len() + line.len() >= CAPACITY {
            drop(queue);
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.bytes.extend_from_slice(line);
        queue.bytes.push(b'\n');
        queue.accepted += 1;
        if std::mem::take(&mut queue.parked) {
            drop(queue);
            shared.wake.notify_one();
        }
    }

    /// Requests that the file is reopened after all queued lines were written. Has no effect on a stream.
    pub fn reopen(&self) {
        let mut queue = self.0.0.queue.lock();
        queue.reopen_requests += 1;
        queue.before = queue.bytes.len();
        drop(queue);
        self.0.0.wake.notify_one();
    }

    /// Returns the number of lines lost so far.
    pub fn dropped(&self) -> u64 {
        self.0.0.dropped.load(Ordering::Relaxed)
    }

    /// Returns the path of the file. `None` for a stream.
    pub fn path(&self) -> Option<&Path> {
        self.0.0.path.as_deref()
    }

    /// Returns whether the target is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.0.0.is_terminal
    }

    /// Waits at most `timeout` until all queued lines were written or lost, and returns whether they were.
    /// Blocks, so it is for shutdown and not for requests.
    pub fn flush(&self, timeout: Duration) -> bool {
        let shared = &*self.0.0;
        let mut queue = shared.queue.lock();
        let (accepted, reopen_requests) = (queue.accepted, queue.reopen_requests);
        queue.flush_requested = true;
        shared.wake.notify_one();
        let unsettled =
            |queue: &mut LineQueue| queue.completed < accepted || queue.reopened < reopen_requests;
        let waited = shared.done.wait_while_for(&mut queue, unsettled, timeout);
        !waited.timed_out()
    }
}

impl fmt::Debug for LineSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.lock().closed = true;
        self.0.wake.notify_one();
    }
}

// === impl LineQueue ===

impl LineQueue {
    fn is_idle(&self) -> bool {
        self.bytes.is_empty() && self.reopened == self.reopen_requests
    }
}

// === impl SinkWriter ===

impl SinkWriter {
    fn run(mut self) {
        while let Some(work) = self.next() {
            if let Some(before) = work.reopen {
                let after = self.batch.split_off(before.min(self.batch.len()));
                self.write_batch();
                self.reopen();
                self.batch = after;
            }
            self.write_batch();
            self.settle(work);
        }
    }

    /// Waits for work and takes all of it. `None` after the sink was closed.
    fn next(&mut self) -> Option<Work> {
        let mut queue = self.shared.queue.lock();
        while queue.is_idle() && !queue.closed {
            queue.parked = true;
            self.shared.wake.wait(&mut queue);
        }
        queue.parked = false;
        if !queue.flush_requested && !queue.closed {
            self.shared.wake.wait_for(&mut queue, GATHER);
        }
        if queue.is_idle() {
            return None;
        }
        std::mem::swap(&mut queue.bytes, &mut self.batch);
        Some(Work {
            accepted: queue.accepted,
            reopen_requests: queue.reopen_requests,
            reopen: (queue.reopen_requests > queue.reopened).then_some(queue.before),
        })
    }

    fn write_batch(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() {
            match self.write(&batch) {
                Ok(()) => self.mid_line = false,
                Err((rest, error)) => self.lose(&batch, rest, &error),
            }
        }
        batch.clear();
        batch.shrink_to(KEPT);
        self.batch = batch;
    }

    /// Writes a batch. The error has the number of unwritten bytes and the cause.
    fn write(&mut self, batch: &[u8]) -> Result<(), (usize, io::Error)> {
        if self.mid_line {
            write_all(&mut self.file, b"\n").map_err(|(_, error)| (batch.len(), error))?;
            self.mid_line = false;
        }
        write_all(&mut self.file, batch)
    }

    fn lose(&mut self, batch: &[u8], rest: usize, error: &io::Error) {
        let (written, lost) = batch.split_at(batch.len().saturating_sub(rest));
        self.mid_line |= written.last().is_some_and(|b| *b != b'\n');
        let lines = lost.iter().filter(|b| **b == b'\n').count() as u64;
        self.shared.dropped.fetch_add(lines, Ordering::Relaxed);
        self.report("log_write_failed", error);
    }

    fn reopen(&mut self) {
        let Some(path) = &self.shared.path else {
            return;
        };
        match append(path) {
            Ok(file) => {
                self.file = file;
                self.mid_line = false;
                self.reported = false;
            }
            Err(error) => self.report("log_reopen_failed", &error),
        }
    }

    /// Logs a failure, once until the target is reopened. Lost lines are counted separately.
    fn report(&mut self, event: &str, error: &io::Error) {
        if !self.reports || std::mem::replace(&mut self.reported, true) {
            return;
        }
        let target = self.shared.path.as_deref().unwrap_or(Path::new("stream"));
        error!(target = %target.display(), %error, "{event}");
    }

    fn settle(&self, work: Work) {
        let mut queue = self.shared.queue.lock();
        queue.completed = work.accepted;
        queue.flush_requested = false;
        queue.reopened = work.reopen_requests;
        drop(queue);
        self.shared.done.notify_all();
    }
}

/// Opens a file for appending. Only its owner and group may read it, because it contains addresses. A pipe
/// without a reader is an error, because waiting for a reader would block a start or a reload.
fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| name_pipe(path, error))?;
    // The writer has its own thread, so it may block on a slow reader.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Replaces the error of a pipe without a reader with a clear text.
fn name_pipe(path: &Path, error: io::Error) -> io::Error {
    let is_pipe = || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe() {
        io::Error::new(io::ErrorKind::BrokenPipe, "no process reads from this pipe")
    } else {
        error
    }
}

/// Like [`Write::write_all`], but waits for a non-blocking target and returns the number of unwritten bytes.
fn write_all(file: &mut File, mut bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err((bytes.len(), io::ErrorKind::WriteZero.into())),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY),
            Err(e) => return Err((bytes.len(), e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
