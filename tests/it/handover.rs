//! SIGUSR2: a new process takes over the sockets, the counters and the secret; nobody notices.

mod hanging;
mod tickets;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::harness::{Answer, Client, Folder, Process, wait_until};

const CONFIG: &str = r#"
[server]
workers = 2
max_connections = 400
drain_timeout = "10s"
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[routes]]
respond = { body = "hello" }
[[rules]]
name = "ban"
mitigate = 'http.request.uri.path eq "/ban"'
key = ["ip.src"]
limit = 1
period = "1h"
duration = "1h"
[[rules]]
name = "count"
count = 'http.request.uri.path eq "/count"'
key = ["ip.src"]
limit = 1000000
period = "1d"
algorithm = "sliding_log"
"#;

/// Has the newest process hand over, and waits until the one before it has ended.
fn hand_over(process: &Process) {
    let before = process.successors().len();
    match before {
        0 => process.signal("USR2"),
        _ => process.signal_successor("USR2"),
    }
    wait_until("it has handed over", || process.successors().len() > before);
}

fn ended(process: &Process, processes: usize) {
    wait_until("the one before has ended", || {
        process.logged(" stopped").len() == processes
    });
}

/// Nothing went wrong in any process. The certificate is one for development, which is said.
fn quiet(process: &Process) {
    for level in [" WARN ", " ERROR "] {
        let mut said = process.logged(level);
        said.retain(|line| !line.contains("self-signed"));
        assert!(said.is_empty(), "{said:#?}");
    }
}

fn remaining(answer: &Answer) -> u64 {
    let quota = answer.header("ratelimit").unwrap();
    let own = quota.split(", ").find(|item| item.starts_with("\"count\""));
    let r = own.unwrap().split(";r=").nth(1).unwrap();
    r.split(';').next().unwrap().parse().unwrap()
}

#[test]
fn counters_bans_and_addresses_survive_a_handover() {
    let mut process = Process::run(CONFIG);
    let (plain, tls, admin) = (process.address(0), process.address(1), process.admin());
    let client = Client::plain(plain);
    client.clone().get("/ban").times(2).then(200, 429);
    let counted = client.clone().get("/count").times(7);
    assert_eq!(remaining(counted.last_is(200)), 1_000_000 - 7);
    for generation in 1..=3 {
        hand_over(&process);
        ended(&process, generation);
        client.clone().get("/ban").times(1).all_are(429);
        let counted = client.clone().get("/count").send();
        assert_eq!(remaining(&counted), 1_000_000 - 7 - generation as u64);
        Client::tls(tls).get("/").times(2).all_are(200);
        Client::admin(admin).get("/readyz").times(2).all_are(200);
    }
    assert_eq!(process.exit_code(), Some(0));
    process.signal_successor("TERM");
    ended(&process, 4);
    assert!(TcpStream::connect(plain).is_err());
    quiet(&process);
}

/// What a client saw.
#[derive(Default)]
struct Load {
    done: AtomicBool,
    kept: AtomicU64,
    fresh: AtomicU64,
}

impl Load {
    /// Asks on connections that stay open, and opens another when it is told that one ends.
    fn keep_asking(&self, client: &Client) {
        while !self.done.load(Ordering::SeqCst) {
            let mut wire = client.connect();
            while !self.done.load(Ordering::SeqCst) {
                let answer = wire.get("/");
                assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
                self.kept.fetch_add(1, Ordering::SeqCst);
                if answer.header("connection") == Some("close") {
                    assert_eq!(wire.rest(), b"");
                    break;
                }
            }
        }
    }

    /// Asks each time on a new connection.
    fn keep_coming(&self, client: &Client) {
        while !self.done.load(Ordering::SeqCst) {
            let answer = client.send();
            assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
            self.fresh.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Asks over HTTP/2, on one connection for as long as it lasts.
    fn keep_streaming(&self, address: SocketAddr) {
        let url = format!("https://{address}/[1-400]");
        while !self.done.load(Ordering::SeqCst) {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--insecure", "--http2", "--max-time", "60"]);
            curl.args(["-o", "/dev/null", "-w", "%{http_version} %{http_code}\n"]);
            let said = curl.arg(&url).output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            assert_eq!(said, "2 200\n".repeat(400));
        }
    }

    fn wait(&self) {
        let now = || {
            (
                self.kept.load(Ordering::SeqCst),
                self.fresh.load(Ordering::SeqCst),
            )
        };
        let before = now();
        wait_until("more were served", || {
            now().0 > before.0 + 200 && now().1 > before.1 + 50
        });
    }
}

#[test]
fn no_request_is_lost_during_handovers() {
    let mut process = Process::run(CONFIG);
    let (plain, tls) = (process.address(0), process.address(1));
    let load = Load::default();
    thread::scope(|scope| {
        for number in 0..24 {
            let client = match number % 6 {
                0 => Client::tls(tls),
                _ => Client::plain(plain),
            };
            scope.spawn(|| {
                let client = client;
                load.keep_asking(&client);
            });
        }
        for _ in 0..6 {
            scope.spawn(|| load.keep_coming(&Client::plain(plain)));
        }
        scope.spawn(|| load.keep_coming(&Client::tls(tls)));
        scope.spawn(|| load.keep_streaming(tls));
        let steps = scope.spawn(|| {
            for generation in 1..=4 {
                load.wait();
                hand_over(&process);
                ended(&process, generation);
            }
            load.wait();
        });
        let ended = steps.join();
        load.done.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    assert_eq!(process.exit_code(), Some(0));
    quiet(&process);
}

#[test]
fn requests_in_flight_are_finished_by_the_old_process() {
    let mut process = Process::run(CONFIG);
    let mut half = TcpStream::connect(process.address(0)).unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nhost: example.com\r\n")
        .unwrap();
    Client::plain(process.address(0))
        .get("/")
        .times(4)
        .all_are(200);
    hand_over(&process);
    assert!(process.runs());
    half.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn a_process_that_cannot_start_changes_nothing() {
    let mut process = Process::run(CONFIG);
    let client = Client::plain(process.address(0)).get("/");
    let mut wire = client.connect();
    assert_eq!(wire.get("/").status, 200);
    for (number, bad) in ["nonsense", "[[listeners]]\naddress = \"192.0.2.1:1\"\n"]
        .into_iter()
        .enumerate()
    {
        process.folder.write("gateway.toml", bad);
        process.signal("USR2");
        wait_until("it says why", || {
            process.logged(" handover failed ").len() == number + 1
        });
        let said = process.logged(" handover failed ");
        assert!(said[number].contains("exit status: 1"), "{said:?}");
        client.times(4).all_are(200);
        assert_eq!(wire.get("/").header("connection"), None);
    }
    assert!(process.logged("gateway.toml:1:").len() == 1);
    assert!(process.logged("cannot listen on 192.0.2.1:1").len() == 1);
    // It is still the one that reloads, and that can hand over.
    process.reload(CONFIG);
    assert_eq!(process.logged(" reloaded ").len(), 1);
    hand_over(&process);
    assert_eq!(process.exit_code(), Some(0));
}

/// Whoever reads the log as JSON can read it whatever happens.
#[test]
fn a_process_that_cannot_start_logs_json_if_configured() {
    let process = Process::run(CONFIG);
    let json = CONFIG.replace("[log]", "[log]\nformat = \"json\"");
    process.folder.write("gateway.toml", &json);
    process.signal("HUP");
    let reloaded = "\"event\":\"reloaded\"";
    wait_until("it reloads", || !process.logged_raw(reloaded).is_empty());
    let before = process.logged_raw("").len();
    let own = "[[listeners]]\naddress = \"127.0.0.1:0\"";
    let far = json.replacen(own, &own.replace("127.0.0.1:0", "192.0.2.1:1"), 1);
    for (number, bad) in ["nonsense", &far].into_iter().enumerate() {
        process.folder.write("gateway.toml", bad);
        process.signal("USR2");
        wait_until("it says why", || {
            process.logged_raw("\"handover failed\"").len() == number + 1
        });
    }
    let lines = process.logged_raw("").split_off(before);
    let events: Vec<_> = lines
        .iter()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            line["event"].as_str().unwrap().to_owned()
        })
        .collect();
    let count = |event| events.iter().filter(|one| *one == event).count();
    assert_eq!(count("not started"), 2, "{events:?}");
    assert!(count("configuration") >= 2, "{events:?}");
    assert!(lines.iter().any(|line| line.contains("gateway.toml:1:")));
    let unbound = "cannot listen on 192.0.2.1:1";
    assert!(lines.iter().any(|line| line.contains(unbound)), "{lines:?}");
}

#[test]
fn a_handover_applies_changed_workers_and_listeners() {
    let mut process = Process::run(CONFIG);
    let plain = process.address(0);
    for (generation, workers) in [5, 1, 3].into_iter().enumerate() {
        let config = CONFIG.replace("workers = 2", &format!("workers = {workers}"));
        let added = "[[listeners]]\naddress = \"[::1]:0\"\n";
        process.folder.write("gateway.toml", config + added);
        hand_over(&process);
        ended(&process, generation + 1);
        // Each socket of the first process has its share of these.
        Client::plain(plain).get("/").times(40).all_are(200);
        let lines = process.logged(" listening ");
        let address = lines.last().unwrap().rsplit_once("address=").unwrap().1;
        let added: SocketAddr = address.trim_matches('"').parse().unwrap();
        assert!(added.is_ipv6(), "{lines:?}");
        Client::plain(added).get("/").times(4).all_are(200);
    }
    assert_eq!(process.exit_code(), Some(0));
}

/// The process that is going must not write over what the one that has come has saved.
#[test]
fn the_counter_snapshot_is_written_by_one_process_at_a_time() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let store = format!("[store]\nsnapshot = \"{}\"\n", file.display());
    let mut process = Process::run(&format!("{store}{CONFIG}"));
    let client = Client::plain(process.address(0));
    client.clone().get("/count").times(3).all_are(200);
    let mut half = TcpStream::connect(process.address(0)).unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nhost: example.com\r\n")
        .unwrap();
    client.clone().get("/count").times(4).all_are(200);
    hand_over(&process);
    client.clone().get("/ban").times(2).then(200, 429);
    process.signal_successor("TERM");
    ended(&process, 1);
    let saved = fs::read(&file).unwrap();
    assert!(process.runs());
    drop(half);
    assert_eq!(process.exit_code(), Some(0));
    assert_eq!(fs::read(&file).unwrap(), saved);
    drop(process);

    let process = Process::run(&format!("{store}{CONFIG}"));
    let client = Client::plain(process.address(0));
    client.clone().get("/ban").times(1).all_are(429);
    let counted = client.get("/count").send();
    assert_eq!(remaining(&counted), 1_000_000 - 8);
}

#[test]
fn a_stop_cancels_a_handover_that_hangs() {
    let mut process = Process::run(CONFIG);
    let pipe = process.folder.pipe("gateway.toml");
    process.signal("USR2");
    // Opens when the new process has it open, which waits for more.
    let held = File::options().write(true).open(&pipe).unwrap();
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    let said = process.logged(" handover failed ");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("received a stop signal"), "{said:?}");
    assert!(process.successors().is_empty());
    drop(held);
}

/// The process before is told to stop, or ends, before it has told the new one to serve.
#[test]
fn a_new_process_never_serves_without_the_go_ahead() {
    let folder = Folder::new();
    folder.write("gateway.toml", CONFIG);
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut command = Process::command();
    command.env("LOCKGATE_HANDOVER", std::process::id().to_string());
    command.current_dir(folder.path());
    command.stdin(OwnedFd::from(theirs)).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    ours.write_all(b"S").unwrap();
    ours.write_all(&[7; 32]).unwrap();
    ours.write_all(b"E").unwrap();
    let mut word = [0];
    ours.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"P");
    drop(ours);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the old process ended the handover"),
        "{said}"
    );
    assert!(!said.contains("listening"), "{said}");
}

#[test]
fn wrong_handover_variables_in_the_environment_are_ignored() {
    let folder = Folder::new();
    folder.write("gateway.toml", CONFIG);
    let mut lies = Process::command();
    lies.env("LOCKGATE_HANDOVER", "1").env("LISTEN_FDS", "2");
    let process = Process::run_as(lies, CONFIG);
    assert_eq!(process.logged("LOCKGATE_HANDOVER").len(), 1);
    Client::plain(process.address(0))
        .get("/")
        .times(1)
        .all_are(200);
    // The right process, and nothing that hands over.
    let mut lies = Process::command();
    lies.env("LOCKGATE_HANDOVER", std::process::id().to_string());
    lies.current_dir(folder.path()).stdin(Stdio::null());
    let output = lies.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("standard input is not a handover socket"),
        "{said}"
    );
}
