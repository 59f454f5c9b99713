//! Requests that wait.

use super::{beginning, deny, head, logged};
use crate::harness::{Client, Folder, Frames, Origin, Process, Running, wait_until};

/// Longer than any test waits: who gets an answer was not held.
const FOR_EVER: &str = "max_delay = \"1h\"";

/// A gateway that holds one request at once.
fn gateway(rules: &str) -> Running {
    let beginning = beginning("off").replace("[server]", "[server]\nmax_held = 1");
    Running::on(&format!("{beginning}{rules}"))
}

fn wait_for_held(gateway: &Running, count: usize) {
    wait_until("so many are held", || {
        let line = format!("lockgate_held_requests {count}\n");
        gateway.metrics().contains(&line)
    });
}

fn rules() -> String {
    [
        deny("tarpit", "/tarpit", "tarpit", FOR_EVER),
        deny("delay", "/delay", "delay", FOR_EVER),
    ]
    .concat()
}

#[test]
fn requests_beyond_max_held_are_not_held() {
    let gateway = gateway(&rules());
    let mut held = gateway.client().connect();
    held.send(head("GET", "/tarpit", "1.1", 0).as_bytes());
    wait_for_held(&gateway, 1);
    gateway.client().get("/tarpit").times(2).all_are(429);
    let answer = gateway.client().get("/delay").times(2);
    assert!(answer.all_are(200).is_from_origin());
    drop(held);
    wait_for_held(&gateway, 0);
    // Its place is free for another.
    let mut held = gateway.client().connect();
    held.send(head("GET", "/delay", "1.1", 0).as_bytes());
    wait_for_held(&gateway, 1);
    assert_eq!(gateway.origin.count(), 2);
}

#[test]
fn a_disconnect_ends_the_hold() {
    let counting = r#"
        [[rules]]
        name = "answers"
        count = 'http.response.code eq 200'
        mitigate = 'http.request.uri.path eq "/"'
        key = ["ip.src"]
        limit = 1
        period = "1h"
    "#;
    // Where rules count answers, what an origin was asked is finished for nobody; this was not.
    for more in ["", counting] {
        let gateway = gateway(&format!("{more}{}", rules()));
        for path in ["/tarpit", "/delay"] {
            let mut held = gateway.client().connect();
            held.send(head("GET", path, "1.1", 0).as_bytes());
            wait_for_held(&gateway, 1);
            drop(held);
            wait_for_held(&gateway, 0);

            let held = super::frames("GET", path, 0);
            let mut wire = gateway.client().connect();
            held.open(&mut wire);
            wait_for_held(&gateway, 1);
            wire.send(&Frames::default().frame(3, 0, 1, &[0, 0, 0, 8]).0);
            wait_for_held(&gateway, 0);
        }
        assert_eq!(gateway.origin.count(), 0);
        gateway.client().get("/").times(1).all_are(200);
    }
}

#[test]
fn a_held_request_is_neither_slow_nor_idle_and_its_body_waits() {
    let limits = "[limits]\nheader_timeout = \"100ms\"\nidle_timeout = \"100ms\"\n";
    let rules = deny("delay", "/delay", "delay", "max_delay = \"1s\"");
    let gateway = gateway(&format!("{limits}{rules}"));
    let body = vec![b'x'; 4 << 20];
    let answer = gateway.client().body(&body).post("/delay").send();
    assert_eq!(answer.status, 200);
    assert!(answer.body == body);
}

#[test]
fn held_requests_get_their_response_during_a_drain() {
    let origin = Origin::start();
    let config = beginning("off").replace("5s", "2s");
    let config = config.replace("{origin}", &origin.address.to_string());
    let mut process = Process::run(&format!("{config}{}", rules()));
    let client = Client::plain(process.address(0));
    let mut tarpit = client.connect();
    tarpit.send(head("GET", "/tarpit", "1.1", 0).as_bytes());
    let mut delay = client.connect();
    delay.send(head("GET", "/delay", "1.1", 0).as_bytes());
    // Both were read before this one, which came later on each core, is answered.
    for _ in 0..20 {
        client.clone().get("/").times(1).all_are(200);
    }
    process.signal("TERM");
    assert_eq!(tarpit.answer().status, 429);
    assert_eq!(delay.answer().status, 200);
    assert_eq!(process.exit_code(), Some(0));
}

#[test]
fn queued_requests_leave_one_by_one_and_are_refused_beyond_the_limit() {
    let queue = r#"
        [[rules]]
        name = "queue"
        mitigate = 'starts_with(http.request.uri.path, "/q")'
        key = ["ip.src"]
        algorithm = "leaky_bucket"
        limit = 2
        period = "1h"
        queue = 5
        max_delay = "1h"
    "#;
    let gateway = gateway(queue);
    gateway.client().get("/q").times(1).all_are(200);
    let mut waiting = gateway.client().connect();
    waiting.send(head("GET", "/q", "1.1", 0).as_bytes());
    wait_for_held(&gateway, 1);
    // The queue has room, the gateway has not: the rule acts.
    let refused = gateway.client().get("/q").send();
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(gateway.origin.count(), 1);
}

#[test]
fn a_tarpit_responds_like_a_block() {
    let rules = deny(
        "tarpit",
        "/",
        "tarpit",
        "max_delay = \"10ms\"\nresponse = \"own\"",
    );
    let own = "[responses.own]\nstatus = 403\ncontent_type = \"text/plain\"\nbody = \"no\"\n";
    let named = gateway(&format!("{rules}{own}"));
    let answer = named.client().get("/").send();
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));

    let plain = gateway(&rules.replace("response = \"own\"", ""));
    let html = plain.client().header("accept", "text/html").get("/").send();
    assert_eq!(html.status, 429);
    let kind = html.header("content-type");
    assert_eq!(kind, Some("text/html; charset=utf-8"));
    let grpc = plain.client().header("content-type", "application/grpc");
    let grpc = grpc.post("/").send();
    assert_eq!((grpc.status, grpc.header("grpc-status")), (200, Some("8")));
}

#[test]
fn a_request_delayed_by_a_limit_waits_for_its_turn() {
    let delay = r#"
        [[rules]]
        name = "slow-down"
        mitigate = 'starts_with(http.request.uri.path, "/")'
        key = ["ip.src"]
        algorithm = "gcra"
        limit = 50
        period = "1s"
        burst = 1
        action = "delay"
        max_delay = "5s"
    "#;
    let gateway = gateway(delay);
    let answers = gateway.client().get("/").times(5);
    assert!(answers.all_are(200).is_from_origin());
    let metrics = gateway.metrics();
    let acted = "lockgate_rule_mitigated_total{rule=\"slow-down\",action=\"delay\"} 4\n";
    assert!(metrics.contains(acted), "{metrics}");
}

#[test]
fn a_client_that_disconnects_while_held_is_counted_and_logged_with_its_rule() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let config = beginning(log.to_str().unwrap());
    let gateway = Running::on(&format!("{config}{}", rules()));
    let mut held = gateway.client().connect();
    held.send(head("GET", "/tarpit", "1.1", 0).as_bytes());
    wait_for_held(&gateway, 1);
    drop(held);
    let line = &logged(&log, 1)[0];
    assert_eq!(line["status"], 499);
    assert_eq!(
        (&line["rule"], &line["action"]),
        (&"tarpit".into(), &"tarpit".into())
    );
    let acted = "lockgate_rule_mitigated_total{rule=\"tarpit\",action=\"tarpit\"} 1\n";
    assert!(gateway.metrics().contains(acted));
}

#[test]
fn hold_time_is_not_part_of_the_upstream_latency() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let delay = deny("delay", "/delay", "delay", "max_delay = \"500ms\"");
    let beginning = beginning(log.to_str().unwrap());
    let gateway = Running::on(&format!("{beginning}{delay}"));
    for path in ["/free", "/delay"] {
        assert_eq!(gateway.client().get(path).send().status, 200);
    }
    let lines = logged(&log, 2);
    let line = |path: &str| lines.iter().find(|line| line["path"] == path).unwrap();
    assert!(line("/free")["held_ms"].is_null());
    let line = line("/delay");
    let millis = |field: &str| line[field].as_f64().unwrap();
    assert!(millis("held_ms") > 0.0, "{line}");
    // It is held, then the origin has it, and then there is its answer's body.
    let parts = millis("held_ms") + millis("upstream_ms");
    assert!(parts <= millis("duration_ms") + 0.01, "{line}");
}
