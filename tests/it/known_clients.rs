//! Known clients: stolen and mangled cookies, secrets that change in a fleet, and what logs and `explain` show.

use std::fs;
use std::path::Path;

use lockgate::clock::Clock;
use serde_json::Value;

use crate::harness::{Answer, Client, Folder, Process, Running, wait_until};

const COOKIE: &str = "__Host-lockgate-client";

/// Makes the user of the header `x-user` known at `POST /login`, and refuses all other clients at `/private`.
const RULES: &str = r#"
[known_clients]
success = 'http.request.method eq "POST" and http.response.code eq 200'
user = 'lower(http.request.headers["x-user"])'
[[rules]]
name = "strangers"
mitigate = 'http.request.uri.path eq "/private" and not client.known_user'
"#;

const ROUTES: &str = r#"
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[routes]]
upstream = "origin"
"#;

/// A gateway whose secrets are in `secret`.
fn with_secret(secret: &Path) -> Running {
    Running::on(&config(secret))
}

fn config(secret: &Path) -> String {
    format!(
        "[server]\nworkers = 1\nsecret_file = {secret:?}\n[log]\naccess = \"off\"\n{ROUTES}{RULES}"
    )
}

/// Lines of a secret file, one for each byte.
fn lines(secrets: &[u8]) -> String {
    let line = |byte: &u8| format!("{byte:02x}").repeat(32) + "\n";
    secrets.iter().map(line).collect()
}

/// Logs a user in and returns the new cookie, if there is one.
fn log_in(client: Client, user: &str, cookie: Option<&str>) -> Option<String> {
    let client = client.header("x-user", user);
    let client = cookie.into_iter().fold(client, with_cookie);
    cookie_of(&client.post("/login").send())
}

fn with_cookie(client: Client, cookie: &str) -> Client {
    client.header("cookie", &format!("{COOKIE}={cookie}"))
}

fn cookie_of(answer: &Answer) -> Option<String> {
    assert_eq!(answer.status, 200);
    let value = answer.header("set-cookie")?.strip_prefix(COOKIE)?;
    let value = value.strip_prefix('=')?.split(';').next()?;
    Some(value.to_owned())
}

/// Whether the cookie makes a client known for a user.
fn is_known(client: Client, user: &str, cookie: &str) -> bool {
    let client = with_cookie(client.header("x-user", user), cookie);
    match client.get("/private").send().status {
        200 => true,
        429 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn the_cookie_is_safe_in_browsers() {
    let gateway = Running::with(RULES);
    let client = gateway.client().header("x-user", "alice").post("/login");
    let answer = client.send();
    let (_, attributes) = answer
        .header("set-cookie")
        .unwrap()
        .split_once(';')
        .unwrap();
    let expected = " Max-Age=15552000; Path=/; Secure; HttpOnly; SameSite=Lax";
    assert_eq!(attributes, expected);
}

#[test]
fn a_stolen_cookie_is_valid_for_its_users_only() {
    let gateway = Running::with(RULES);
    let cookie = log_in(gateway.client(), "Alice", None).unwrap();
    let thief = || gateway.client().from("203.0.113.66");
    assert!(is_known(thief(), "alice", &cookie));
    for other in ["bob", "alice2", "", "alice@example.com"] {
        assert!(!is_known(thief(), other, &cookie), "{other:?}");
    }
    assert!(!is_known(
        thief().header("host", "admin.example"),
        "alice",
        &cookie
    ));
}

#[test]
fn a_mangled_cookie_is_no_cookie() {
    let gateway = Running::with(RULES);
    let cookie = log_in(gateway.client(), "alice", None).unwrap();
    let mut mangled = vec![
        cookie.clone() + "A",
        cookie.clone() + "=",
        cookie.repeat(2),
        String::new(),
    ];
    for at in 0..cookie.len() {
        let mut bytes = cookie.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        mangled.push(String::from_utf8(bytes).unwrap());
    }
    for other in &mangled {
        assert!(!is_known(gateway.client(), "alice", other), "{other}");
    }
    // The first cookie of the name counts.
    let [first, second] = [&mangled[0], &cookie].map(|value| format!("{COOKIE}={value}"));
    let send = |cookies: String| {
        let client = gateway.client().header("x-user", "alice");
        client
            .header("cookie", &cookies)
            .get("/private")
            .send()
            .status
    };
    assert_eq!(send(format!("{first}; {second}")), 429);
    assert_eq!(send(format!("{second}; {first}")), 200);
    let text = gateway.metrics();
    assert!(
        text.contains("known_clients_total{result=\"invalid\"} "),
        "{text}"
    );
}

#[test]
fn gateways_with_one_secret_accept_each_others_cookies_while_it_changes() {
    let folder = Folder::new();
    let [old, new] = [1, 2];
    let one_file = folder.write("one", lines(&[old]));
    let two_file = folder.write("two", lines(&[old]));
    let (one, two) = (with_secret(&one_file), with_secret(&two_file));
    let set = |gateway: &Running, file: &Path, secrets: &[u8]| {
        fs::write(file, lines(secrets)).unwrap();
        gateway.reload_whole(&config(file)).unwrap();
    };
    let check = |cookies: &[&String], known: bool| {
        for (cookie, gateway) in cookies.iter().flat_map(|c| [(c, &one), (c, &two)]) {
            assert_eq!(
                is_known(gateway.client(), "alice", cookie),
                known,
                "{cookie}"
            );
        }
    };
    let before = log_in(one.client(), "alice", None).unwrap();
    log_in(one.client(), "bob", Some(&before)).unwrap();

    // 1. The new secret verifies everywhere, one gateway after the other.
    set(&one, &one_file, &[old, new]);
    let during = log_in(one.client(), "alice", None).unwrap();
    check(&[&before, &during], true);
    set(&two, &two_file, &[old, new]);

    // 2. The new secret signs. A success replaces an older cookie.
    set(&two, &two_file, &[new, old]);
    let after = log_in(two.client(), "alice", None).unwrap();
    check(&[&before, &during, &after], true);
    let replaced = log_in(two.client(), "alice", Some(&before)).unwrap();
    assert_eq!(log_in(two.client(), "alice", Some(&replaced)), None);
    set(&one, &one_file, &[new, old]);

    // 3. Without the old secret, its cookies are invalid.
    set(&one, &one_file, &[new]);
    set(&two, &two_file, &[new]);
    check(&[&after, &replaced], true);
    check(&[&before, &during], false);

    // A broken file is refused, and changes nothing.
    fs::write(&one_file, "no secret").unwrap();
    let refused = one.reload_whole(&config(&one_file)).unwrap_err();
    assert!(refused.text.contains("is not a secret"), "{refused}");
    check(&[&after], true);
}

#[test]
fn the_access_log_names_the_client_and_no_user() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Running::on(&format!("[log]\naccess = {log:?}\n{ROUTES}{RULES}"));
    let cookie = log_in(gateway.client(), "alice", None).unwrap();
    let client = with_cookie(gateway.client(), &cookie);
    client.clone().get("/").send();
    client.get("/").send();
    let read = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("the log has three lines", || read().lines().count() == 3);
    let text = read();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["client"], &lines[0]["client_id"]),
        (&"new".into(), &Value::Null)
    );
    assert_eq!(lines[1]["client"], "known");
    let id = lines[1]["client_id"].as_str().unwrap();
    assert!(
        id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    assert_eq!(lines[2]["client_id"], id);
    assert_eq!(lines[2]["clearance"], Value::Null);
    assert!(!text.contains("alice"), "{text}");
    assert!(!text.contains(&cookie), "{text}");
}

#[test]
fn cookies_survive_a_handover_without_a_file() {
    let process = Process::run(&format!(
        "[server]\nworkers = 1\n[log]\naccess = \"off\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
         [[routes]]\nrespond = {{ body = \"hello\" }}\n{RULES}"
    ));
    let address = process.address(0);
    let cookie = log_in(Client::plain(address), "alice", None).unwrap();
    process.signal("USR2");
    wait_until("it has handed over", || !process.successors().is_empty());
    assert!(is_known(Client::plain(address), "alice", &cookie));
    process.signal_successor("TERM");
}

/// What `explain` prints for a site with known clients.
fn explain(arguments: &[&str], rules: &str) -> String {
    let folder = Folder::new();
    folder.write(
        "gateway.toml",
        ROUTES.replace("{origin}", "127.0.0.1:9") + rules,
    );
    let output = Process::output(&folder, &[&["explain"], arguments].concat());
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

#[test]
fn explain_simulates_a_known_client() {
    let request = [
        "GET",
        "http://shop.example/private",
        "-H",
        "x-user: Alice",
        "--format",
        "json",
    ];
    let decision = |options: &[&str]| {
        let text = explain(&[&request, options].concat(), RULES);
        let report: Value = serde_json::from_str(&text).unwrap();
        report["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(decision(&[]), "block");
    assert_eq!(decision(&["--known"]), "block");
    assert_eq!(decision(&["--known", "bob"]), "block");
    assert_eq!(decision(&["--known", "alice"]), "forward");
}

#[test]
fn explain_reads_a_cookie_of_today() {
    let folder = Folder::new();
    let secret = folder.write("secret", lines(&[7]));
    let gateway = with_secret(&secret);
    let now = Clock::Manual(gateway.clock.clone()).now();
    gateway.wait(Clock::System.now().since(now));
    let cookie = log_in(gateway.client(), "alice", None).unwrap();
    let config = config(&secret).replace("{origin}", "127.0.0.1:9");
    folder.write("gateway.toml", config);
    let decision = |user: &str| {
        let (cookie, user) = (
            format!("cookie: {COOKIE}={cookie}"),
            format!("x-user: {user}"),
        );
        let request = [
            "explain",
            "GET",
            "http://example.com/private",
            "--format",
            "json",
        ];
        let output = Process::output(
            &folder,
            &[&request[..], &["-H", &cookie, "-H", &user]].concat(),
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(decision("alice"), "forward");
    assert_eq!(decision("bob"), "block");
}

#[test]
fn explain_simulates_the_age_of_a_known_client() {
    let rules = RULES.replace("not client.known_user", "client.age lt 86400");
    let outcome = |age: &str| {
        let request = [
            "GET",
            "http://shop.example/private",
            "--known",
            "--age",
            age,
        ];
        explain(&request, &rules)
    };
    assert!(
        outcome("1h").contains("from a known client"),
        "{}",
        outcome("1h")
    );
    assert!(outcome("1h").contains("429"), "{}", outcome("1h"));
    assert!(!outcome("2d").contains("429"), "{}", outcome("2d"));
    let note = explain(&["GET", "/", "--known", "--clearance"], "");
    assert!(
        note.contains("--known has no effect: the configuration has no [known_clients]"),
        "{note}"
    );
    assert!(
        note.contains("--clearance has no effect: the configuration has no [challenge]"),
        "{note}"
    );
}
