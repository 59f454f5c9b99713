//! The program itself: its commands, its exit codes, its signals.

use std::fs::{self, File};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::{Answer, Client, Folder, Origin, Process, Wire, wait_until};

const HELLO: &str = r#"
[server]
workers = 2
[log]
access = "off"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;

const BAD: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[[rules]]\nname = \"r\"\n\
                   count = 'http.request.uri.pth eq \"/\"'\nlimit = 1\nperiod = \"1m\"\n";

#[test]
fn sighup_applies_a_changed_configuration() {
    let process = Process::run(HELLO);
    let mut wire = Client::plain(process.address(0)).connect();
    assert_eq!(wire.get("/").text(), "hello");
    process.reload(&HELLO.replace("hello", "changed"));
    assert_eq!(wire.get("/").text(), "changed");
    process.reload(BAD);
    assert_eq!(wire.get("/").text(), "changed");
    let refused = process.logged("reload refused");
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("gateway.toml"), "{refused:?}");
    wait_until("the mistake is in the log", || {
        let errors = process.logged("http.request.uri.pth");
        errors.iter().any(|line| line.contains("gateway.toml:5:"))
    });
}

#[test]
fn a_reload_that_hangs_blocks_neither_the_admin_port_nor_a_stop() {
    let admin = "[admin]\naddress = \"127.0.0.1:0\"\n";
    let mut process = Process::run(&format!("{admin}{HELLO}"));
    let pipe = process.folder.pipe("gateway.toml");
    process.signal("HUP");
    // Opens when the gateway has it open.
    let held = File::options().write(true).open(&pipe).unwrap();
    Client::admin(process.admin())
        .get("/readyz")
        .times(1)
        .all_are(200);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    drop(held);
}

#[test]
fn a_pipe_is_refused_as_a_list_or_database() {
    let folder = Folder::new();
    folder.pipe("pipe");
    let list = "[lists]\na = { file = \"pipe\" }\n[geo]\nasn_database = \"pipe\"\n";
    folder.write("gateway.toml", format!("{HELLO}{list}"));
    let said = Process::output(&folder, &["check"]).stdout;
    let said = String::from_utf8(said).unwrap();
    let refused = said.matches("it is a pipe, not a file").count();
    assert_eq!(refused, 2, "{said}");
}

/// What cannot be written was not done; what cannot be said is no reason to panic.
#[test]
fn a_full_disk_is_an_error_and_not_a_panic() {
    let folder = Folder::new();
    folder.write("gateway.toml", HELLO);
    folder.write(
        "rules.json",
        r#"[{"expression":"ssl","action":"challenge"}]"#,
    );
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["schema"][..],
        &["fields"],
        &["completions", "bash"],
        &["man"],
        &["check"],
        &["explain", "GET", "/"],
        &["import", "cloudflare", "rules.json"],
    ] {
        let mut command = Process::command();
        command.current_dir(folder.path()).args(arguments);
        let ran = command.stdout(full()).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}");
        assert!(
            said.contains("lockgate: cannot write to standard output: "),
            "{said}"
        );
        let deaf = command.stderr(full()).status().unwrap();
        assert_eq!(deaf.code(), Some(1), "{arguments:?}");
    }
    let mut command = Process::command();
    let missing = command.args(["--config", "/nowhere"]).stderr(full());
    assert_eq!(missing.status().unwrap().code(), Some(1));
}

/// An origin that says when a request came, and answers when it is told to.
fn held() -> (Origin, Receiver<()>, Sender<()>) {
    let (tell, came) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let shared = Arc::new(Mutex::new((tell, wait)));
    let origin = Origin::scripted(move |stream: TcpStream| {
        let mut wire = Wire::new(stream);
        while wire.try_head().is_some() {
            let shared = shared.lock().unwrap();
            shared.0.send(()).unwrap();
            if shared.1.recv().is_err() {
                return;
            }
            let _ = wire.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nheld");
        }
    });
    (origin, came, go)
}

fn in_front_of(origin: &Origin) -> String {
    let route = format!(
        "[[upstreams]]\nname = \"app\"\nservers = [\"{}\"]\n[[routes]]\nupstream = \"app\"\n",
        origin.address
    );
    HELLO.replace("[[routes]]\nrespond = { body = \"hello\" }\n", &route)
}

#[test]
fn a_stop_finishes_requests_in_flight() {
    let (origin, came, go) = held();
    let admin = "[admin]\naddress = \"127.0.0.1:0\"\n";
    let mut process = Process::run(&format!("{admin}{}", in_front_of(&origin)));
    let client = Client::plain(process.address(0));
    let ready = Client::admin(process.admin()).get("/readyz");
    ready.times(1).all_are(200);
    let mut idle = client.connect();
    idle.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    came.recv().unwrap();
    go.send(()).unwrap();
    assert_eq!(idle.answer().text(), "held");
    let mut busy = client.connect();
    busy.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    came.recv().unwrap();
    process.signal("TERM");
    wait_until("it stops", || !process.logged(" stopping").is_empty());
    assert_eq!(idle.rest(), b"");
    assert!(process.runs());
    ready.times(1).all_are(503);
    go.send(()).unwrap();
    let answer = busy.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "held"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(busy.rest(), b"");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_stop_finishes_streams_too() {
    let (origin, came, go) = held();
    let mut process = Process::run(&in_front_of(&origin));
    let url = format!("http://{}/", process.address(0));
    let client = thread::spawn(move || {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--max-time",
            "60",
            "--http2-prior-knowledge",
            &url,
        ]);
        curl.output().unwrap()
    });
    came.recv().unwrap();
    process.signal("TERM");
    wait_until("it stops", || !process.logged(" stopping").is_empty());
    go.send(()).unwrap();
    assert_eq!(client.join().unwrap().stdout, b"held");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn sigint_is_a_stop() {
    let mut process = Process::run(HELLO);
    process.signal("INT");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_second_stop_exits_immediately() {
    let (origin, came, go) = held();
    let config = in_front_of(&origin).replace("\"off\"", "\"stdout\"");
    let mut process = Process::run(&config);
    let mut wire = Client::plain(process.address(0)).connect();
    wire.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    came.recv().unwrap();
    process.signal("TERM");
    wait_until("it stops", || !process.logged(" stopping").is_empty());
    for name in ["HUP", "USR2"] {
        process.signal(name);
        let line = format!("signal ignored signal=SIG{name} why=stopping");
        wait_until("it says so", || process.logged(&line).len() == 1);
    }
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(1));
    assert_eq!(Answer::parse(&wire.rest()).status, 0);
    let lines = fs::read_to_string(process.folder.path().join("stdout")).unwrap();
    assert!(lines.contains("\"status\":503"), "{lines}");
    drop(go);
}

#[test]
fn a_stop_ends_at_the_drain_timeout() {
    let (origin, came, go) = held();
    let config = in_front_of(&origin);
    let config = config.replace("[server]\n", "[server]\ndrain_timeout = \"100ms\"\n");
    let config = config.replace("\"off\"", "\"stdout\"");
    let mut process = Process::run(&config);
    let mut wire = Client::plain(process.address(0)).connect();
    wire.send(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
    came.recv().unwrap();
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    // It was not the client that left.
    let lines = fs::read_to_string(process.folder.path().join("stdout")).unwrap();
    assert!(lines.contains("\"status\":503"), "{lines}");
    drop(go);
}

#[test]
fn a_bad_configuration_is_reported_with_its_line() {
    let folder = Folder::new();
    folder.write("bad.toml", BAD);
    for command in [
        &["--config", "bad.toml"][..],
        &["run", "--config", "bad.toml"],
    ] {
        let output = Process::output(&folder, command);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap();
        assert!(first.starts_with("bad.toml:5:10: error: "), "{said}");
        assert!(said.contains("http.request.uri.path"), "{said}");
    }
}

#[test]
fn a_missing_file_is_an_error() {
    let folder = Folder::new();
    for command in [
        &[][..],
        &["run"],
        &["check"],
        &["check", "--format", "json"],
    ] {
        let output = Process::output(&folder, command);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let said = [output.stdout, output.stderr].concat();
        assert!(
            String::from_utf8_lossy(&said).contains("gateway.toml"),
            "{command:?}"
        );
    }
    std::fs::create_dir(folder.path().join("gateway.toml")).unwrap();
    assert_eq!(Process::output(&folder, &["run"]).status.code(), Some(1));
}

#[test]
fn check_reports_errors_and_sets_the_exit_code() {
    let folder = Folder::new();
    folder.write("gateway.toml", HELLO);
    folder.write("bad.toml", BAD);
    let good = Process::output(&folder, &["check"]);
    assert_eq!(good.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&good.stdout).contains("gateway.toml: ok"));
    let bad = Process::output(&folder, &["check", "--config", "bad.toml"]);
    assert_eq!(bad.status.code(), Some(1));
    let said = String::from_utf8_lossy(&bad.stdout);
    assert!(said.starts_with("bad.toml:5:10: error: "), "{said}");
    for (file, code) in [("gateway.toml", 0), ("bad.toml", 1)] {
        let output = Process::output(&folder, &["check", "--format", "json", "--config", file]);
        assert_eq!(output.status.code(), Some(code));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["ok"], code == 0);
        let errors = report["diagnostics"].as_array().unwrap();
        let errors: Vec<_> = errors.iter().filter(|d| d["severity"] == "error").collect();
        assert_eq!(errors.is_empty(), code == 0);
        for error in errors {
            assert_eq!(error["file"], "bad.toml");
            assert_eq!((&error["line"], &error["column"]), (&5.into(), &10.into()));
            assert!(error["message"].as_str().unwrap().contains("uri.pth"));
        }
    }
}

#[test]
fn the_environment_selects_the_file() {
    let folder = Folder::new();
    let path = folder.write("elsewhere.toml", BAD);
    let mut check = Process::command();
    check.env("LOCKGATE_CONFIG", &path).arg("check");
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("elsewhere.toml:5:10: error: "), "{said}");
    // An argument is nearer than the environment.
    let good = folder.write("good.toml", HELLO);
    let output = check.arg("--config").arg(good).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

/// The gateway's log in a process that has `filter` in its environment.
fn with_filter(filter: &str, config: &str) -> Process {
    let mut command = Process::command();
    command.env("LOCKGATE_LOG", filter);
    Process::run_as(command, config)
}

#[test]
fn the_environment_filters_the_log() {
    let quiet = HELLO.replace("[log]", "[log]\nlevel = \"error\"");
    let process = with_filter("cli=info", &quiet);
    // Lines of `cli` told that it listens; `gateway` writes only errors. The first reload may read the file of the
    // second.
    process.signal("HUP");
    process.reload(BAD);
    assert!(!process.logged(" reload refused ").is_empty());
    assert!(process.logged(" reloaded ").is_empty());
    assert!(
        process
            .logged_raw("")
            .iter()
            .all(|line| line.starts_with('{'))
    );
}

#[test]
fn a_bad_filter_is_reported_in_the_format_of_the_log() {
    let text = HELLO.replace("[log]", "[log]\nformat = \"text\"");
    let process = with_filter("info,upstraem=debug", &text);
    let wanted =
        " ERROR log filter ignored variable=LOCKGATE_LOG error=\"`upstraem` is not a module";
    wait_until("it says so", || process.logged_raw(wanted).len() == 1);
    process.reload(&text);
    assert_eq!(process.logged("log filter ignored").len(), 1);
    // A configuration that cannot be used does not hide it.
    let folder = Folder::new();
    let mut command = Process::command();
    command
        .current_dir(folder.path())
        .env("LOCKGATE_LOG", "loud");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("`loud` is not a level"), "{said}");
    assert!(said.contains("gateway.toml"), "{said}");
}

#[test]
fn fields_and_functions_are_listed() {
    let folder = Folder::new();
    let output = Process::output(&folder, &["fields"]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout);
    for name in [
        "http.request.uri.path",
        "tls.ja4",
        "http.response.code",
        "starts_with(",
    ] {
        assert!(said.contains(name), "{name}");
    }
}

#[test]
fn the_configuration_in_the_repository_is_valid() {
    let mut check = Process::command();
    check.current_dir(env!("CARGO_MANIFEST_DIR")).arg("check");
    let output = check.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn every_address_in_use_is_an_error_with_its_line() {
    let taken = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, admin] = taken
        .each_ref()
        .map(|socket| socket.local_addr().unwrap().to_string());
    let folder = Folder::new();
    let config = format!("[[listeners]]\naddress = \"{first}\"\n[admin]\naddress = \"{admin}\"\n");
    folder.write("gateway.toml", config);
    let output = Process::output(&folder, &["run"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    for expected in [
        format!("gateway.toml:2:11: error: cannot listen on {first}: "),
        format!("gateway.toml:4:11: error: cannot open the admin port on {admin}: "),
        "= help: another program uses this address".to_owned(),
    ] {
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_second_gateway_on_the_same_address_is_an_error() {
    let first = Process::run(HELLO);
    let address = first.address(0).to_string();
    let folder = Folder::new();
    folder.write("gateway.toml", HELLO.replace("127.0.0.1:0", &address));
    let output = Process::output(&folder, &["run"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!("cannot listen on {address}");
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_gateway_with_too_few_descriptors_for_its_workers_does_not_start() {
    let config = "[server]\nworkers = 64\n[log]\naccess = \"off\"\n\
                  [[listeners]]\naddress = \"127.0.0.1:0\"\n\
                  [[routes]]\nrespond = { body = \"hello\" }\n";
    let folder = Folder::new();
    folder.write("gateway.toml", config);
    // Enough for its sockets, too few for its runtimes.
    let (code, said) = Process::ends(Process::with_descriptors(160), &folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot start 64 workers"), "{said}");
    assert!(said.contains("LimitNOFILE"), "{said}");
}
