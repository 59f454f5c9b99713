//! Counting one thing and stopping another, over real sockets.

use std::time::Duration;

use crate::harness::Running;

#[test]
fn failed_logins_are_counted_and_the_account_is_stopped() {
    let gateway = Running::with(
        r#"
        [[rules]]
        name = "login-stuffing"
        count = 'http.request.uri.path eq "/login" and http.response.code in {401 403}'
        mitigate = 'starts_with(http.request.uri.path, "/account")'
        key = ["ip.src"]
        limit = 5
        period = "1m"
        duration = "10m"
        "#,
    );
    let attacker = gateway.client().from("203.0.113.7");
    attacker.clone().get("/account").times(1).all_are(200);
    attacker
        .clone()
        .wants(401)
        .post("/login")
        .times(6)
        .all_are(401);
    let refused = attacker.clone().get("/account/orders").send();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("600"));
    assert!(!refused.is_from_origin());
    attacker.clone().get("/shop").times(1).all_are(200);
    let other = gateway.client().from("203.0.113.8");
    other.get("/account/orders").times(1).all_are(200);
    gateway.wait(Duration::from_secs(600));
    attacker.get("/account/orders").times(1).all_are(200);
}

#[test]
fn one_client_under_two_addresses_is_held_together_by_ja4() {
    let gateway = Running::with(
        r#"
        [[rules]]
        name = "one-tool"
        count = 'http.request.uri.path eq "/search"'
        key = ["tls.ja4"]
        limit = 3
        period = "1m"
        "#,
    );
    let tool = gateway.tls_client().get("/search");
    tool.clone().from("203.0.113.7").times(3).all_are(200);
    tool.from("198.51.100.9").times(1).all_are(429);
    let other = gateway.tls_client().suites(2).get("/search");
    other.from("203.0.113.7").times(3).all_are(200);
}

#[test]
fn a_shadowed_request_never_reaches_the_origin_and_nothing_tells() {
    let gateway = Running::with(
        r#"
        [[rules]]
        name = "invite-spam"
        count = 'http.request.uri.path eq "/invite"'
        key = ["ip.src"]
        limit = 1
        period = "1m"
        duration = "10m"
        action = "shadow"
        response = "invited"
        [responses.invited]
        content_type = "application/json"
        body = '{"ok":true,"id":"{{uuid}}"}'
        "#,
    );
    let spammer = gateway.client().from("203.0.113.7").body(b"to=a");
    spammer.clone().post("/invite").times(1).all_are(200);
    let before = gateway.origin.count();
    let fake = spammer.post("/invite").send();
    assert_eq!(fake.status, 200);
    assert!(
        fake.text().starts_with(r#"{"ok":true,"id":""#),
        "{}",
        fake.text()
    );
    assert_eq!(gateway.origin.count(), before);
    for (name, _) in &fake.headers {
        assert!(
            ["content-type", "content-length", "date", "connection"].contains(&name.as_str()),
            "{name} tells"
        );
    }
}
