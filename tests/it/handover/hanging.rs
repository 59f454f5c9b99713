//! New processes that fail, or stop half-way, and an old one that is told to stop meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use lockgate::tls::SavedKeys;

use crate::harness::{Client, Folder, Process, wait_until};

const CONFIG: &str = r#"
[server]
workers = 1
drain_timeout = "20s"
[log]
access = "off"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;

/// Reads all that it is given (a socket, the secret, the keys of tickets), says that it is prepared
/// and hears that it is to serve, then does this.
fn told_then(script: &str) -> String {
    let given = b"L".len() + b"S".len() + 32 + b"T".len() + SavedKeys::LENGTH + b"E".len();
    format!("echo $$ > pid; head -c {given} > given; printf P >&0; head -c 1 > told; {script}")
}

/// A gateway whose program is this script from the second start on.
fn with_successor(script: &str) -> Process {
    let folder = Folder::new();
    let path = folder.write("lockgate", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Process::command();
    command.arg0(&path);
    let stdout = fs::File::create(folder.path().join("stdout")).unwrap();
    Process::run_in(folder, command, CONFIG, stdout.into())
}

fn has(process: &Process, file: &str) -> bool {
    let text = fs::read(process.folder.path().join(file));
    text.is_ok_and(|text| !text.is_empty())
}

/// Whether the script, or what it has become, runs.
fn script_runs(process: &Process) -> bool {
    let pid = fs::read_to_string(process.folder.path().join("pid")).unwrap();
    // One that nobody has waited for yet has ended too.
    let state = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    state.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Tells the old process to hand over, and then to stop, when the new one was told to serve.
fn stopped_after_the_word(process: &Process) {
    process.signal("USR2");
    wait_until("it was told to serve", || has(process, "told"));
    let word = fs::read(process.folder.path().join("told")).unwrap();
    assert_eq!(word, b"C", "the counters' word, and nothing before it");
    process.signal("TERM");
    wait_until("the stop was heard", || {
        !process
            .logged(" received a stop signal during the handover")
            .is_empty()
    });
}

/// However much it has read of what it was given.
#[test]
fn a_failed_new_process_is_always_logged_the_same() {
    for script in [
        "exit 3",
        "head -c 1 > /dev/null; exit 3",
        "exec < /dev/null; sleep 0.2; exit 3",
    ] {
        let process = with_successor(script);
        process.signal("USR2");
        wait_until("it says why", || {
            !process.logged(" handover failed ").is_empty()
        });
        let said = process.logged(" handover failed ");
        assert_eq!(said.len(), 1, "{said:?}");
        let wanted =
            "error=\"the new process ended with exit status: 3: its own message gives the reason\"";
        assert!(said[0].contains(wanted), "{script}: {said:?}");
        Client::plain(process.address(0))
            .get("/")
            .times(2)
            .all_are(200);
    }
}

#[test]
fn a_new_process_that_hangs_does_not_delay_a_stop() {
    let mut process = with_successor(&told_then("exec sleep 600"));
    stopped_after_the_word(&process);
    assert_eq!(process.exit_code(), Some(0));
    let said = process.logged(" handover failed ");
    assert!(
        said.len() == 1 && said[0].contains("received a stop signal"),
        "{said:?}"
    );
    assert_eq!(process.logged(" stopped").len(), 1);
    assert!(!script_runs(&process));
}

#[test]
fn signals_during_a_handover_are_logged() {
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; exit 3";
    let process = with_successor(script);
    process.signal("USR2");
    wait_until("it runs", || has(&process, "pid"));
    for (signal, said) in [
        ("HUP", " the reload waits for the handover"),
        (
            "USR2",
            " signal ignored signal=SIGUSR2 why=\"a handover is in progress\"",
        ),
    ] {
        process.signal(signal);
        wait_until(said, || process.logged(said).len() == 1);
    }
    assert!(process.logged(" reloaded ").is_empty());
    process.folder.write("go", "yes");
    wait_until("it reloads", || process.logged(" reloaded ").len() == 1);
    assert_eq!(process.logged(" handover failed ").len(), 1);
    assert_eq!(process.logged(" handover started ").len(), 1);
}

/// The new process may have read the file before it was changed.
#[test]
fn a_reload_during_a_handover_is_passed_on() {
    let serve = "trap 'echo yes > reloaded' HUP; printf G >&0; head -c 1 > farewell; \
                 while :; do sleep 0.05; done";
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let mut process = with_successor(&told_then(&format!("{wait}; {serve}")));
    process.signal("USR2");
    wait_until("it was told to serve", || has(&process, "told"));
    process.signal("HUP");
    let waits = " the reload waits for the handover";
    wait_until(waits, || process.logged(waits).len() == 1);
    process.folder.write("go", "yes");
    wait_until("the new one has heard of it", || has(&process, "reloaded"));
    assert_eq!(process.exit_code(), Some(0));
    assert!(process.logged(" reloaded ").is_empty());
}

#[test]
fn a_second_stop_immediately_ends_a_handover_that_hangs() {
    // A child of its own has the socket too.
    let mut process = with_successor(&told_then("sleep 600 & echo $! > sleeper; wait"));
    stopped_after_the_word(&process);
    wait_until("its child runs", || has(&process, "sleeper"));
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(1));
    wait_until("it says so", || {
        process.logged(" stopped immediately").len() == 1
    });
    assert!(process.logged(" stopping").is_empty());
    wait_until("it is gone", || !script_runs(&process));
    let sleeper = fs::read_to_string(process.folder.path().join("sleeper")).unwrap();
    let ended = Command::new("kill").arg(sleeper.trim()).status();
    assert!(ended.unwrap().success());
}

/// It may have requests by then: the stop is passed on.
#[test]
fn a_stop_after_the_go_ahead_is_passed_on() {
    // The stop can come before it hears the last word.
    let serve = "trap '[ -e farewell ] || head -c 1 > farewell; echo yes > stopped; exit 0' TERM; \
                 printf G >&0; head -c 1 > farewell; while :; do sleep 0.05; done";
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let mut process = with_successor(&told_then(&format!("{wait}; {serve}")));
    stopped_after_the_word(&process);
    process.folder.write("go", "yes");
    assert_eq!(process.exit_code(), Some(0));
    wait_until("it names its successor", || process.successors().len() == 1);
    wait_until("the new one has heard of it", || has(&process, "stopped"));
    assert_eq!(
        fs::read(process.folder.path().join("farewell")).unwrap(),
        b"F"
    );
    assert_eq!(process.logged(" stopped").len(), 1);
    assert!(process.logged(" handover failed").is_empty());
}
