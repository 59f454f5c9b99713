//! Request bodies that a rule reads: what reaches the origin, and what slow, padded and waiting clients get.

mod budget;
mod forwarded;
mod secrets;
mod waiting;

use std::time::Duration;

use crate::harness::{Client, Running};

/// One request a minute for each user name that is read from a form.
const PER_USER: &str = r#"
[limits]
inspect_body = "1KiB"
[[rules]]
name = "per-user"
count = 'http.request.uri.path eq "/login"'
key = ['http.request.body.form["user"]']
limit = 1
period = "1m"
"#;

const FORM: &str = "application/x-www-form-urlencoded";

/// How many inspections had this result.
fn inspections(gateway: &Running, result: &str) -> u64 {
    let metrics = gateway.metrics();
    let line = format!("lockgate_body_inspections_total{{result=\"{result}\"}} ");
    let mut lines = metrics.lines();
    let count = lines.find_map(|other| other.strip_prefix(&line));
    count.unwrap().parse().unwrap()
}

/// Waits until `is_so`, while the connections of this runtime go on.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it took too long");
}

/// The head of a POST to `path` with a form.
fn head(path: &str, fields: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: example.com\r\ncontent-type: {FORM}\r\n{fields}\r\n")
        .into_bytes()
}

fn login(client: Client, form: &str) -> Client {
    let client = client.header("content-type", FORM).post("/login");
    client.body(form.as_bytes())
}

/// The configuration of a gateway with this upstream, and `rules` added.
fn behind(upstream: &str, rules: &str) -> String {
    format!(
        r#"
        [log]
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[upstreams]]
        name = "app"
        {upstream}
        [[routes]]
        upstream = "app"
        {rules}
        "#
    )
}

#[test]
fn a_rule_counts_by_a_form_field_over_every_protocol() {
    let gateway = Running::with(PER_USER);
    for (client, user) in [(gateway.client(), "alice"), (gateway.tls_client(), "bob")] {
        let form = format!("user={user}&password=x");
        login(client.clone(), &form).times(2).then(200, 429);
        let seen = gateway.origin.seen();
        assert_eq!(seen.last().unwrap().body, form.as_bytes());
    }
    assert_eq!(inspections(&gateway, "read"), 4);
    login(gateway.client(), "user=carol&user=dave")
        .times(2)
        .then(200, 429);
    login(gateway.client(), "user=erin&user=frank").send();
    assert_eq!(inspections(&gateway, "ambiguous"), 3);
}

#[test]
fn other_requests_are_not_inspected() {
    let gateway = Running::with(PER_USER);
    let client = gateway.client().header("content-type", FORM);
    client
        .clone()
        .post("/other")
        .body(b"user=a")
        .times(3)
        .all_are(200);
    client.get("/login").times(2).then(200, 429);
    let all = [
        "read",
        "truncated",
        "unsupported",
        "encoded",
        "ambiguous",
        "full",
    ];
    assert!(
        all.map(|result| inspections(&gateway, result))
            .iter()
            .all(|count| *count == 0)
    );
}

#[test]
fn a_refused_body_is_read_to_its_end_and_the_connection_goes_on() {
    let gateway = Running::with(PER_USER);
    let mut wire = gateway.client().connect();
    for (size, status) in [(10, 200), (10, 429), (1024, 429), (1025, 200), (9000, 429)] {
        let mut form = b"user=alice&p=".to_vec();
        form.resize(size.max(form.len()), b'x');
        wire.send(&head(
            "/login",
            &format!("content-length: {}\r\n", form.len()),
        ));
        wire.send(&form);
        let answer = wire.answer();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (status, None),
            "{size}"
        );
    }
    assert_eq!(wire.get("/").status, 200);
    assert_eq!(gateway.origin.count(), 3);
    assert_eq!(inspections(&gateway, "read"), 3);
    assert_eq!(inspections(&gateway, "truncated"), 2);
}

#[test]
fn a_declared_length_above_the_limit_is_refused_unread() {
    let gateway =
        Running::with(&PER_USER.replace("[limits]", "[limits]\nmax_body_bytes = \"2KiB\""));
    let mut wire = gateway.client().connect();
    wire.send(&head(
        "/login",
        "content-length: 2049\r\nexpect: 100-continue\r\n",
    ));
    assert_eq!(wire.answer().status, 413);
    // Without a declared length, what arrives is counted.
    let mut wire = gateway.client().connect();
    wire.send(&head("/login", "transfer-encoding: chunked\r\n"));
    wire.send(format!("{:x}\r\n{}\r\n0\r\n\r\n", 3000, "x".repeat(3000)).as_bytes());
    let refused = wire.answer().status;
    assert!(matches!(refused, 413 | 429), "{refused}");
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn other_actions_read_bodies_too() {
    let rules = |action: &str| {
        let rule =
            "[[rules]]\nname = \"r\"\nmitigate = 'http.request.body.form[\"user\"] eq \"bot\"'\n";
        format!("{rule}action = \"{action}\"\n")
    };
    for (action, status) in [("shadow", 200), ("block", 429), ("tag", 200), ("close", 0)] {
        let gateway = Running::with(&rules(action));
        let answer = login(gateway.client(), "user=bot").send();
        assert_eq!(answer.status, status, "{action}");
        assert_eq!(answer.is_from_origin(), action == "tag", "{action}");
        assert!(
            login(gateway.client(), "user=human")
                .send()
                .is_from_origin(),
            "{action}"
        );
    }
}
