//! One secret value has one hash: in the logs, in `explain`, and from `lockgate hash`.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::harness::{Client, Folder, Process, wait_until};

const CONFIG: &str = r#"
[server]
workers = 1
secret_file = "secret"
[log]
access = "access.log"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
[[rules]]
name = "keys"
mitigate = 'http.request.uri.path eq "/"'
key = ['http.request.headers["x-api-key"]']
limit = 1
period = "1h"
duration = "1h"
"#;

fn stdout(folder: &Folder, arguments: &[&str]) -> String {
    let output = Process::output(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn logs_explain_and_the_command_show_the_same_hash() {
    let folder = Folder::new();
    folder.write("secret", [7; 32]);
    let output = fs::File::create(folder.path().join("stdout")).unwrap();
    let process = Process::run_in(folder, Process::command(), CONFIG, output.into());
    let hash = stdout(&process.folder, &["hash", "topsecret"]);
    let hash = hash.trim_end();
    assert!(hash.len() == 18 && hash.starts_with("h:"), "{hash}");

    let client = Client::plain(process.address(0));
    let client = client.get("/").header("x-api-key", "topsecret");
    client.times(2).then(200, 429);
    wait_until("the ban is logged", || {
        !process.logged(" banned ").is_empty()
    });
    let banned = process.logged(" banned ").remove(0);
    assert!(banned.contains(&format!("key={hash} ")), "{banned}");

    let log = process.folder.path().join("access.log");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("the lines are written", || lines().lines().count() == 2);
    let fields =
        format!("\"key_fields\":{{\"http.request.headers[\\\"x-api-key\\\"]\":\"{hash}\"}}");
    assert!(lines().contains(&fields), "{}", lines());

    let explain = ["explain", "GET", "/", "-H", "x-api-key: topsecret"];
    let explained = stdout(&process.folder, &explain);
    assert!(explained.contains(hash), "{explained}");
    for text in [&banned, &lines(), &explained] {
        assert!(!text.contains("topsecret"), "{text}");
    }
}

#[test]
fn a_revealed_part_is_in_clear_and_its_header_is_not() {
    // {"sub":"alice"}
    const TOKEN: &str = "Bearer e30.eyJzdWIiOiJhbGljZSJ9.c2ln";
    let part = "'jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")'";
    let config = CONFIG.replace("'http.request.headers[\"x-api-key\"]'", part);
    let config = config.replace("[log]\n", &format!("[log]\nreveal = [{part}]\n"));
    let folder = Folder::new();
    folder.write("secret", [7; 32]);
    let output = fs::File::create(folder.path().join("stdout")).unwrap();
    let process = Process::run_in(folder, Process::command(), &config, output.into());
    let client = Client::plain(process.address(0));
    let client = client.get("/").header("authorization", TOKEN);
    client.times(2).then(200, 429);
    wait_until("the ban is logged", || {
        !process.logged(" banned ").is_empty()
    });
    let banned = process.logged(" banned ").remove(0);
    assert!(banned.contains("key=alice "), "{banned}");
    let log = process.folder.path().join("access.log");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("the lines are written", || lines().lines().count() == 2);
    let hash = stdout(&process.folder, &["hash", TOKEN]);
    assert!(
        lines().contains(hash.trim_end()) && !lines().contains("eyJ"),
        "{}",
        lines()
    );
}

#[test]
fn a_value_can_come_from_standard_input() {
    let folder = Folder::new();
    folder.write("secret", [7; 32]);
    folder.write("gateway.toml", CONFIG);
    let mut command = Process::command();
    command.current_dir(folder.path()).args(["hash", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"topsecret\n")
        .unwrap();
    let printed = child.wait_with_output().unwrap().stdout;
    let expected = stdout(&folder, &["hash", "topsecret"]);
    assert_eq!(String::from_utf8(printed).unwrap(), expected);
}

#[test]
fn a_generated_secret_has_no_hash_outside_its_process() {
    let folder = Folder::new();
    folder.write(
        "gateway.toml",
        CONFIG.replace("secret_file = \"secret\"\n", ""),
    );
    let output = Process::output(&folder, &["hash", "topsecret"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("`hash` needs `server.secret_file` in gateway.toml"),
        "{said}"
    );
}
