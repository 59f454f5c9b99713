//! Every signal: what it does, and that no other one ends the gateway.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Client, Folder, Process, wait_until};

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "access.log"
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;

/// Signals that would end a process by default and mean nothing to the gateway.
const UNUSED: [&str; 8] = [
    "ALRM", "VTALRM", "PROF", "POLL", "PWR", "STKFLT", "XCPU", "XFSZ",
];
/// Signals that do not end a process by default, and SIGPIPE.
const HARMLESS: [&str; 5] = ["PIPE", "CHLD", "CONT", "URG", "WINCH"];

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn serves(process: &Process) {
    Client::plain(process.address(0))
        .get("/")
        .times(2)
        .all_are(200);
}

#[test]
fn unused_signals_are_logged_and_nothing_else() {
    let mut process = Process::run(CONFIG);
    for name in UNUSED {
        process.signal(name);
        let name = if name == "POLL" { "IO" } else { name };
        let line = format!("signal ignored signal=SIG{name} ");
        wait_until(&line, || process.logged(&line).len() == 1);
    }
    for number in 0..=30 {
        process.signal(&(34 + number).to_string());
        let line = format!("signal ignored signal=SIGRTMIN+{number} ");
        wait_until(&line, || process.logged(&line).len() == 1);
    }
    for name in HARMLESS {
        process.signal(name);
    }
    serves(&process);
    assert!(process.runs());
    assert!(process.logged("reload").is_empty());
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn every_stop_signal_drains() {
    for name in ["TERM", "INT", "QUIT"] {
        let mut process = Process::run(CONFIG);
        serves(&process);
        process.signal(name);
        assert_eq!(process.exit_code(), Some(0), "{name}");
        assert_eq!(process.logged(" stopped").len(), 1, "{name}");
    }
}

#[test]
fn sigusr1_and_sighup_reopen_the_access_log_of_a_broken_configuration() {
    let process = Process::run(CONFIG);
    let path = |name: &str| process.folder.path().join(name);
    let (log, first, second) = (
        path("access.log"),
        path("access.log.1"),
        path("access.log.2"),
    );
    serves(&process);
    wait_until("the lines are written", || lines(&log) == 2);
    process.folder.write("gateway.toml", "nonsense");

    fs::rename(&log, &first).unwrap();
    process.signal("USR1");
    wait_until("it is reopened", || log.exists());
    serves(&process);
    wait_until("the lines are written", || lines(&log) == 2);
    assert_eq!(lines(&first), 2);
    assert_eq!(process.logged("access log reopened").len(), 1);
    assert!(process.logged("reload").is_empty());

    fs::rename(&log, &second).unwrap();
    process.signal("HUP");
    wait_until("it is reopened", || log.exists());
    wait_until("it is refused", || {
        !process.logged(" reload refused ").is_empty()
    });
    serves(&process);
    wait_until("the lines are written", || lines(&log) == 2);
    assert_eq!(lines(&second), 2);
}

#[test]
fn sigusr1_does_not_wait_for_a_reload_or_a_drain() {
    let drain = CONFIG.replace("[server]\n", "[server]\ndrain_delay = \"1h\"\n");
    let mut process = Process::run(&drain);
    let reopened = || process.logged("access log reopened").len();
    let pipe = process.folder.pipe("gateway.toml");
    process.signal("HUP");
    // Opens when the gateway has it open.
    let held = File::options().write(true).open(&pipe).unwrap();
    process.signal("USR1");
    wait_until("it is reopened during the reload", || reopened() == 1);
    process.signal("TERM");
    wait_until("it stops", || !process.logged("still accepting").is_empty());
    process.signal("USR1");
    wait_until("it is reopened during the delay", || reopened() == 2);
    drop(held);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn sigusr1_without_a_log_file_says_so() {
    let process = Process::run(&CONFIG.replace("access.log", "stdout"));
    process.signal("USR1");
    wait_until("it says so", || {
        !process.logged("no access log to reopen").is_empty()
    });
}

#[test]
fn signals_before_the_startup_has_finished_are_kept() {
    let folder = Folder::new();
    let pipe = folder.pipe("gateway.toml");
    let log = folder.path().join("log");
    let mut command = Process::command();
    command.current_dir(folder.path()).stdout(Stdio::null());
    let mut child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
    // Opens when the gateway reads its configuration.
    let mut written = File::options().write(true).open(&pipe).unwrap();
    for name in ["HUP", "USR1", "ALRM", "PIPE", "40"] {
        let mut kill = Command::new("kill");
        kill.args(["-s", name, &child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }
    // The reload reads a file in place of the pipe.
    fs::rename(folder.write("other", CONFIG), &pipe).unwrap();
    written.write_all(CONFIG.as_bytes()).unwrap();
    drop(written);
    let has = |text: &str| fs::read_to_string(&log).is_ok_and(|log| log.contains(text));
    for text in [
        "\"reloaded\"",
        "access log reopened",
        "SIGALRM",
        "SIGRTMIN+6",
    ] {
        wait_until(text, || has(text));
    }
    let mut kill = Command::new("kill");
    assert!(kill.arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_stopping_gateway_accepts_connections_for_the_drain_delay() {
    let config = CONFIG.replace("[server]\n", "[server]\ndrain_delay = \"1h\"\n");
    let mut process = Process::run(&config);
    let ready = Client::admin(process.admin()).get("/readyz");
    ready.clone().times(1).all_are(200);
    process.signal("TERM");
    wait_until("it is not ready", || {
        !process
            .logged("not ready, still accepting connections delay_s=3600")
            .is_empty()
    });
    ready.times(1).all_are(503);
    serves(&process);
    process.signal("HUP");
    let line = "signal ignored signal=SIGHUP why=stopping";
    wait_until("a reload is ignored", || process.logged(line).len() == 1);
    // The second signal skips the delay and drains.
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    assert_eq!(
        process
            .logged("draining why=\"a second stop signal\"")
            .len(),
        1
    );
}

#[test]
fn a_stopping_gateway_drains_after_the_drain_delay() {
    let config = CONFIG.replace("[server]\n", "[server]\ndrain_delay = \"50ms\"\n");
    let mut process = Process::run(&config);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    let line = "draining why=\"server.drain_delay has passed\"";
    assert_eq!(process.logged(line).len(), 1);
}
