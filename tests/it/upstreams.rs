//! Which server gets a request, and what happens when it fails: a whole gateway before real
//! origins.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::{Client, Origin, Running};

/// A gateway whose one upstream has these lines. `{origin}` is an origin of its own.
fn gateway(upstream: &str) -> Running {
    Running::on(&config(upstream))
}

fn config(upstream: &str) -> String {
    format!(
        r#"
        [server]
        workers = 1
        drain_timeout = "5s"
        [log]
        access = "off"
        [client_ip]
        trusted_proxies = ["127.0.0.1/32"]
        [[listeners]]
        address = "127.0.0.1:0"
        [[upstreams]]
        name = "app"
        {upstream}
        [[routes]]
        upstream = "app"
        "#
    )
}

/// An origin that says its name.
fn named(name: &'static str) -> Origin {
    Origin::answering(move |_| {
        let length = name.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}").into_bytes()
    })
}

/// An origin that answers while the switch is on, and closes while it is off.
fn switched(on: &Arc<AtomicBool>) -> Origin {
    let on = on.clone();
    Origin::answering(move |_| match on.load(Ordering::SeqCst) {
        true => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec(),
        false => b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    })
}

/// An origin that closes every connection when a request has come.
fn closing() -> Origin {
    Origin::scripted(|mut stream| drop(stream.read(&mut [0; 4096])))
}

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn get(running: &Running) -> Client {
    running.client().get("/")
}

/// The value of a series of the server `label`.
fn value(running: &Running, series: &str, label: &str) -> Option<f64> {
    let named = format!("lockgate_{series}{{upstream=\"app\",server=\"{label}\"");
    let text = running.metrics();
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with(&named))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Waits for what is bound to come.
fn until(what: &str, mut come: impl FnMut() -> bool) {
    for _ in 0..600 {
        if come() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} did not come");
}

#[test]
fn a_name_resolves_to_its_addresses() {
    let origin = named("found");
    let port = origin.address.port();
    let running = gateway(&format!(
        "servers = [\"localhost:{port}\"]\nresolve_interval = \"100ms\"\nretries = 2"
    ));
    // Also where it has an address at which nobody listens.
    for answer in get(&running).times(5).0 {
        assert_eq!((answer.status, answer.text().as_str()), (200, "found"));
    }
    let label = format!("localhost:{port}");
    assert_eq!(value(&running, "upstream_in_flight", &label), Some(0.0));
    assert!(value(&running, "upstream_healthy", &label).unwrap() >= 1.0);
    assert!(!running.metrics().contains("server=\"127.0.0.1"));
    // It is looked up again and again, also after a reload.
    thread::sleep(Duration::from_millis(300));
    let again = format!("servers = [\"localhost:{port}\"]\nretries = 2");
    running.reload_whole(&config(&again)).unwrap();
    assert_eq!(get(&running).send().status, 200);
}

#[test]
fn a_name_without_addresses_leaves_the_gateway_running() {
    let running = gateway("servers = [\"nowhere.invalid:80\"]");
    let answer = get(&running).send();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("10"))
    );
    assert_eq!(
        value(&running, "upstream_healthy", "nowhere.invalid:80"),
        Some(0.0)
    );
    let both = "servers = [\"nowhere.invalid:80\", \"{origin}\"]";
    running.reload_whole(&config(both)).unwrap();
    assert!(get(&running).times(4).all_are(200).is_from_origin());
}

#[test]
fn a_unix_socket_is_a_server() {
    let running = gateway("servers = [\"unix:app.sock\"]");
    assert_eq!(get(&running).send().status, 502);
    let path = running.folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nunix";
                stream.write_all(answer).unwrap();
            }
        }
    });
    assert_eq!(get(&running).times(3).all_are(200).text(), "unix");
    let label = format!("unix:{}", path.display());
    let answered = format!("server=\"{label}\",result=\"ok\"}} 3\n");
    assert!(running.metrics().contains(&answered));
}

#[test]
fn health_checks_remove_and_restore_a_server() {
    let on = Arc::new(AtomicBool::new(true));
    let origin = switched(&on);
    let label = origin.address.to_string();
    let health = "path = \"/well\", interval = \"100ms\", healthy = 2, unhealthy = 2";
    let lines = format!("servers = [\"{label}\"]\nhealth = {{ {health} }}");
    let running = gateway(&lines);
    let healthy = || value(&running, "upstream_healthy", &label);
    assert_eq!((get(&running).send().status, healthy()), (200, Some(1.0)));
    on.store(false, Ordering::SeqCst);
    until("an unhealthy server", || healthy() == Some(0.0));
    let answer = get(&running).send();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    let seen = origin.seen();
    let check = seen.iter().find(|seen| seen.line == "GET /well HTTP/1.1");
    let check = check.expect("a check");
    assert_eq!(check.header("host"), Some(label.as_str()));
    assert_eq!(check.header("user-agent"), Some("lockgate-health"));
    // What is known of a server outlives a reload.
    running
        .reload_whole(&config(&format!("{lines}\nretries = 0")))
        .unwrap();
    assert_eq!(get(&running).send().status, 503);
    on.store(true, Ordering::SeqCst);
    until("a healthy server", || healthy() == Some(1.0));
    assert_eq!(get(&running).send().status, 200);
    // Without checks nothing is known any more, and nobody asks.
    on.store(false, Ordering::SeqCst);
    until("an unhealthy server", || healthy() == Some(0.0));
    running
        .reload_whole(&config(&format!("servers = [\"{label}\"]")))
        .unwrap();
    assert_eq!(get(&running).send().status, 500);
    thread::sleep(Duration::from_secs(1));
    let asked = origin.count();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(origin.count(), asked);
}

#[test]
fn a_client_stays_with_its_server() {
    let origins = ["one", "two", "three"].map(named);
    let [a, b, c] = origins.each_ref().map(|origin| origin.address);
    let servers = format!("servers = [\"{a}\", \"{b}\", \"{c}\"]");
    let key = "balance = \"hash\"\nhash_key = ['http.request.headers[\"x-tenant\"]', \"ip.src\"]";
    let running = gateway(&format!("{servers}\n{key}"));
    let mut used = Vec::new();
    for client in 0..24 {
        let address = format!("203.0.113.{client}");
        let answers = get(&running)
            .from(&address)
            .header("x-tenant", "t")
            .times(4)
            .0;
        let first = answers[0].text();
        assert!(
            answers.iter().all(|answer| answer.text() == first),
            "{address}"
        );
        used.push(first);
    }
    used.sort();
    used.dedup();
    assert_eq!(used.len(), 3);
}

#[test]
fn an_open_circuit_sends_retry_after() {
    let origin = closing();
    let label = origin.address.to_string();
    let breaker = "failures = 3, within = \"10s\", open_for = \"5s\"";
    let running = gateway(&format!(
        "servers = [\"{label}\"]\nretries = 0\ncircuit_breaker = {{ {breaker} }}"
    ));
    get(&running).times(3).all_are(502);
    running.wait(Duration::from_millis(1_500));
    let answer = get(&running).send();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("4"))
    );
    assert_eq!(value(&running, "upstream_healthy", &label), Some(0.0));
    running.wait(Duration::from_millis(3_500));
    get(&running).times(4).then_all(&[502, 503, 503, 503]);
}

#[test]
fn a_dead_server_loses_no_request() {
    let dead = nobody();
    let running = gateway(&format!("servers = [\"{dead}\", \"{{origin}}\"]"));
    get(&running).times(20).all_are(200);
    running
        .client()
        .post("/")
        .body(b"once")
        .times(20)
        .all_are(200);
    assert_eq!(running.origin.count(), 40);
    let retries = value(&running, "upstream_retries_total", &dead).unwrap();
    assert!((1.0..=3.0).contains(&retries), "{retries}");
    assert_eq!(value(&running, "upstream_healthy", &dead), Some(0.0));
}

#[test]
fn a_post_is_never_sent_twice() {
    let broken = closing();
    let running = gateway(&format!(
        "servers = [\"{}\", {{ address = \"{{origin}}\", backup = true }}]",
        broken.address
    ));
    assert_eq!(running.client().post("/").body(b"once").send().status, 502);
    assert_eq!(running.client().post("/").send().status, 502);
    assert_eq!(running.origin.count(), 0);
    assert_eq!(get(&running).send().status, 200);
    assert_eq!(running.origin.count(), 1);
}

#[test]
fn a_server_that_sends_retry_after_is_not_used_until_then() {
    let busy = Origin::answering(|_| {
        b"HTTP/1.1 503 Busy\r\nretry-after: 20\r\ncontent-length: 0\r\n\r\n".to_vec()
    });
    let running = gateway(&format!(
        "servers = [\"{}\", {{ address = \"{{origin}}\", backup = true }}]",
        busy.address
    ));
    get(&running).times(5).all_are(200);
    assert_eq!((busy.count(), running.origin.count()), (1, 5));
    running.wait(Duration::from_secs(21));
    let answer = running.client().post("/").send();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("20"))
    );
    assert_eq!((busy.count(), running.origin.count()), (2, 5));
}
