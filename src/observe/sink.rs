//! Where lines go: a bounded queue and a thread that writes it out in batches.
//!
//! A caller never waits for the target. What finds the queue full, or what the target refuses, is
//! lost and counted: a full disk or a reader that stopped costs lines, never requests.

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

/// Bytes that may wait; as much again may be on its way to the target.
const CAPACITY: usize = 8 << 20;
/// Buffer that an idle sink keeps.
const KEPT: usize = 256 << 10;
/// How long the writer lets lines gather: one wake-up then serves a whole burst.
const GATHER: Duration = Duration::from_millis(5);
/// How long the writer waits for a non-blocking target that has no room.
const RETRY: Duration = Duration::from_millis(10);

/// A place for lines. Clones share it; the writer ends when the last one is gone.
#[derive(Clone)]
pub struct LineSink(Arc<Handle>);

/// What the callers hold. Dropping it makes the writer finish.
struct Handle(Arc<SinkShared>);

/// What callers and writer share.
#[derive(Default)]
struct SinkShared {
    is_terminal: bool,
    /// The file to reopen. `None` for a stream that was given open.
    path: Option<PathBuf>,
    queue: Mutex<LineQueue>,
    /// Tells the writer that there is work.
    wake: Condvar,
    /// Tells those who flush that a batch is done.
    done: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct LineQueue {
    bytes: Vec<u8>,
    /// Lines ever accepted.
    accepted: u64,
    /// Lines the writer is done with, written or lost.
    settled: u64,
    /// The writer sleeps until it is woken.
    parked: bool,
    /// Someone waits: do not gather.
    hurry: bool,
    /// How often the file was to be opened anew, and how often that was done.
    asked: u64,
    reopened: u64,
    /// How many of `bytes` are for the file as it was when that was asked last.
    before: usize,
    closed: bool,
}

/// The thread's own side.
struct SinkWriter {
    shared: Arc<SinkShared>,
    file: File,
    /// The standard error stream cannot report its own failures.
    reports: bool,
    batch: Vec<u8>,
    /// The last write stopped inside a line.
    torn: bool,
    /// The failure was reported.
    reported: bool,
}

/// What the writer is to do next.
struct Work {
    accepted: u64,
    asked: u64,
    /// To be opened anew after so many bytes.
    reopen: Option<usize>,
}

// === impl LineSink ===

impl LineSink {
    /// The standard output.
    pub fn stdout() -> io::Result<Self> {
        Self::stream(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    /// The standard error stream.
    pub fn stderr() -> io::Result<Self> {
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        Self::open(stderr.into(), None, false)
    }

    /// The end of the file at `path`, which is made if it is not there.
    pub fn file(path: &Path) -> io::Result<Self> {
        Self::open(append(path)?, Some(path.to_owned()), true)
    }

    /// A file, pipe or socket that is open already.
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
            torn: false,
            reported: false,
        };
        let thread = thread::Builder::new().name("log".into());
        thread.spawn(|| writer.run())?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Queues one line, given without its line feed and without one inside. Never waits.
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

    /// Asks for the file to be opened anew, after what is queued now was written. Does nothing to
    /// a stream.
    pub fn reopen(&self) {
        let mut queue = self.0.0.queue.lock();
        queue.asked += 1;
        queue.before = queue.bytes.len();
        drop(queue);
        self.0.0.wake.notify_one();
    }

    /// Lines lost so far.
    pub fn dropped(&self) -> u64 {
        self.0.0.dropped.load(Ordering::Relaxed)
    }

    /// The file that it writes; `None`: a stream.
    pub fn path(&self) -> Option<&Path> {
        self.0.0.path.as_deref()
    }

    /// Whether a person may be reading.
    pub fn is_terminal(&self) -> bool {
        self.0.0.is_terminal
    }

    /// Waits until what is queued now was written or lost, at most `timeout`; says whether it was.
    /// Blocks: for shutdown, not for a request.
    pub fn flush(&self, timeout: Duration) -> bool {
        let shared = &*self.0.0;
        let mut queue = shared.queue.lock();
        let (accepted, asked) = (queue.accepted, queue.asked);
        queue.hurry = true;
        shared.wake.notify_one();
        let unsettled = |queue: &mut LineQueue| queue.settled < accepted || queue.reopened < asked;
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
        self.bytes.is_empty() && self.reopened == self.asked
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

    /// Sleeps until there is work, and takes all of it; `None`: no more will come.
    fn next(&mut self) -> Option<Work> {
        let mut queue = self.shared.queue.lock();
        while queue.is_idle() && !queue.closed {
            queue.parked = true;
            self.shared.wake.wait(&mut queue);
        }
        queue.parked = false;
        if !queue.hurry && !queue.closed {
            self.shared.wake.wait_for(&mut queue, GATHER);
        }
        if queue.is_idle() {
            return None;
        }
        std::mem::swap(&mut queue.bytes, &mut self.batch);
        Some(Work {
            accepted: queue.accepted,
            asked: queue.asked,
            reopen: (queue.asked > queue.reopened).then_some(queue.before),
        })
    }

    fn write_batch(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() {
            match self.write(&batch) {
                Ok(()) => self.torn = false,
                Err((rest, error)) => self.lose(&batch, rest, &error),
            }
        }
        batch.clear();
        batch.shrink_to(KEPT);
        self.batch = batch;
    }

    /// Writes all, or gives back how many bytes were not written and why.
    fn write(&mut self, batch: &[u8]) -> Result<(), (usize, io::Error)> {
        if self.torn {
            write_all(&mut self.file, b"\n").map_err(|(_, error)| (batch.len(), error))?;
            self.torn = false;
        }
        write_all(&mut self.file, batch)
    }

    fn lose(&mut self, batch: &[u8], rest: usize, error: &io::Error) {
        let (written, lost) = batch.split_at(batch.len().saturating_sub(rest));
        self.torn |= written.last().is_some_and(|b| *b != b'\n');
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
                self.torn = false;
                self.reported = false;
            }
            Err(error) => self.report("log_reopen_failed", &error),
        }
    }

    /// Once until the target is opened anew: the losses themselves are counted.
    fn report(&mut self, event: &str, error: &io::Error) {
        if !self.reports || std::mem::replace(&mut self.reported, true) {
            return;
        }
        let target = self.shared.path.as_deref().unwrap_or(Path::new("stream"));
        error!(target = %target.display(), %error, "{event}");
    }

    fn settle(&self, work: Work) {
        let mut queue = self.shared.queue.lock();
        queue.settled = work.accepted;
        queue.hurry = false;
        queue.reopened = work.asked;
        drop(queue);
        self.shared.done.notify_all();
    }
}

/// Opens the end of a file that others may not read: it holds addresses. A pipe that nobody reads
/// is an error; to wait for a reader would stop a start or a reload for as long.
fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| name_pipe(path, error))?;
    // The writer has a thread of its own, and may wait for a slow reader.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Puts a pipe without a reader in words.
fn name_pipe(path: &Path, error: io::Error) -> io::Error {
    let is_pipe = || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    match error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe() {
        true => io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads this pipe"),
        false => error,
    }
}

/// Like [`Write::write_all`], but waits for a non-blocking target and tells what is left.
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
