//! `server.pid_file`, and the commands that signal its process or ask the admin port.

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use crate::harness::{Client, Folder, Process, wait_until};

const CONFIG: &str = r#"
[server]
workers = 1
pid_file = "run.pid"
[log]
access = "access.log"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;
const ADMIN: &str = "[admin]\naddress = \"127.0.0.1:0\"\n";

fn without_pid_file(config: &str) -> String {
    config.replace("pid_file = \"run.pid\"\n", "")
}

fn pid_in(process: &Process) -> Option<u32> {
    let text = fs::read_to_string(process.folder.path().join("run.pid")).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Runs a command in the folder of a gateway.
fn said(process: &Process, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Process::output(&process.folder, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn has_written(process: &Process) {
    wait_until("the PID file is written", || {
        pid_in(process) == Some(process.id())
    });
}

#[test]
fn the_pid_file_exists_while_the_gateway_runs() {
    let mut process = Process::run(CONFIG);
    has_written(&process);
    let message = format!("sent SIGTERM to process {}\n", process.id());
    assert_eq!(said(&process, &["stop"]), (Some(0), message, String::new()));
    assert_eq!(process.exit_code(), Some(0));
    assert!(!process.folder.path().join("run.pid").exists());
    let missing = "lockgate: the PID file `run.pid` does not exist: the gateway is not running, or it was started \
                   before `pid_file` was set or changed\n";
    for command in ["stop", "reopen-logs", "reload"] {
        assert_eq!(
            said(&process, &[command]),
            (Some(1), String::new(), missing.into()),
            "{command}"
        );
    }
}

#[test]
fn the_new_process_of_a_handover_owns_the_pid_file() {
    let mut process = Process::run(CONFIG);
    has_written(&process);
    process.signal("USR2");
    wait_until("it has handed over", || !process.successors().is_empty());
    let successor = process.successors()[0];
    assert_eq!(pid_in(&process), Some(successor));
    assert_eq!(process.exit_code(), Some(0));
    assert_eq!(pid_in(&process), Some(successor));
    let (code, message, _) = said(&process, &["stop"]);
    assert_eq!(
        (code, message),
        (Some(0), format!("sent SIGTERM to process {successor}\n"))
    );
    wait_until("both have ended", || process.logged(" stopped").len() == 2);
    let path = process.folder.path().join("run.pid");
    wait_until("the file is removed", || !path.exists());
}

#[test]
fn a_failed_handover_leaves_the_pid_file() {
    let process = Process::run(CONFIG);
    has_written(&process);
    process.folder.write("gateway.toml", "nonsense");
    process.signal("USR2");
    wait_until("it has failed", || {
        !process.logged("handover failed").is_empty()
    });
    assert_eq!(pid_in(&process), Some(process.id()));
}

#[test]
fn a_stale_pid_file_is_replaced_and_one_of_a_running_gateway_is_an_error() {
    let mut first = Process::run(CONFIG);
    has_written(&first);
    let path = first.folder.path().join("run.pid");
    let config = CONFIG.replace("run.pid", &path.display().to_string());
    first.folder.write("second.toml", &config);
    let (code, _, error) = said(&first, &["--config", "second.toml"]);
    assert_eq!(code, Some(1));
    let message = format!(
        "error: another lockgate is running: process {} owns the PID file `{}`",
        first.id(),
        path.display()
    );
    assert!(error.contains("second.toml:4:12: "), "{error}");
    assert!(error.contains(&message), "{error}");
    // The first gateway is not affected.
    assert_eq!(pid_in(&first), Some(first.id()));

    // A gateway that was killed leaves a file that the next one replaces.
    first.signal("KILL");
    assert_eq!(first.exit_code(), None);
    assert_eq!(pid_in(&first), Some(first.id()));
    let (code, _, error) = said(&first, &["reopen-logs"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("the process that wrote the PID file `run.pid` has ended"),
        "{error}"
    );
    let second = Process::run(&config);
    wait_until("the PID file is replaced", || {
        pid_in(&first) == Some(second.id())
    });

    // Another file is never overwritten.
    first
        .folder
        .write("third.toml", CONFIG.replace("run.pid", "third.toml"));
    let before = fs::read_to_string(first.folder.path().join("third.toml")).unwrap();
    let (code, _, error) = said(&first, &["--config", "third.toml"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("`third.toml` is not a PID file: it has other contents"),
        "{error}"
    );
    assert_eq!(
        fs::read_to_string(first.folder.path().join("third.toml")).unwrap(),
        before
    );
    let (code, checked, _) = said(&first, &["check", "--config", "third.toml"]);
    assert_eq!(code, Some(1));
    assert!(
        checked.contains("third.toml:4:12: error: `third.toml` is not a PID file"),
        "{checked}"
    );
}

#[test]
fn a_check_reports_a_pid_file_without_a_folder_and_accepts_that_of_the_running_gateway() {
    let process = Process::run(CONFIG);
    has_written(&process);
    let ok = (Some(0), "gateway.toml: ok\n".to_owned(), String::new());
    assert_eq!(said(&process, &["check"]), ok);
    let config = CONFIG.replace("run.pid", "none/run.pid");
    process.folder.write("missing.toml", config);
    let (code, checked, _) = said(&process, &["check", "--config", "missing.toml"]);
    assert_eq!(code, Some(1));
    assert!(
        checked.contains("missing.toml:4:12: error: cannot use the PID file `none/run.pid`: "),
        "{checked}"
    );
    assert!(
        checked.contains("create the folder: `mkdir -p none`"),
        "{checked}"
    );
    assert!(!process.folder.path().join("none").exists());
}

#[test]
fn a_start_that_fails_leaves_no_pid_file() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::new();
    folder.write("gateway.toml", CONFIG.replace("127.0.0.1:0", &address));
    assert_eq!(Process::output(&folder, &["run"]).status.code(), Some(1));
    assert!(!folder.path().join("run.pid").exists());
}

#[test]
fn a_reload_shows_its_result_if_there_is_an_admin_port() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = free.local_addr().unwrap().to_string();
    drop(free);
    let config = format!("{ADMIN}{CONFIG}").replacen("127.0.0.1:0", &admin, 1);
    let mut process = Process::run(&config);
    has_written(&process);
    let reloaded = (Some(0), "reloaded: 0 rules\n".to_owned(), String::new());
    assert_eq!(said(&process, &["reload"]), reloaded);
    assert_eq!(process.logged(" reloaded ").len(), 1);
    let bad = config.replace("[[routes]]", "[[routse]]\n[[routes]]\nhots = 1");
    process.folder.write("gateway.toml", bad);
    let (code, _, error) = said(&process, &["reload"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("gateway.toml:11:3: error: unknown"),
        "{error}"
    );
    assert!(
        error.contains("gateway.toml:13:1: error: unknown"),
        "{error}"
    );
    assert!(error.ends_with("the reload was refused; the gateway keeps its configuration\n"));

    // Without a PID file, the admin port reloads.
    process
        .folder
        .write("gateway.toml", without_pid_file(&config));
    assert_eq!(said(&process, &["reload"]), reloaded);
    // Neither has a gateway that was started before the setting, or another one has left the file.
    let moved = config.replace("run.pid", "moved.pid");
    process.folder.write("gateway.toml", &moved);
    assert_eq!(said(&process, &["reload"]), reloaded);
    process.folder.write("moved.pid", "1\n");
    assert_eq!(said(&process, &["reload"]), reloaded);
    let bad = without_pid_file(&config).replace("[[routes]]", "[[routse]]");
    process.folder.write("gateway.toml", bad);
    let (code, _, error) = said(&process, &["reload"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("gateway.toml:10:3: error: unknown"),
        "{error}"
    );
    // No gateway runs: there are two reasons to tell.
    process.signal("KILL");
    assert_eq!(process.exit_code(), None);
    process.folder.write("gateway.toml", &moved);
    let (code, _, error) = said(&process, &["reload"]);
    assert_eq!(code, Some(2));
    assert!(
        error.starts_with("lockgate: the process that wrote the PID file `moved.pid` has ended: "),
        "{error}"
    );
    assert!(
        error.contains("\nlockgate: cannot reach the gateway at http://"),
        "{error}"
    );
}

#[test]
fn a_reload_without_an_admin_port_sends_the_signal() {
    let process = Process::run(CONFIG);
    has_written(&process);
    let message = format!(
        "sent SIGHUP to process {}; the result is in its log\n",
        process.id()
    );
    assert_eq!(
        said(&process, &["reload"]),
        (Some(0), message, String::new())
    );
    wait_until("it has reloaded", || {
        !process.logged(" reloaded ").is_empty()
    });
    // A broken file keeps the setting, so logs can be rotated.
    process
        .folder
        .write("gateway.toml", format!("{CONFIG}\nnonsense"));
    let message = format!("sent SIGUSR1 to process {}\n", process.id());
    assert_eq!(
        said(&process, &["reopen-logs"]),
        (Some(0), message, String::new())
    );
    wait_until("it has reopened", || {
        !process.logged("access log reopened").is_empty()
    });
}

#[test]
fn commands_name_the_setting_that_they_need() {
    let process = Process::run(&without_pid_file(CONFIG));
    for (command, needs) in [
        ("stop", "`server.pid_file` in gateway.toml"),
        ("reopen-logs", "`server.pid_file` in gateway.toml"),
        (
            "reload",
            "`server.pid_file` or an `[admin]` address in gateway.toml",
        ),
        ("health", "an `[admin]` address in gateway.toml"),
    ] {
        let (code, out, error) = said(&process, &[command]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{command}");
        assert_eq!(error, format!("lockgate: `{command}` needs {needs}\n"));
    }
    for (command, before) in [("status", ""), ("health", "not ready: ")] {
        let (_, out, error) = said(&process, &[command, "--config", "none.toml"]);
        assert_eq!(out, "");
        assert_eq!(
            error,
            format!(
                "lockgate: {before}none.toml does not exist: write --config FILE, or \
                 --admin http://127.0.0.1:9901\n"
            )
        );
    }
}

#[test]
fn health_follows_readyz() {
    let delay = "drain_delay = \"1h\"\n";
    let config = format!(
        "{ADMIN}{}",
        CONFIG.replace("[server]\n", &format!("[server]\n{delay}"))
    );
    let mut process = Process::run(&config);
    has_written(&process);
    let url = format!("http://{}", process.admin());
    let health = || said(&process, &["health", "--admin", &url]);
    assert_eq!(health(), (Some(0), "ready\n".to_owned(), String::new()));
    process.signal("TERM");
    wait_until("it is not ready", || {
        !process.logged("not ready").is_empty()
    });
    let (code, out, error) = health();
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(
        error,
        "lockgate: not ready: the gateway responded with status 503\n"
    );
    Client::plain(process.address(0))
        .get("/")
        .times(1)
        .all_are(200);
    // It ignores a reload, by signal or through the admin port, so neither waits for the result.
    let reachable = config.replacen("127.0.0.1:0", &process.admin().to_string(), 1);
    process.folder.write("reachable.toml", reachable);
    for arguments in [
        &["reload", "--config", "reachable.toml"][..],
        &["reload", "--admin", &url],
    ] {
        let (code, out, error) = said(&process, arguments);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{arguments:?}");
        assert_eq!(
            error,
            "lockgate: the gateway is stopping and does not reload\n"
        );
    }
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    let (code, _, error) = said(&process, &["health", "--admin", &url]);
    assert_eq!(code, Some(1));
    assert!(
        error.starts_with("lockgate: not ready: cannot reach the gateway"),
        "{error}"
    );
}

#[test]
fn init_writes_a_file_without_warnings_and_never_overwrites_one() {
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    folder.write("site.pem", made.cert.pem());
    folder.write("site.key", made.signing_key.serialize_pem());
    for (number, arguments) in [
        "",
        "--upstream app.internal:9000 --host shop.example",
        "--tls site.pem site.key --login /login --user-field user --host shop.example",
        "--login /login",
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("{number}.toml");
        let words = ["init", "--config", &file];
        let words: Vec<&str> = words
            .into_iter()
            .chain(arguments.split_whitespace())
            .collect();
        let written = Process::output(&folder, &words);
        assert!(written.status.success(), "{written:?}");
        let check = ["check", "--deny-warnings", "--config", &file];
        let checked = Process::output(&folder, &check);
        assert!(checked.status.success(), "{checked:?}");
        let text = fs::read(folder.path().join(&file)).unwrap();
        let again = Process::output(&folder, &words);
        assert_eq!(again.status.code(), Some(1));
        let said = String::from_utf8(again.stderr).unwrap();
        assert_eq!(
            said,
            format!("lockgate: cannot write {file}: it already exists\n")
        );
        assert_eq!(fs::read(folder.path().join(&file)).unwrap(), text);
    }
    // A wrong argument writes nothing.
    for wrong in [
        &["--tls", "none.pem", "none.key"][..],
        &["--tls", "on"],
        &["--upstream", ""],
    ] {
        let words: Vec<&str> = ["init"].iter().chain(wrong).copied().collect();
        assert!(!Process::output(&folder, &words).status.success());
        assert!(!folder.path().join("gateway.toml").exists());
    }
}

#[test]
fn words_of_other_programs_are_understood() {
    let folder = Folder::new();
    for (word, hint) in [
        (
            "validate",
            "unknown command `validate`; did you mean `lockgate check`?",
        ),
        (
            "test",
            "unknown command `test`; did you mean `lockgate check`?",
        ),
        (
            "configtest",
            "unknown command `configtest`; did you mean `lockgate check`?",
        ),
        ("-t", "unknown option `-t`; did you mean `lockgate check`?"),
        (
            "start",
            "unknown command `start`; did you mean `lockgate run`?",
        ),
        (
            "restart",
            "unknown command `restart`; did you mean `lockgate reload`?",
        ),
        (
            "version",
            "unknown command `version`; did you mean `lockgate --version`?",
        ),
    ] {
        let output = Process::output(&folder, &[word]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, format!("lockgate: {hint}\n"));
    }
    let version = Process::output(&folder, &["--version"]);
    assert!(version.status.success() && version.stdout.starts_with(b"lockgate "));
    folder.write("other.toml", CONFIG);
    for arguments in [
        &["check", "-c", "other.toml"][..],
        &["-c", "other.toml", "check"],
        &["--config=other.toml", "check"],
    ] {
        let output = Process::output(&folder, arguments);
        assert_eq!(output.stdout, b"other.toml: ok\n", "{arguments:?}");
    }
    let output = Process::output(&folder, &["-c", "new.toml", "init"]);
    assert!(output.status.success() && folder.path().join("new.toml").exists());
}

#[test]
fn a_start_logs_the_url_to_open_and_what_the_gateway_uses() {
    let config =
        format!("{ADMIN}{CONFIG}[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n");
    let process = Process::run(&config);
    wait_until("it serves", || process.logged(" serving ").len() == 1);
    let line = process.logged(" serving ").remove(0);
    let (plain, tls) = (process.address(0), process.address(1));
    let expected = format!(
        "url=https://localhost:{}/ listeners=\"{plain} {tls}\" admin={} rules=0 store=memory warnings=1",
        tls.port(),
        process.admin()
    );
    assert!(line.ends_with(&expected), "{line}");
}

#[test]
fn a_terminal_gets_one_sentence_at_start() {
    let folder = Folder::new();
    folder.write("gateway.toml", CONFIG);
    let shown = folder.path().join("shown");
    let mut terminal = Process::on_terminal(&shown);
    let mut child = terminal.current_dir(folder.path()).spawn().unwrap();
    let text = || fs::read_to_string(&shown).unwrap_or_default();
    wait_until("it serves", || {
        text().contains(" serving http://localhost:")
    });
    wait_until("the PID file is written", || {
        Process::output(&folder, &["stop"]).status.success()
    });
    assert!(child.wait().unwrap().success());
    let text = text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("INFO")).collect();
    assert!(lines[0].contains("(listening on 127.0.0.1:"), "{text}");
    assert!(
        lines[0].contains("), 0 rules, counters in memory"),
        "{text}"
    );
    assert!(lines[1].contains("stopping"), "{text}");
}

#[test]
fn only_a_number_of_connections_in_the_file_can_be_too_high() {
    let run = |config: &str| Process::run_with_descriptors(200, config);
    let few = |process: &Process| process.logged("too few file descriptors").len();
    let default = run(CONFIG);
    wait_until("it serves", || default.logged(" serving ").len() == 1);
    assert_eq!(few(&default), 0);
    let asked = CONFIG.replace("[server]\n", "[server]\nmax_connections = 5000\n");
    default.reload(&asked);
    wait_until("it warns of the reload", || few(&default) == 1);
    let asked = run(&asked);
    wait_until("it warns", || few(&asked) == 1);
}
