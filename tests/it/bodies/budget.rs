//! The memory of all inspected bodies together.

use super::{FORM, PER_USER, head, inspections, login};
use crate::harness::{Running, run, wait_until};

const MIB: usize = 1 << 20;

#[test]
fn bodies_above_the_budget_are_not_inspected() {
    let gateway = Running::with(&PER_USER.replace("1KiB", "1MiB"));
    let used = || gateway.gateway().live().process.inspected.used();
    let wires: Vec<_> = (0..64)
        .map(|_| {
            let mut wire = gateway.client().connect();
            let almost = "x".repeat(MIB - 1);
            wire.send(&head("/login", "transfer-encoding: chunked\r\n"));
            wire.send(format!("{MIB:x}\r\n{almost}").as_bytes());
            wire
        })
        .collect();
    wait_until("the budget is full", || used() == 64 * MIB);
    // Their users are missing, so they share one counter.
    login(gateway.client(), "user=alice").send();
    let answer = login(gateway.client(), "user=bob").send();
    assert_eq!(answer.status, 429);
    assert_eq!(inspections(&gateway, "full"), 2);
    drop(wires);
    wait_until("nothing is reserved", || used() == 0);
    login(gateway.client(), "user=alice")
        .times(2)
        .then(200, 429);
    assert_eq!(inspections(&gateway, "read"), 2);
    assert_eq!(used(), 0);
}

#[test]
fn a_length_that_is_only_declared_takes_no_memory() {
    let gateway = Running::with(&PER_USER.replace("1KiB", "1MiB"));
    let used = || gateway.gateway().live().process.inspected.used();
    let wires: Vec<_> = (0..100)
        .map(|_| {
            let mut wire = gateway.client().connect();
            wire.send(&head("/login", "content-length: 1048576\r\n"));
            wire
        })
        .collect();
    wait_until("all bodies are waited for", || used() >= 100 * 512);
    assert!(used() <= 100 * 1024, "{}", used());
    login(gateway.client(), "user=alice").send();
    assert_eq!(inspections(&gateway, "read"), 1);
    drop(wires);
}

#[test]
fn a_form_for_a_challenge_takes_only_the_memory_of_what_has_arrived() {
    const CHALLENGE: &str = r#"
        [limits]
        inspect_body = "1MiB"
        [challenge]
        [[rules]]
        name = "new"
        mitigate = 'http.request.uri.path eq "/login"'
        action = "challenge"
    "#;
    let gateway = Running::with(CHALLENGE);
    let used = || gateway.gateway().live().process.inspected.used();
    let browser =
        "x-forwarded-proto: https\r\naccept: text/html\r\nsec-fetch-site: same-origin\r\n";
    let wires: Vec<_> = (0..100)
        .map(|_| {
            let mut wire = gateway.client().connect();
            wire.send(&head(
                "/login",
                &format!("{browser}content-length: 1048576\r\n"),
            ));
            wire.send(b"user=alice");
            wire
        })
        .collect();
    wait_until("the forms are being read", || used() == 100 * 10);
    drop(wires);
    wait_until("nothing is reserved", || used() == 0);
    let mut wire = gateway.client().connect();
    wire.send(&head("/login", &format!("{browser}content-length: 10\r\n")));
    wire.send(b"user=alice");
    assert!(wire.answer().text().contains("value=\"alice\""));
}

#[test]
fn the_memory_of_a_body_is_returned_after_every_end() {
    let gateway = Running::with(PER_USER);
    let used = || gateway.gateway().live().process.inspected.used();
    for form in ["user=a", "user=a", "user=b", &"x".repeat(5000)] {
        login(gateway.client(), form).send();
    }
    // A client that leaves in the middle.
    let mut wire = gateway.client().connect();
    wire.send(&head("/login", "content-length: 700\r\n"));
    wire.send(&[b'x'; 600]);
    wait_until("the body is read", || used() == 1024);
    drop(wire);
    run(async {
        let mut talk = gateway.client().talk().await;
        let request = talk.request("POST", "/login").header("content-type", FORM);
        let (_, mut stream) = talk.open(request, false).await;
        super::until(|| used() > 0).await;
        stream.send_reset(h2::Reason::CANCEL);
        super::until(|| used() == 0).await;
    });
    wait_until("nothing is reserved", || used() == 0);
}
