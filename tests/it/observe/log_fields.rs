//! Fields of the access log that a setting adds, and those that say where a request went.

use serde_json::{Value, json};

use super::parse;
use crate::harness::{Folder, Running};

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A gateway whose upstream has the test's origin and an address that refuses connections.
fn config(log: &std::path::Path, settings: &str) -> String {
    let refusing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = refusing.local_addr().unwrap();
    format!(
        r#"
        [server]
        workers = 1
        [log]
        access = {log:?}
        {settings}
        [[listeners]]
        address = "127.0.0.1:0"
        [[upstreams]]
        name = "app"
        servers = ["{{origin}}"]
        [[upstreams]]
        name = "half"
        balance = "round_robin"
        servers = ["{address}", "{{origin}}"]
        [[upstreams]]
        name = "down"
        retries = 3
        servers = ["{address}"]
        [[routes]]
        path = "/half"
        upstream = "half"
        [[routes]]
        path = "/down"
        upstream = "down"
        [[routes]]
        path = "/own"
        respond = {{ body = "own" }}
        [[routes]]
        upstream = "app"
        "#
    )
}

#[test]
fn expressions_add_fields() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let settings = r#"
        redact = ["x-tenant-key"]
        [log.fields]
        tenant = 'http.request.headers["x-tenant"][0]'
        key = 'http.request.headers["x-tenant-key"][0]'
        cache = 'http.response.headers["x-cache"][0]'
        words = 'len(http.request.uri.path)'
        "#;
    let gateway = Running::on(&config(&log, settings));
    gateway
        .client()
        .header("x-tenant", "acme \"x\"\u{1}".trim_end_matches('\u{1}'))
        .header("x-tenant-key", "s3cret")
        .header("x-answer-header", "x-cache: HIT")
        .get("/a")
        .times(1)
        .all_are(200);
    gateway.client().get("/own").times(1).all_are(200);
    let lines = parse(&log, 2);
    let fields = &lines[0]["fields"];
    assert_eq!(fields["tenant"], "acme \"x\"");
    assert_eq!(
        (&fields["cache"], &fields["words"]),
        (&json!("HIT"), &json!(2))
    );
    let key = fields["key"].as_str().unwrap();
    assert!(key.starts_with("h:") && key.len() == 18, "{key}");
    assert_eq!(lines[1]["fields"]["tenant"], Value::Null);
}

#[test]
fn refused_requests_have_all_fields() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let settings = "[log.fields]\nfrom = 'ip.src'\nmethod = 'http.request.method'";
    let gateway = Running::on(&config(&log, settings));
    let large = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "x".repeat(100_000));
    for (head, status) in [
        ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip", 501),
        ("GET /%00 HTTP/1.1\r\nhost: a", 400),
        ("GET / HTTP/1.1\r\nno field", 400),
        (&large, 431),
    ] {
        let mut wire = gateway.client().connect();
        wire.send(format!("{head}\r\n\r\n").as_bytes());
        assert_eq!(wire.answer().status, status, "{head}");
    }
    for line in parse(&log, 4) {
        let expected = json!({ "from": null, "method": null });
        assert_eq!(line["fields"], expected, "{line}");
    }
}

#[test]
fn the_trace_is_logged_and_its_header_forwarded() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Running::on(&config(&log, ""));
    let header = format!("00-{ID}-00f067aa0ba902b7-01");
    let client = gateway.client().header("traceparent", &header);
    client
        .header("tracestate", "a=b")
        .get("/a")
        .times(1)
        .all_are(200);
    let client = gateway.client().header("traceparent", "00-nonsense");
    client.get("/a").times(1).all_are(200);
    let lines = parse(&log, 2);
    assert_eq!(lines[0]["trace_id"], ID);
    assert_eq!(lines[1]["trace_id"], Value::Null);
    let seen = gateway.origin.seen();
    assert_eq!(seen[0].header("traceparent"), Some(&*header));
    assert_eq!(seen[0].header("tracestate"), Some("a=b"));
}

#[test]
fn the_server_and_the_attempts_are_logged() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let gateway = Running::on(&config(&log, ""));
    gateway.client().get("/half").times(2).all_are(200);
    gateway.client().get("/down").times(1).all_are(502);
    gateway.client().get("/own").times(1).all_are(200);
    let lines = parse(&log, 4);
    let origin = gateway.origin.address.to_string();
    let mut attempts: Vec<u64> = Vec::new();
    for line in &lines[..2] {
        assert_eq!(line["server"], *origin, "{line}");
        attempts.push(line["attempts"].as_u64().unwrap());
    }
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(lines[2]["upstream"], "down");
    let errors: Vec<&Value> = lines.iter().map(|line| &line["error"]).collect();
    assert_eq!(errors[2], "connect_refused");
    assert!(
        [0, 1, 3].iter().all(|line| errors[*line].is_null()),
        "{errors:?}"
    );
    assert!(lines[2]["server"].is_string() && lines[2]["attempts"] == 1);
    assert_eq!(
        (&lines[3]["server"], &lines[3]["attempts"]),
        (&Value::Null, &json!(0))
    );
    assert!(
        lines[3]["listener"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
}

#[test]
fn every_response_can_carry_the_request_id() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let settings = "request_id_header = \"x-request-id\"";
    let gateway = Running::on(&config(&log, settings));
    for (target, status) in [("/a", 200), ("/own", 200), ("/down", 502), ("/%00", 400)] {
        let answers = gateway.client().get(target).times(1);
        let id = answers
            .all_are(status)
            .header("x-request-id")
            .map(str::to_owned);
        let lines = std::iter::repeat_with(|| std::fs::read_to_string(&log).unwrap_or_default());
        let found = lines.take(200).any(|text| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            id.as_deref().is_some_and(|id| text.contains(id))
        });
        assert!(found, "{target}: {id:?}");
    }
    let forwarded = gateway.origin.seen()[0]
        .header("x-request-id")
        .map(str::to_owned);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(&forwarded.unwrap()));
}

#[test]
fn errors_of_the_gateway_have_a_reason() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let settings = "[limits]\nmax_body_bytes = \"1KiB\"";
    let gateway = Running::on(&config(&log, settings).replace(
        "[[routes]]\n        upstream",
        "[[routes]]\n        path = \"/a\"\n        upstream",
    ));
    gateway.client().get("/elsewhere").times(1).all_are(404);
    gateway
        .client()
        .body(&[b'x'; 2000])
        .post("/a")
        .times(1)
        .all_are(413);
    gateway.client().get("/%00").times(1).all_are(400);
    let lines = parse(&log, 3);
    let errors: Vec<&Value> = lines.iter().map(|line| &line["error"]).collect();
    assert_eq!(errors, ["no_route", "body_too_large", "target"]);
}
