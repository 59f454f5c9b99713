//! An access log that cannot be written costs lines, never requests; the losses are counted, and
//! all is well again when its target is.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use crate::harness::{Client, Folder, Process, Wire, wait_until};

/// More than all that waits between a request and a pipe: two buffers of 8 MiB and the pipe's own.
const MANY: usize = 1600;
const LONG: usize = 12 * 1024;

fn config(access: &str) -> String {
    format!(
        "[server]\nworkers = 2\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [log]\naccess = \"{access}\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[routes]]\nrespond = {{ body = \"hello\" }}\n"
    )
}

fn lost(process: &Process) -> u64 {
    let metrics = Client::admin(process.admin()).get("/metrics").send().text();
    let mut lines = metrics.lines();
    let line = lines.find_map(|l| l.strip_prefix("lockgate_log_lines_dropped_total "));
    line.unwrap().parse().unwrap()
}

fn ask(wire: &mut Wire, path: &str, times: usize) {
    for _ in 0..times {
        let answer = wire.get(path);
        assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    }
}

fn has(file: &Path, path: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.contains(&format!("\"path\":\"{path}\""))
}

#[test]
fn a_full_disk_loses_only_log_lines() {
    let process = Process::run(&config("/dev/full"));
    let mut wire = Client::plain(process.address(0)).connect();
    ask(&mut wire, "/lost", 300);
    wait_until("they are counted", || lost(&process) == 300);
    assert_eq!(process.logged("log_write_failed").len(), 1);
    // Room elsewhere.
    process.reload(&config("access.log"));
    ask(&mut wire, "/found", 1);
    let file = process.folder.path().join("access.log");
    wait_until("it is written", || has(&file, "/found"));
}

/// A gateway that writes to a pipe, and its other end.
fn piped() -> (Process, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let folder = Folder::new();
    let process = Process::run_in(
        folder,
        Process::command(),
        &config("stdout"),
        Stdio::from(writer),
    );
    (process, reader)
}

#[test]
fn a_pipe_that_is_not_read_loses_only_log_lines() {
    let (mut process, reader) = piped();
    let mut wire = Client::plain(process.address(0)).connect();
    let long = format!("/?{}", "x".repeat(LONG));
    ask(&mut wire, &long, MANY);
    let dropped = lost(&process);
    assert!(dropped > 0);

    // The reader wakes up: what waited comes, and so does what follows.
    let (lines, came) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            let _ = lines.send(line.contains("\"path\":\"/after\""));
        }
    });
    let mut waited = 0;
    while waited + dropped < MANY as u64 {
        assert!(!came.recv().unwrap());
        waited += 1;
    }
    ask(&mut wire, "/after", 1);
    assert!(came.recv().unwrap());
    assert_eq!(lost(&process), dropped);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_stop_does_not_wait_for_a_pipe_that_is_not_read() {
    let (mut process, _reader) = piped();
    let mut wire = Client::plain(process.address(0)).connect();
    let long = format!("/?{}", "x".repeat(LONG));
    ask(&mut wire, &long, 20);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_pipe_whose_reader_has_closed_loses_only_log_lines() {
    let (process, reader) = piped();
    drop(reader);
    let mut wire = Client::plain(process.address(0)).connect();
    ask(&mut wire, "/", 100);
    wait_until("they are counted", || lost(&process) == 100);
    ask(&mut wire, "/", 1);
}

#[test]
fn a_removed_log_file_and_one_that_cannot_be_reopened() {
    let process = Process::run(&config("access.log"));
    let mut wire = Client::plain(process.address(0)).connect();
    let file = process.folder.path().join("access.log");
    ask(&mut wire, "/first", 1);
    wait_until("it is written", || has(&file, "/first"));
    fs::remove_file(&file).unwrap();
    ask(&mut wire, "/unseen", 5);
    assert!(!file.exists());
    process.signal("HUP");
    wait_until("it is there again", || file.exists());
    ask(&mut wire, "/second", 1);
    wait_until("it is written", || has(&file, "/second"));

    // It cannot be opened anew: the file that is open stays the log, wherever it is now.
    let moved = process.folder.path().join("moved.log");
    fs::rename(&file, &moved).unwrap();
    fs::create_dir(&file).unwrap();
    process.signal("HUP");
    wait_until("it says so", || {
        !process.logged("log_reopen_failed").is_empty()
    });
    ask(&mut wire, "/third", 1);
    wait_until("it is written", || has(&moved, "/third"));
    fs::remove_dir(&file).unwrap();
    process.signal("HUP");
    wait_until("it is there again", || file.is_file());
    ask(&mut wire, "/fourth", 1);
    wait_until("it is written", || has(&file, "/fourth"));
    assert_eq!(lost(&process), 0);
}

#[test]
fn a_named_pipe_without_a_reader_is_refused_without_blocking() {
    let folder = Folder::new();
    let pipe = folder.pipe("pipe");
    let unread = config(pipe.to_str().unwrap());
    folder.write("gateway.toml", &unread);
    let (code, said) = Process::ends(Process::command(), &folder);
    assert_eq!(code, Some(1), "{said}");
    let expected = "error: cannot open the access log: no process reads from this pipe";
    assert!(said.contains(expected), "{said}");

    let process = Process::run(&config("off"));
    process.reload(&unread);
    assert_eq!(process.logged("reload refused").len(), 1);
    wait_until("it says why", || !process.logged(expected).is_empty());
    ask(&mut Client::plain(process.address(0)).connect(), "/", 3);
}
