//! Sinks on real files and real pipes.

use super::*;
use crate::clock::Clock;
use crate::observe::{LogHandle, LogOutput};
use std::io::{PipeReader, Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use tracing::Level;

const LONG: Duration = Duration::from_secs(60);

fn piped() -> (LineSink, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let file = File::from(OwnedFd::from(writer));
    (LineSink::stream(file).unwrap(), reader)
}

fn writer(file: File) -> SinkWriter {
    SinkWriter {
        shared: Arc::default(),
        file,
        reports: true,
        batch: Vec::new(),
        mid_line: false,
        reported: false,
    }
}

/// A directory for this test.
fn place(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("lockgate-sink-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).unwrap();
    place
}

#[test]
fn lines_arrive_in_order_and_dropping_the_sink_ends_the_stream() {
    let (sink, mut reader) = piped();
    let clone = sink.clone();
    for i in 0..1000 {
        sink.line(format!("line {i}").as_bytes());
    }
    clone.line(b"last");
    drop((sink, clone));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1001);
    assert_eq!(lines[7], "line 7");
    assert_eq!(lines[1000], "last");
}

#[test]
fn a_stalled_reader_loses_lines_without_blocking_and_can_resume() {
    let (sink, mut reader) = piped();
    let line = [b'x'; 1023];
    let sent = 3 * CAPACITY / 1024;
    for _ in 0..sent {
        sink.line(&line);
    }
    assert!(!sink.flush(Duration::from_millis(1)), "nobody reads");
    let lost = sink.dropped() as usize;
    assert!(lost >= CAPACITY / 1024, "lost {lost} of {sent}");

    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    assert!(sink.flush(LONG));
    sink.line(b"and on");
    assert!(sink.flush(LONG));
    assert_eq!(sink.dropped() as usize, lost);
    drop(sink);
    let bytes = reading.join().unwrap();
    assert!(bytes.ends_with(b"x\nand on\n"));
    let arrived = bytes.split(|b| *b == b'\n').filter(|l| l.len() == 1023);
    assert_eq!(arrived.count() + lost, sent);
}

#[test]
fn a_closed_reader_is_reported_once_and_lost_lines_are_counted() {
    let (stderr, mut told) = piped();
    let (log, dispatch) = LogHandle::to(stderr, Clock::System, "");
    log.configure(Level::INFO, LogOutput::Text);
    let (reader, closed) = pipe().unwrap();
    let mut writer = writer(File::from(OwnedFd::from(closed)));
    drop(reader);
    tracing::dispatcher::with_default(&dispatch, || {
        // The thread of another sink, which has no log, may have failed first.
        tracing::callsite::rebuild_interest_cache();
        for _ in 0..3 {
            writer.batch = b"lost\n".to_vec();
            writer.write_batch();
        }
    });
    assert_eq!(writer.shared.dropped.load(Ordering::Relaxed), 3);
    drop((log, dispatch));
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("ERROR log_write_failed target=stream error="));
}

#[test]
fn a_full_disk_loses_only_lines() {
    let sink = LineSink::stream(File::options().write(true).open("/dev/full").unwrap()).unwrap();
    sink.line(b"one");
    sink.line(b"two");
    assert!(sink.flush(LONG));
    assert_eq!(sink.dropped(), 2);
}

#[test]
fn a_line_truncated_by_an_error_does_not_corrupt_the_next() {
    let path = place("torn").join("access.log");
    let mut writer = writer(append(&path).unwrap());
    let full = io::Error::from(io::ErrorKind::StorageFull);
    writer.file.write_all(b"whole\ncu").unwrap();
    writer.lose(b"whole\ncut\nlost\n", 7, &full);
    writer.batch = b"next\n".to_vec();
    writer.write_batch();
    assert_eq!(std::fs::read(&path).unwrap(), b"whole\ncu\nnext\n");
    assert_eq!(writer.shared.dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn a_file_is_appended_to_and_not_world_readable() {
    let path = place("append").join("access.log");
    for line in ["one", "two"] {
        let sink = LineSink::file(&path).unwrap();
        sink.line(line.as_bytes());
        assert!(sink.flush(LONG));
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
}

#[test]
fn reopening_follows_a_rotation() {
    let place = place("reopen");
    let (path, old) = (place.join("access.log"), place.join("access.log.1"));
    let sink = LineSink::file(&path).unwrap();
    sink.line(b"before");
    assert!(sink.flush(LONG));
    std::fs::rename(&path, &old).unwrap();
    sink.line(b"still before");
    sink.reopen();
    assert!(sink.flush(LONG));
    sink.line(b"after");
    assert!(sink.flush(LONG));
    assert_eq!(std::fs::read(&old).unwrap(), b"before\nstill before\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"after\n");
}

#[test]
fn a_failed_reopen_keeps_the_file() {
    let place = place("keep");
    let (path, moved) = (place.join("logs/access.log"), place.join("moved"));
    std::fs::create_dir(place.join("logs")).unwrap();
    let sink = LineSink::file(&path).unwrap();
    std::fs::rename(place.join("logs"), &moved).unwrap();
    sink.reopen();
    assert!(sink.flush(LONG));
    sink.line(b"kept");
    assert!(sink.flush(LONG));
    assert_eq!(std::fs::read(moved.join("access.log")).unwrap(), b"kept\n");
}

#[test]
fn a_file_that_cannot_be_opened_is_an_immediate_error() {
    assert!(LineSink::file(Path::new("/nowhere/at/all/access.log")).is_err());
}

/// A named pipe.
fn fifo(place: &Path) -> PathBuf {
    let path = place.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}

/// The reader of a pipe, which does not wait for a writer.
fn reader(path: &Path) -> File {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path).unwrap()
}

#[test]
fn a_pipe_without_a_reader_is_an_immediate_error() {
    let place = place("unread");
    let path = fifo(&place);
    let (send, opened) = std::sync::mpsc::channel();
    thread::spawn(move || send.send(LineSink::file(&path)));
    let error = opened.recv_timeout(LONG).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no process reads from this pipe");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_named_pipe_behaves_like_other_pipes() {
    let place = place("fifo");
    let path = fifo(&place);
    let mut first = reader(&path);
    let sink = LineSink::file(&path).unwrap();
    let flags = fcntl_getfl(append(&path).unwrap()).unwrap();
    assert!(!flags.contains(OFlags::NONBLOCK), "the writer waits");
    sink.line(b"one");
    assert!(sink.flush(LONG));
    let mut text = [0; 9];
    assert_eq!(first.read(&mut text).unwrap(), 4);
    assert_eq!(&text[..4], b"one\n");

    drop(first);
    sink.reopen();
    sink.line(b"lost");
    assert!(sink.flush(LONG));
    assert_eq!(sink.dropped(), 1);

    let mut second = reader(&path);
    sink.line(b"again");
    assert!(sink.flush(LONG));
    assert_eq!(second.read(&mut text).unwrap(), 6);
    assert_eq!((&text[..6], sink.dropped()), (&b"again\n"[..], 1));
    std::fs::remove_dir_all(place).unwrap();
}
