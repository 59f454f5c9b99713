//! Reloads while requests come: none is lost, none fails, no count is forgotten.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use lockgate::facts::GeoSource as _;
use lockgate::snapshot::Snapshot;

use crate::harness::{Answer, Client, Folder, Origin, Process, Running, Wire, wait_until};

const CONNECTIONS: usize = 64;
const RELOADS: u64 = 20;

/// The rule that counts everything, in each version of the configuration.
fn counting(limit: u64) -> String {
    format!(
        "[[rules]]\nname = \"all\"\ncount = 'http.host eq \"example.com\"'\n\
         limit = {limit}\nperiod = \"1d\"\n"
    )
}

/// The configuration of a step: its limits, rules, routes and upstreams are not those before.
fn step(number: u64) -> String {
    let mut text = counting(1_000_000 + number);
    for extra in 0..number % 3 {
        text.push_str(&format!(
            "[[rules]]\nname = \"extra-{extra}\"\ncount = 'ip.src.asnum eq {number}'\n\
             key = [\"ip.src\"]\nlimit = {}\nperiod = \"1m\"\n\
             [[upstreams]]\nname = \"spare-{extra}\"\nservers = [\"{{origin}}\"]\n\
             [[routes]]\npath = \"/spare/{number}/*\"\nupstream = \"spare-{extra}\"\n",
            number + 1,
        ));
    }
    if number % 2 == 1 {
        text.push_str("[limits]\nidle_timeout = \"60s\"\nmax_headers = 90\n");
    }
    text
}

#[test]
fn no_request_is_lost_during_a_reload() {
    let gateway = Running::with(&counting(1_000_000));
    let done = AtomicBool::new(false);
    let answered = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let client = match number % 4 {
                0 => gateway.tls_client(),
                _ => gateway.client(),
            };
            scope.spawn(|| ask_until(&done, client, 1, &answered));
        }
        let http2 = scope.spawn(|| ask_over_http2(&gateway));
        let steps = scope.spawn(|| {
            for number in 1..=RELOADS {
                let before = answered.load(Ordering::SeqCst);
                wait_until("requests were answered under this configuration", || {
                    answered.load(Ordering::SeqCst) >= before + CONNECTIONS as u64
                });
                gateway.reload(&step(number)).unwrap();
            }
        });
        let ended = steps.join();
        done.store(true, Ordering::SeqCst);
        ended.unwrap();
        answered.fetch_add(http2.join().unwrap(), Ordering::SeqCst);
    });
    let last = gateway.client().get("/").send();
    let answered = answered.load(Ordering::SeqCst) + 1;
    assert_eq!(remaining(&last), 1_000_000 + RELOADS - answered);
    assert_eq!(gateway.origin.count() as u64, answered);
    let metrics = gateway.metrics();
    for line in [
        format!("lockgate_config_reloads_total{{result=\"success\"}} {RELOADS}"),
        format!("lockgate_rule_matched_total{{rule=\"all\",phase=\"count\"}} {answered}"),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

/// The program itself, as fast as it reloads: signals, listeners that come and go, and rules that
/// change, while sixty-four connections stay open.
#[test]
fn no_request_is_lost_during_two_hundred_reloads() {
    const SIGNALS: u64 = 200;
    let origin = Origin::start();
    let config = |number: u64| {
        let listener = "[[listeners]]\naddress = \"127.0.0.1:0\"\n";
        let mut text = format!("[server]\nworkers = 2\n[log]\naccess = \"off\"\n{listener}");
        if number % 4 == 3 {
            text.push_str("[[listeners]]\naddress = \"[::1]:0\"\n");
        }
        text.push_str("[[upstreams]]\nname = \"origin\"\nservers = [\"{origin}\"]\n");
        text.push_str("[[routes]]\nupstream = \"origin\"\n");
        (text + &step(number)).replace("{origin}", &origin.address.to_string())
    };
    let process = Process::run(&config(0));
    let (done, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS / 8 {
            let client = Client::plain(process.address(0));
            scope.spawn(|| ask_until(&done, client, 8, &answered));
        }
        let steps = scope.spawn(|| {
            for number in 1..=SIGNALS {
                let before = answered.load(Ordering::SeqCst);
                process.reload(&config(number));
                wait_until("requests are answered", || {
                    answered.load(Ordering::SeqCst) > before
                });
            }
        });
        let ended = steps.join();
        done.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    assert!(process.logged(" reload refused ").is_empty());
    let last = Client::plain(process.address(0)).get("/").send();
    let answered = answered.load(Ordering::SeqCst) + 1;
    assert_eq!(remaining(&last), 1_000_000 + SIGNALS - answered);
    assert_eq!(origin.count() as u64, answered);
}

/// Asks on so many connections until all is done; every answer must be there and be right.
fn ask_until(done: &AtomicBool, client: Client, connections: usize, answered: &AtomicU64) {
    let mut wires: Vec<Wire> = (0..connections).map(|_| client.connect()).collect();
    while !done.load(Ordering::SeqCst) {
        for wire in &mut wires {
            let answer = wire.get("/");
            assert_eq!(answer.status, 200);
            assert_eq!(answer.text(), "origin GET / HTTP/1.1");
            assert_eq!(answer.header("connection"), None);
            remaining(&answer);
            answered.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Asks many times on one connection; gives how often.
fn ask_over_http2(gateway: &Running) -> u64 {
    let url = format!("https://{}/[1-300]", gateway.address(1));
    let curl = Command::new("curl")
        .args([
            "--silent",
            "--insecure",
            "--max-time",
            "60",
            "--http2",
            "-o",
            "/dev/null",
        ])
        .args([
            "-H",
            "host: example.com",
            "-w",
            "%{http_version} %{http_code} %{num_connects}\n",
        ])
        .arg(url)
        .output()
        .unwrap();
    let said = String::from_utf8(curl.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let (first, others) = lines.split_first().unwrap();
    assert_eq!(*first, "2 200 1");
    assert_eq!(others.len(), 299);
    assert!(others.iter().all(|line| *line == "2 200 0"), "{said}");
    300
}

/// `r` of the rule that counts everything.
fn remaining(answer: &Answer) -> u64 {
    let quota = answer.header("ratelimit").unwrap();
    let own = quota.split(", ").find(|item| item.starts_with("\"all\""));
    let r = own.unwrap().split(";r=").nth(1).unwrap();
    r.split(';').next().unwrap().parse().unwrap()
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let gateway = Running::with(&counting(3));
    let client = gateway.client().get("/");
    let mut wire = gateway.client().connect();
    client.times(1).all_are(200);
    assert_eq!(remaining(&wire.get("/")), 1);
    for bad in [
        "nonsense",
        "[[rules]]\nname = \"x\"",
        "[server]\nworkers = 7",
    ] {
        let refused = gateway.reload(bad).unwrap_err();
        assert!(refused.text.contains("gateway.toml:"), "{refused}");
        assert!(refused.text.contains(": error: "), "{refused}");
    }
    assert_eq!(remaining(&wire.get("/")), 0);
    client.times(2).last_is(429);
    let metrics = gateway.metrics();
    assert!(metrics.contains("lockgate_config_last_reload_success 0"));
    assert!(metrics.contains("lockgate_config_reloads_total{result=\"failure\"} 3"));
    gateway.reload(&counting(5)).unwrap();
    assert!(
        gateway
            .metrics()
            .contains("lockgate_config_last_reload_success 1")
    );
    assert_eq!(remaining(&wire.get("/")), 1);
}

/// A configuration that compiles and is refused late, for its socket or its log, has registered
/// nothing: neither its rules nor its servers nor its metrics are there.
#[test]
fn a_refused_configuration_has_no_effect() {
    let gateway = Running::with(&counting(3));
    gateway.client().get("/").times(2).all_are(200);
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new();
    let unwritten = folder.path().join("access.log");
    let bad = format!(
        "[log]\naccess = \"{}\"\n\
         [[rules]]\nname = \"new\"\ncount = 'ssl'\nkey = [\"ip.src\"]\nlimit = 1\nperiod = \"1m\"\n\
         [[upstreams]]\nname = \"spare\"\nservers = [\"{{origin}}\"]\n\
         [[routes]]\nupstream = \"spare\"\n[[listeners]]\naddress = \"{}\"\n",
        unwritten.display(),
        busy.local_addr().unwrap()
    );
    let rules = || gateway.gateway().live().process.rules.lock().rules();
    let series = || {
        let metrics = gateway.metrics();
        let lines = metrics.lines().map(|line| line.split(' ').next().unwrap());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (rules_before, series_before) = (rules(), series());
    let refused = gateway.reload_whole(&bad).unwrap_err();
    assert!(refused.text.contains("cannot listen on"), "{refused}");
    assert_eq!(rules(), rules_before);
    assert_eq!(series(), series_before);
    assert!(!unwritten.exists());
    gateway.client().get("/").times(2).then(200, 429);
}

#[test]
fn a_rule_with_a_changed_key_restarts_its_counters_and_logs_it() {
    let config = |key: &str| {
        format!(
            "[log]\naccess = \"off\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
             [[routes]]\nrespond = {{ body = \"hello\" }}\n\
             [[rules]]\nname = \"flood\"\ncount = 'http.host eq \"example.com\"'\n\
             key = [\"{key}\"]\nlimit = 1\nperiod = \"1d\"\nduration = \"1d\"\n"
        )
    };
    let process = Process::run(&config("ip.src"));
    let client = Client::plain(process.address(0)).get("/");
    client.times(2).then(200, 429);
    process.reload(&config("ip.src").replace("limit = 1", "limit = 9"));
    client.times(1).all_are(429);
    process.reload(&config("http.host"));
    client.times(1).all_are(200);
    wait_until("it is in the log", || {
        let lines = process.logged("rule reset or removed");
        lines
            .iter()
            .any(|l| l.contains("rule=flood") && l.contains("bans_ended=1"))
    });
}

#[test]
fn included_files_are_read_again() {
    let config = "include = [\"rules.d/*.toml\"]\n[[listeners]]\naddress = \"127.0.0.1:0\"\n\
                  [[routes]]\nrespond = { body = \"hello\" }\n";
    let deny = |path: &str| {
        format!("[[rules]]\nname = \"deny\"\nmitigate = 'http.request.uri.path eq \"{path}\"'\n")
    };
    let process = Process::run(config);
    let get = |path: &str| Client::plain(process.address(0)).get(path).send().status;
    assert!(!process.logged("no file matches").is_empty());
    assert_eq!((get("/a"), get("/b")), (200, 200));
    std::fs::create_dir(process.folder.path().join("rules.d")).unwrap();
    process.folder.write("rules.d/10.toml", deny("/a"));
    process.reload(config);
    assert_eq!((get("/a"), get("/b")), (429, 200));
    // A mistake in an included file refuses the whole, and is named.
    process
        .folder
        .write("rules.d/20.toml", "\n[[rules]]\nname = \"x\"\n");
    process.reload(config);
    wait_until("it is in the log", || {
        let refused = process.logged("rules.d/20.toml:2:1: error: a rule needs");
        refused.len() == 1
    });
    assert_eq!((get("/a"), get("/b")), (429, 200));
    process.folder.write("rules.d/20.toml", "");
    process.folder.write("rules.d/10.toml", deny("/b"));
    process.reload(config);
    assert_eq!((get("/a"), get("/b")), (200, 429));
}

#[test]
fn check_names_included_files() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("rules.d")).unwrap();
    folder.write("rules.d/b.toml", "");
    folder.write("rules.d/a.toml", "");
    let config = "include = [\"rules.d/*.toml\"]\n[[listeners]]\naddress = \"127.0.0.1:0\"\n";
    folder.write("gateway.toml", config);
    let said =
        |arguments: &[&str]| String::from_utf8(Process::output(&folder, arguments).stdout).unwrap();
    assert_eq!(
        said(&["check"]),
        "gateway.toml: ok\nrules.d/a.toml: ok, included\nrules.d/b.toml: ok, included\n"
    );
    folder.write("rules.d/b.toml", "[[rules]]\nnam = 1\n");
    let report: serde_json::Value =
        serde_json::from_str(&said(&["check", "--format", "json"])).unwrap();
    let files = ["gateway.toml", "rules.d/a.toml", "rules.d/b.toml"];
    assert_eq!(report["files"], serde_json::json!(files));
    let places = report["diagnostics"].as_array().unwrap().iter();
    let mut places = places.map(|d| (d["file"].as_str().unwrap(), d["line"].as_u64().unwrap()));
    assert!(
        places.any(|place| place == ("rules.d/b.toml", 2)),
        "{report}"
    );
}

#[test]
fn unchanged_lists_and_databases_are_in_memory_once() {
    let folder = Folder::new();
    let agents = folder.write("agents.txt", "one\ntwo\n");
    let table = "192.0.2.0\t192.0.2.255\t64500\tZZ\tHERE\n";
    let asns = folder.write("asn.tsv", table);
    let text = format!(
        "[lists]\nagents = {{ file = \"{}\" }}\noffice = [\"192.0.2.0/24\"]\n\
         [geo]\nasn_database = \"{}\"\n",
        agents.display(),
        asns.display()
    );
    let gateway = Running::with(&text);
    let now = || gateway.gateway().live().current.load_full();
    let first = now();
    let same = |name: &str, to: &Snapshot| {
        let (before, after) = (first.settings.lists.get(name), to.settings.lists.get(name));
        before.unwrap().is(after.unwrap())
    };
    for limit in 1..3 {
        gateway
            .reload(&format!("{text}{}", counting(limit)))
            .unwrap();
        let now = now();
        assert!(same("agents", &now) && same("office", &now));
        assert!(now.settings.geo.shares(&first.settings.geo));
    }
    // As long as before, and maybe within the same tick of the file system's clock.
    folder.write("agents.txt", "one\nten\n");
    folder.write("asn.tsv", table.replace("64500", "64501"));
    gateway.reload(&text).unwrap();
    let last = now();
    assert!(!same("agents", &last) && same("office", &last));
    assert!(!last.settings.geo.shares(&first.settings.geo));
    let address = "192.0.2.1".parse().unwrap();
    let asns = [&first, &last].map(|snapshot| snapshot.settings.geo.asn(address));
    assert_eq!(asns, [Some(64500), Some(64501)]);
}
