//! What survives the end of a process: counters and bans in a snapshot, and the gateway's secret.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use lockgate::store::{Store, StoreBounds};

use crate::harness::{Client, Folder, Process, wait_until};

/// A gateway that keeps its counters in `file`, with these rules.
fn config(file: &Path, rules: &str) -> String {
    let file = file.display();
    format!(
        "[server]\nworkers = 1\n[log]\naccess = \"off\"\n[store]\nsnapshot = \"{file}\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[[routes]]\nrespond = {{ body = \"hello\" }}\n\
         {rules}"
    )
}

/// Bans whoever comes twice, by a header.
const BAN: &str = "[[rules]]\nname = \"ban\"\nmitigate = 'http.request.uri.path eq \"/ban\"'\n\
                   key = ['http.request.headers[\"x-key\"]']\nlimit = 1\nperiod = \"1h\"\n\
                   duration = \"1h\"\n";
/// Allows three an hour.
const COUNT: &str = "[[rules]]\nname = \"count\"\nmitigate = 'http.request.uri.path eq \"/count\"'\n\
                     key = ['http.request.headers[\"x-key\"]']\nlimit = 3\nperiod = \"1h\"\n\
                     algorithm = \"sliding_log\"\n";

fn client(process: &Process, key: &str) -> Client {
    Client::plain(process.address(0)).header("x-key", key)
}

fn stop(mut process: Process) {
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
}

fn whole(file: &Path) -> bool {
    let store = Store::memory(StoreBounds::keys(1));
    store.verify(fs::File::open(file).unwrap()).is_ok()
}

#[test]
fn a_ban_and_a_counter_survive_a_restart() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let config = config(&file, &format!("{BAN}{COUNT}"));
    let process = Process::run(&config);
    assert_eq!(process.logged("no saved counters").len(), 1);
    client(&process, "a").get("/ban").times(2).then(200, 429);
    client(&process, "a").get("/count").times(2).all_are(200);
    stop(process);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);

    let process = Process::run(&config);
    let restored = process.logged(" counters restored ");
    assert!(restored[0].contains("counters=1 bans=1"), "{restored:?}");
    client(&process, "a").get("/ban").times(1).all_are(429);
    client(&process, "b").get("/ban").times(1).all_are(200);
    client(&process, "a").get("/count").times(2).then(200, 429);
    client(&process, "b").get("/count").times(3).all_are(200);
    stop(process);

    // And the next one.
    let process = Process::run(&config);
    client(&process, "a").get("/ban").times(1).all_are(429);
    client(&process, "a").get("/count").times(1).all_are(429);
}

#[test]
fn a_changed_rule_is_reported_with_its_dropped_bans() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let process = Process::run(&config(&file, BAN));
    for key in ["a", "b"] {
        client(&process, key).get("/ban").times(2).then(200, 429);
    }
    stop(process);
    let changed = BAN.replace("period = \"1h\"", "period = \"2h\"");
    let process = Process::run(&config(&file, &changed));
    let gone = process.logged("rule reset or removed");
    assert!(gone[0].contains("rule=ban bans_ended=2"), "{gone:?}");
    client(&process, "a").get("/ban").times(2).then(200, 429);
}

#[test]
fn a_damaged_file_is_reported_and_ignored() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let config = config(&file, BAN);
    let process = Process::run(&config);
    client(&process, "a").get("/ban").times(2).then(200, 429);
    stop(process);
    let good = fs::read(&file).unwrap();
    let mut changed = good.clone();
    changed[20] ^= 1;
    for (damaged, expected) in [
        (&good[..good.len() / 2], "it was cut off"),
        (&changed, "its checksum is wrong"),
        (b"lockgate\xff\0\0\0", "it has format 255"),
        (b"not one", "it is not a snapshot"),
    ] {
        fs::write(&file, damaged).unwrap();
        let process = Process::run(&config);
        let said = process.logged("saved counters ignored");
        let expected =
            said.len() == 1 && said[0].contains("counters") && said[0].contains(expected);
        assert!(expected, "{said:?}");
        client(&process, "a").get("/ban").times(2).then(200, 429);
        stop(process);
        assert!(whole(&file));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported_at_startup() {
    let folder = Folder::new();
    let file = folder.path().join("nowhere/counters");
    let process = Process::run(&config(&file, BAN));
    wait_until("it says so", || {
        !process.logged("cannot save the counters").is_empty()
    });
    client(&process, "a").get("/ban").times(2).then(200, 429);
    stop(process);
}

/// Neither overwrites the other's counters; the second one serves all the same.
#[test]
fn a_second_gateway_does_not_touch_the_file_of_the_first() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let config = config(&file, BAN);
    let first = Process::run(&config);
    client(&first, "a").get("/ban").times(2).then(200, 429);
    let second = Process::run(&config);
    wait_until("it is said", || {
        let said = second.logged("cannot save the counters");
        said.iter()
            .any(|line| line.contains("another process keeps"))
    });
    client(&second, "b").get("/ban").times(2).then(200, 429);
    stop(first);
    let saved = fs::read(&file).unwrap();
    drop(second);
    assert_eq!(fs::read(&file).unwrap(), saved);
    let third = Process::run(&config);
    assert!(third.logged("cannot save the counters").is_empty());
    client(&third, "a").get("/ban").times(1).all_are(429);
    client(&third, "b").get("/ban").times(1).all_are(200);
}

#[test]
fn a_kill_leaves_either_the_old_or_the_new_file() {
    let folder = Folder::new();
    let file = folder.path().join("counters");
    let config = config(&file, &format!("{BAN}{COUNT}"));
    let process = Process::run(&config);
    client(&process, "a").get("/ban").times(2).then(200, 429);
    stop(process);
    for round in 0..8 {
        let mut process = Process::run(&config);
        client(&process, "a").get("/ban").times(1).all_are(429);
        let mut wire = client(&process, "a").connect();
        for key in 0..300 {
            let head = format!("GET /count HTTP/1.1\r\nhost: a\r\nx-key: {round}/{key}\r\n\r\n");
            wire.send(head.as_bytes());
            wire.answer();
        }
        process.signal("TERM");
        thread::sleep(Duration::from_micros(round * 700));
        process.signal("KILL");
        process.exit_code();
        assert!(whole(&file), "round {round}");
    }
}

/// What stands for a value in the log of a gateway with this line for its secret.
fn hashed(secret: &str) -> String {
    let process = Process::run(&format!(
        "[server]\nworkers = 1\n{secret}\n[log]\naccess = \"stdout\"\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[[routes]]\nrespond = {{ body = \"hello\" }}\n\
         [[rules]]\nname = \"r\"\nmitigate = 'http.request.uri.path eq \"/\"'\n\
         key = ['http.request.headers[\"authorization\"]']\nlimit = 100\nperiod = \"1h\"\n"
    ));
    let asked = Client::plain(process.address(0)).header("authorization", "Bearer in-clear");
    asked.get("/").times(1).all_are(200);
    let log = process.folder.path().join("stdout");
    let mut text = String::new();
    wait_until("the line is there", || {
        text = fs::read_to_string(&log).unwrap();
        text.contains("\"h:")
    });
    assert!(!text.contains("in-clear"), "{text}");
    let (_, rest) = text.split_once("\"h:").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn a_secret_makes_hashes_stable_across_restarts() {
    let folder = Folder::new();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    fs::write(&one, [7; 32]).unwrap();
    fs::write(&other, "07".repeat(32) + "\n").unwrap();
    let named = |path: &Path| format!("secret_file = \"{}\"", path.display());
    let hash = hashed(&named(&one));
    // The same secret, written in another way.
    assert_eq!(hashed(&named(&other)), hash);
    fs::write(&other, [8; 32]).unwrap();
    assert_ne!(hashed(&named(&other)), hash);
    assert_ne!(hashed(""), hashed(""));
}

#[test]
fn a_snapshot_of_another_secret_is_a_warning() {
    let folder = Folder::new();
    let (file, secret) = (folder.path().join("counters"), folder.path().join("secret"));
    let named = format!("[server]\nsecret_file = \"{}\"", secret.display());
    let config = config(&file, BAN).replace("[server]", &named);
    let said = |process: &Process| process.logged("the store uses the secret").len();
    fs::write(&secret, [7; 32]).unwrap();
    let process = Process::run(&config);
    client(&process, "a").get("/ban").times(2).then(200, 429);
    stop(process);
    let process = Process::run(&config);
    assert_eq!(said(&process), 0);
    stop(process);
    fs::write(&secret, [8; 32]).unwrap();
    let process = Process::run(&config);
    assert_eq!(said(&process), 1);
    client(&process, "a").get("/ban").times(1).all_are(429);
}

#[test]
fn a_file_without_a_secret_is_refused() {
    let folder = Folder::new();
    let check = |secret: &str| {
        folder.write(
            "gateway.toml",
            format!(
                "[server]\nsecret_file = \"{secret}\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n"
            ),
        );
        let output = Process::output(&folder, &["check"]);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    folder.write("short", [0; 31]);
    let (code, said) = check("short");
    assert_eq!(code, Some(1));
    for expected in [
        "gateway.toml:2:15: error: `short` is not a secret: expected 32 bytes",
        "(umask 077; head -c 32 /dev/urandom > secret)",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let (code, said) = check("nowhere");
    assert_eq!(code, Some(1));
    assert!(said.contains("error: cannot read `nowhere`"), "{said}");
    assert!(said.contains("head -c 32 /dev/urandom"), "{said}");

    let good = folder.write("good", [0; 32]);
    fs::set_permissions(&good, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = check("good");
    assert_eq!(code, Some(0));
    assert!(
        said.contains("warning[open-secret]: other users can read"),
        "{said}"
    );
    assert!(said.contains("chmod 600 good"), "{said}");
    fs::set_permissions(&good, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = check("good");
    assert_eq!(code, Some(0));
    assert!(!said.contains("open-secret"), "{said}");
}

#[test]
fn a_path_that_is_not_a_regular_file_is_refused_and_not_touched() {
    let folder = Folder::new();
    let path = folder.path().join("counters");
    let _socket = UnixListener::bind(&path).unwrap();
    symlink("counters", folder.path().join("link")).unwrap();
    for name in ["counters", "link"] {
        folder.write("gateway.toml", config(Path::new(name), ""));
        let [checked, started] = ["check", "run"].map(|command| {
            let output = Process::output(&folder, &[command]);
            let said = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8(said).unwrap())
        });
        for (code, said) in [checked, started] {
            assert_eq!(code, Some(1), "{said}");
            let expected = format!("error: cannot save counters: `{name}` is a socket");
            assert!(said.contains(&expected), "{said}");
        }
    }
    assert!(fs::metadata(&path).unwrap().file_type().is_socket());
}
