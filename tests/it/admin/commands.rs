//! The commands that call the admin port.

use std::net::TcpListener;
use std::process::Output;

use super::{CONFIG, Operated, WATCHED};
use crate::harness::{Folder, Process, wait_until};

/// The exit code and the output of a command.
fn result(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code(), text)
}

fn status(gateway: &Operated, options: &[&str]) -> (Option<i32>, String) {
    let url = format!("http://{}", gateway.admin);
    let command = ["status", "--admin", &url];
    result(&Process::output(
        &gateway.process.folder,
        &[&command[..], options].concat(),
    ))
}

#[test]
fn status_prints_one_record_per_line_in_a_pipe() {
    let gateway = Operated::run(CONFIG);
    let (code, text) = status(&gateway, &[]);
    assert_eq!(code, Some(0));
    let names: Vec<_> = text
        .lines()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "instance",
            "version",
            "state",
            "uptime_s",
            "requests_per_s",
            "forwarded_per_s",
            "blocked_per_s",
            "shadowed_per_s",
            "challenged_per_s",
            "p50_ms",
            "p99_ms",
            "connections",
            "held",
            "store",
            "config",
            "last_reload",
            "bans",
        ]
    );
    assert!(text.contains("\nstate\trunning\n"), "{text}");
    assert!(text.contains("\nstore\tmemory\tok\n"), "{text}");
    let (code, json) = status(&gateway, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["state"]), (Some(0), &"running".into()));
}

#[test]
fn status_fails_while_something_is_critical() {
    let gateway = Operated::run(CONFIG);
    gateway.process.reload("nonsense");
    let (code, text) = status(&gateway, &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("\nlast_reload\trefused\t"), "{text}");
    assert!(
        text.ends_with("attention\tcrit\treload\tThe last reload was refused\n"),
        "{text}"
    );
    assert_eq!(status(&gateway, &["--format", "json"]).0, Some(1));
}

#[test]
fn keys_are_banned_and_unbanned() {
    let gateway = Operated::run(WATCHED);
    let url = format!("http://{}", gateway.admin);
    let run = |command: &[&str]| {
        let (name, rest) = command.split_first().unwrap();
        let command = [&[*name, "--admin", &url], rest].concat();
        result(&Process::output(&gateway.process.folder, &command))
    };
    let scan = gateway.client().from("203.0.113.7").get("/.env");
    let ban = [
        "ban",
        "scan",
        "203.0.113.7",
        "10m",
        "--note",
        "support case",
    ];
    let (code, text) = run(&ban);
    assert_eq!(code, Some(0), "{text}");
    scan.times(1).all_are(429);
    let (code, text) = run(&["bans"]);
    assert_eq!(code, Some(0));
    assert!(text.starts_with("scan\t203.0.113.7\tblock\t"), "{text}");
    assert!(text.ends_with("\tmanual\n"), "{text}");
    assert_eq!(run(&["unban", "scan", "203.0.113.7"]).0, Some(0));
    scan.times(1).all_are(200);
    assert_eq!(run(&["unban", "scan", "203.0.113.7"]).0, Some(1));
    assert_eq!(run(&["ban", "nothing", "203.0.113.7", "10m"]).0, Some(1));
    run(&ban);
    assert_eq!(
        run(&["unban", "scan"]),
        (Some(0), "removed\t1\n".to_owned())
    );
    assert_eq!(run(&["bans"]), (Some(0), String::new()));
}

#[test]
fn bans_of_a_dry_run_are_marked() {
    let gateway = Operated::run(CONFIG);
    let url = format!("http://{}", gateway.admin);
    let run = |command: &[&str]| {
        let (name, rest) = command.split_first().unwrap();
        let command = [&[*name, "--admin", &url], rest].concat();
        result(&Process::output(&gateway.process.folder, &command))
    };
    gateway.client().get("/.env").times(2).all_are(200);
    wait_until("it is banned", || {
        gateway.read("/api/mitigations")["items"][0]["dry_run"] == true
    });
    let page = gateway.read("/api/mitigations");
    assert_eq!(
        (&page["all"], &page["likely_false_positives"]),
        (&1.into(), &0.into())
    );
    let (_, text) = run(&["bans"]);
    assert!(text.starts_with("scan\t127.0.0.1\twould block\t"), "{text}");
    let command = ["ban", "--admin", &url, "scan", "203.0.113.7", "10m"];
    let output = Process::output(&gateway.process.folder, &command);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "lockgate: the rule is a dry run and does not act: this ban mitigates nothing\n"
    );
    assert_eq!(
        gateway.read("/api/status")["attention"],
        serde_json::json!([])
    );
}

#[test]
fn the_configuration_names_the_gateway_and_the_token() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let config = CONFIG.replace(
        "[admin]\naddress = \"127.0.0.1:0\"",
        &format!("[admin]\naddress = {address:?}\ntoken_file = \"admin.token\""),
    );
    folder.write("admin.token", "secret\n");
    folder.write("wrong.token", "other\n");
    let process = Process::run_in(
        folder,
        Process::command(),
        &config,
        std::process::Stdio::null(),
    );
    wait_until("the admin port is open", || {
        !process.logged(" admin port ").is_empty()
    });
    let status = |options: &[&str]| {
        let output = Process::output(&process.folder, &[&["status"][..], options].concat());
        output.status.code()
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--token-file", "wrong.token"]), Some(3));
    assert_eq!(status(&["--token-file", "no.token"]), Some(2));
    assert_eq!(status(&["--admin", "127.0.0.1:1"]), Some(2));
    assert_eq!(status(&["--admin", "https://127.0.0.1:1"]), Some(2));
    let elsewhere = Process::output(&Folder::new(), &["status"]);
    assert_eq!(elsewhere.status.code(), Some(2));
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(said.contains("--admin http://127.0.0.1:9901"), "{said}");
}

#[test]
fn top_needs_a_terminal_and_prints_json_without_one() {
    let gateway = Operated::run(CONFIG);
    let url = format!("http://{}", gateway.admin);
    let top = |options: &[&str]| {
        let command = ["top", "--admin", &url];
        Process::output(&gateway.process.folder, &[&command[..], options].concat())
    };
    let piped = top(&[]);
    assert_eq!(piped.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(piped.stderr).unwrap(),
        "lockgate: top needs a terminal; use lockgate status or --format json\n"
    );
    let (code, text) = result(&top(&["--format", "json"]));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &document["status"]["state"]),
        (Some(0), &"running".into())
    );
    assert_eq!(document["rules"][0]["name"], "login/site");
}
