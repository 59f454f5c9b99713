//! The challenge over sockets: solutions, clearances, and attacks on them.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Answer, Challenge, Client, Folder, Origin, Process, Running};

const RULES: &str = r#"
[challenge]
origins = ["https://app.example"]
[[rules]]
name = "pages"
mitigate = 'starts_with(http.request.uri.path, "/p")'
action = "challenge"
[[rules]]
name = "per-clearance"
count = 'http.request.uri.path eq "/p/counted"'
key = ["client.clearance"]
missing = "skip"
limit = 1
period = "1h"
duration = "1h"
action = "challenge"
"#;
const PATH: &str = "/.lockgate/challenge";

/// Requests a page, and returns the challenge.
fn challenge(client: &Client) -> Challenge {
    Challenge::request(client, "/p")
}

fn post(client: &Client, document: &str) -> Answer {
    Challenge::post(client, document)
}

fn reason(answer: &Answer) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    document["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_solution_gives_a_clearance_that_passes() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let challenge = challenge(&client);
    gateway.wait(Duration::from_secs(2));
    let solved = post(&client, &challenge.solve());
    assert_eq!(solved.header("cache-control"), Some("no-store"));
    let cookie = solved.header("set-cookie").unwrap();
    let attributes = "; Max-Age=3600; Path=/; Secure; HttpOnly; SameSite=Lax";
    assert!(
        cookie.starts_with("__Host-lockgate-clearance=") && cookie.ends_with(attributes),
        "{cookie}"
    );

    let cleared = client
        .clone()
        .header("cookie", &Challenge::clearance(&solved));
    assert_eq!(cleared.clone().get("/p").send().status, 200);
    let seen = gateway.origin.seen().pop().unwrap();
    assert_eq!(seen.header("x-lockgate-challenge"), Some("pages"));
    // A clearance passes no rule that would not act.
    assert_eq!(cleared.clone().get("/free").send().status, 200);
    assert_eq!(
        gateway
            .origin
            .seen()
            .pop()
            .unwrap()
            .header("x-lockgate-challenge"),
        None
    );

    let metrics = gateway.metrics();
    for line in [
        "lockgate_challenges_total{rule=\"pages\",result=\"sent\"} 1",
        "lockgate_challenges_total{rule=\"pages\",result=\"solved\"} 1",
        "lockgate_challenge_solve_seconds_bucket{le=\"1.0\"} 0",
        "lockgate_challenge_solve_seconds_bucket{le=\"2.5\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
}

#[test]
fn a_clearance_is_bound_to_host_client_and_time() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let cookie = challenge(&client).clear(&client);
    let status = |client: Client| client.header("cookie", &cookie).get("/p").send().status;
    assert_eq!(status(client.clone()), 200);
    assert_eq!(status(client.clone().from("198.51.100.7")), 200);
    assert_eq!(status(client.clone().header("host", "other.example")), 429);
    assert_eq!(status(client.clone().suites(2)), 429);
    gateway.wait(Duration::from_secs(3_599));
    assert_eq!(status(client.clone()), 200);
    gateway.wait(Duration::from_secs(1));
    assert_eq!(status(client.clone()), 429);
}

#[test]
fn a_replayed_solution_yields_the_same_clearance() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let solution = challenge(&client).solve();
    let first = Challenge::clearance(&post(&client, &solution));
    gateway.wait(Duration::from_secs(300));
    assert_eq!(Challenge::clearance(&post(&client, &solution)), first);
    // So a replay has no second counter.
    let counted = |cookie: &str| {
        let client = client.clone().header("cookie", cookie);
        client.get("/p/counted").send().status
    };
    assert_eq!([counted(&first), counted(&first)], [200, 429]);
    let other = challenge(&client).clear(&client);
    assert_ne!(other, first);
    assert_eq!(counted(&other), 200);
}

#[test]
fn a_precomputed_solution_expires() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let solution = challenge(&client).solve();
    gateway.wait(Duration::from_secs(600));
    assert_eq!(post(&client, &solution).status, 204);
    gateway.wait(Duration::from_secs(1));
    let expired = post(&client, &solution);
    assert_eq!((expired.status, reason(&expired)), (403, "expired".into()));
    let counted = |line: &str| gateway.metrics().lines().any(|found| found == line);
    assert!(counted(
        "lockgate_challenges_total{rule=\"pages\",result=\"expired\"} 1"
    ));
    // A token of a rule that is no longer loaded counts for none.
    let renamed = RULES.replace("\"pages\"", "\"renamed\"");
    gateway.reload(&renamed).unwrap();
    assert_eq!(reason(&post(&client, &solution)), "expired");
    assert!(counted(
        "lockgate_challenges_total{rule=\"\",result=\"expired\"} 1"
    ));
}

#[test]
fn a_wrong_part_token_or_client_is_refused() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let challenge = challenge(&client);
    let (token, parts) = (&challenge.token, challenge.parts());
    let document =
        |token: &str, parts: &[u32]| format!("{{\"token\":\"{token}\",\"solution\":{parts:?}}}");
    for part in 0..parts.len() {
        let mut wrong = parts.clone();
        wrong[part] = challenge.wrong_number(part);
        let answer = post(&client, &document(token, &wrong));
        assert_eq!((answer.status, reason(&answer)), (403, "wrong".into()));
        assert_eq!(answer.header("set-cookie"), None);
    }
    let right = document(token, &parts);
    let of_another_host = post(&client.clone().header("host", "other.example"), &right);
    assert_eq!(reason(&of_another_host), "wrong");
    assert_eq!(reason(&post(&client.clone().suites(2), &right)), "wrong");
    let forged = token.replacen(|c| c != 'A', "A", 5);
    assert_eq!(reason(&post(&client, &document(&forged, &parts))), "wrong");
    assert_eq!(post(&client, &right).status, 204);
    let metrics = gateway.metrics();
    for line in [
        "lockgate_challenges_total{rule=\"pages\",result=\"wrong\"} 8",
        "lockgate_challenges_total{rule=\"\",result=\"wrong\"} 3",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
}

#[test]
fn the_head_of_a_solution_is_checked_first() {
    let gateway = Running::with(RULES);
    let client = gateway.tls_client();
    let solution = challenge(&client).solve();
    let from = |origin: &str| post(&client.clone().header("origin", origin), &solution);
    let foreign = from("https://evil.example");
    assert_eq!((foreign.status, reason(&foreign)), (403, "origin".into()));
    assert_eq!(from("null").status, 403);
    let own = client.clone().header("origin", "https://example.com");
    for second in ["https://example.com", "https://evil.example"] {
        let several = own.clone().header("origin", second);
        assert_eq!(reason(&post(&several, &solution)), "origin");
    }
    assert_eq!(from("https://example.com").status, 204);
    let listed = from("https://app.example");
    assert_eq!(listed.status, 204);
    let allowed = listed.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://app.example"));
    let cross_site = client.clone().header("sec-fetch-site", "cross-site");
    let partitioned = post(
        &cross_site.header("origin", "https://app.example"),
        &solution,
    );
    let cookie = partitioned.header("set-cookie").unwrap();
    assert!(
        cookie.ends_with("; HttpOnly; SameSite=None; Partitioned"),
        "{cookie}"
    );

    let plain = client
        .clone()
        .header("content-type", "text/plain")
        .post(PATH);
    assert_eq!(plain.body(solution.as_bytes()).send().status, 415);
    assert_eq!(post(&client, "{}").status, 400);
    let padded = format!("{solution}{}", " ".repeat(1025 - solution.len()));
    assert_eq!(post(&client, &padded).status, 413);
    assert_eq!(post(&client, &padded[..1024]).status, 204);
    let chunked = client
        .clone()
        .header("content-type", "application/json")
        .post(PATH);
    let chunked = chunked.header("transfer-encoding", "chunked");
    let bytes = format!("{:x}\r\n{solution}\r\n0\r\n\r\n", solution.len());
    assert_eq!(chunked.clone().raw_body(bytes.as_bytes()).status, 204);
    let large = format!("800\r\n{}\r\n0\r\n\r\n", " ".repeat(2048));
    assert_eq!(chunked.raw_body(large.as_bytes()).status, 413);
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn the_access_log_says_that_every_refused_solution_failed() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Running::with_access_log(&log, RULES);
    let client = gateway.tls_client();
    let solution = challenge(&client).solve();
    let foreign = client.clone().header("origin", "https://evil.example");
    assert_eq!(post(&foreign, &solution).status, 403);
    let plain = client.clone().post(PATH).body(solution.as_bytes());
    assert_eq!(plain.send().status, 415);
    assert_eq!(post(&client, &" ".repeat(1025)).status, 413);
    assert_eq!(post(&client, "{}").status, 400);
    assert_eq!(post(&client, &solution).status, 204);
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    crate::harness::wait_until("all lines are written", || read().lines().count() == 6);
    let results: Vec<Value> = read()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["challenge"].take())
        .collect();
    let expected = ["sent", "failed", "failed", "failed", "failed", "solved"];
    assert_eq!(results, expected);
}

#[test]
fn the_limit_of_other_bodies_does_not_apply_to_solutions() {
    let gateway = Running::with(&format!("{RULES}\n[limits]\nmax_body_bytes = \"64B\"\n"));
    let client = gateway.tls_client();
    let solution = challenge(&client).solve();
    let large = post(&client, &" ".repeat(1025));
    assert_eq!((large.status, reason(&large)), (413, "length".into()));
    assert_eq!(large.header("cache-control"), Some("no-store"));
    assert_eq!(post(&client, &solution).status, 204);
    let module = client.post("/.lockgate/challenge.js");
    assert_eq!(module.body(&[b' '; 65]).send().status, 413);
}

#[test]
fn a_clearance_passes_a_concurrency_rule_above_its_limit() {
    let rules = r#"
[challenge]
[[rules]]
name = "at-once"
mitigate = 'http.request.uri.path eq "/p"'
algorithm = "concurrency"
limit = 1
action = "challenge"
"#;
    let begun = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let has_begun = begun.clone();
    let origin = Origin::answering(move |_| {
        has_begun.store(true, std::sync::atomic::Ordering::SeqCst);
        std::thread::sleep(Duration::from_secs(2));
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()
    });
    let gateway = Running::with_origin(origin, rules);
    let client = gateway.tls_client();
    let busy = client.clone().get("/p");
    let slow = std::thread::spawn(move || busy.send().status);
    crate::harness::wait_until("the slot is taken", || {
        begun.load(std::sync::atomic::Ordering::SeqCst)
    });
    let refused = client.clone().get("/p").send();
    assert_eq!(refused.status, 429);
    let challenge = Challenge::of(&refused);
    let cookie = challenge.clear(&client);
    let cleared = client.clone().header("cookie", &cookie);
    assert_eq!(cleared.get("/p").send().status, 200);
    assert_eq!(slow.join().unwrap(), 200);
}

#[test]
fn a_flood_of_wrong_solutions_does_not_exceed_the_budget() {
    let origin = Origin::start();
    let config = format!(
        "[server]\nworkers = 1\n[log]\naccess = \"off\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n\
         [[upstreams]]\nname = \"a\"\nservers = [\"{}\"]\n[[routes]]\nupstream = \"a\"\n{RULES}",
        origin.address
    );
    let gateway = Process::run(&config);
    let client = Client::tls(gateway.address(0));
    let challenge = challenge(&client);
    let mut wrong = challenge.parts();
    *wrong.last_mut().unwrap() = challenge.wrong_number(7);
    let document = format!(
        "{{\"token\":\"{}\",\"solution\":{wrong:?}}}",
        challenge.token
    );
    let flood: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..300)
                        .map(|_| post(&client, &document))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let busy: Vec<&Answer> = flood.iter().filter(|answer| answer.status == 503).collect();
    assert!(
        flood
            .iter()
            .all(|answer| matches!(answer.status, 403 | 503))
    );
    assert!(!busy.is_empty(), "every solution was verified");
    assert!(
        busy.iter()
            .all(|answer| answer.header("retry-after") == Some("1"))
    );
    // Pages are served as before, and a client that tries again gets through.
    assert_eq!(client.clone().get("/free").send().status, 200);
    let solution = challenge.solve();
    crate::harness::wait_until("the solution is accepted", || {
        post(&client, &solution).status == 204
    });
}
