//! Clients that send their bodies slowly, or only once they are asked.

use std::time::Duration;

use bytes::Bytes;

use super::{FORM, PER_USER, head, inspections};
use crate::harness::{Folder, Running, Talk, Told, run, upload_with_curl, wait_until};

#[test]
fn a_stalled_body_gets_408_before_any_rule() {
    let timeout = "[limits]\nrequest_body_timeout = \"1s\"";
    let gateway = Running::with(&PER_USER.replace("[limits]", timeout));
    for _ in 0..2 {
        let mut wire = gateway.client().connect();
        wire.send(&head("/login", "content-length: 99\r\n"));
        wire.send(b"user=alice");
        let answer = wire.answer();
        assert_eq!(answer.status, 408);
        assert_eq!(answer.header("connection"), Some("close"));
        wire.rest();
    }
    assert!(!gateway.metrics().contains("phase=\"count\"} 1"));
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn a_body_that_breaks_off_is_refused() {
    let gateway = Running::with(PER_USER);
    let mut wire = gateway.client().connect();
    wire.send(&head("/login", "transfer-encoding: chunked\r\n"));
    wire.send(b"5\r\nuser=\r\nnot a size\r\n");
    assert_eq!(wire.answer().status, 400);
    wire.rest();
    assert_eq!(gateway.origin.count(), 0);
}

#[test]
fn padding_leads_into_one_counter() {
    let gateway = Running::with(PER_USER);
    let mut statuses = Vec::new();
    for user in ["alice", "bob", "carol"] {
        let form = format!("p={}&user={user}", "x".repeat(2000));
        statuses.push(super::login(gateway.client(), &form).send().status);
    }
    assert_eq!(statuses, [200, 429, 429]);
    assert_eq!(inspections(&gateway, "truncated"), 3);
}

#[test]
fn a_client_that_waits_is_asked_for_its_body() {
    let gateway = Running::with(PER_USER);
    let mut wire = gateway.client().connect();
    for status in [200, 429, 429] {
        wire.send(&head(
            "/login",
            "content-length: 10\r\nexpect: 100-continue\r\n",
        ));
        assert_eq!(wire.head(), b"HTTP/1.1 100 Continue\r\n\r\n");
        wire.send(b"user=alice");
        let answer = wire.answer();
        assert_eq!((answer.status, answer.header("connection")), (status, None));
    }
    assert_eq!(gateway.origin.count(), 1);
    // No rule needs this one.
    wire.send(&head(
        "/other",
        "content-length: 10\r\nexpect: 100-continue\r\n",
    ));
    assert_eq!(wire.head(), b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn curl_sends_its_body_to_a_rule_that_reads_it() {
    let gateway = Running::with(PER_USER);
    let folder = Folder::new();
    let body = folder.write("body", format!("user=alice&p={}", "x".repeat(900)));
    let mut statuses = Vec::new();
    for (listener, scheme) in [(0, "http"), (1, "https")] {
        let url = format!("{scheme}://{}/login", gateway.address(listener));
        statuses.push(upload_with_curl(&url, &body));
    }
    assert_eq!(statuses, ["200 913", "429 913"]);
}

/// hyper cannot send 100 Continue over HTTP/2.
#[test]
fn an_http2_client_that_waits_for_100_continue_does_not_hang() {
    let gateway = Running::with(PER_USER);
    run(async {
        let mut talk = gateway.client().talk().await;
        let request = |talk: &Talk| {
            let request = talk.request("POST", "/login").header("content-type", FORM);
            request.header("expect", "100-continue")
        };
        let (answer, mut stream) = talk.open(request(&talk), false).await;
        super::until(|| inspections(&gateway, "unsupported") == 1).await;
        stream
            .send_data(Bytes::from_static(b"user=alice"), true)
            .unwrap();
        let told = Told::hear(answer).await;
        assert_eq!((told.status, told.text().as_str()), (200, "user=alice"));
        // It is in the counter of requests without a user.
        let (answer, _stream) = talk.open(request(&talk), false).await;
        assert_eq!(Told::hear(answer).await.status, 429);
        // A client that does not wait is read.
        let told = talk
            .send_all(request(&talk), &[b"user=", b"alice"], Default::default())
            .await;
        assert_eq!(told.status, 200);
        assert_eq!(inspections(&gateway, "read"), 1);
    });
}

#[test]
fn a_request_counts_when_its_body_has_arrived() {
    let gateway = Running::with(PER_USER);
    let mut early = gateway.client().connect();
    early.send(&head("/login", "content-length: 10\r\n"));
    early.send(b"user=");
    let used = || gateway.gateway().live().process.inspected.used();
    wait_until("the body is read", || used() > 0);
    // The window in which the head arrived is over; that of the body counts.
    gateway.wait(Duration::from_secs(180));
    super::login(gateway.client(), "user=alice")
        .times(2)
        .then(200, 429);
    early.send(b"alice");
    assert_eq!(early.answer().status, 429);
}
