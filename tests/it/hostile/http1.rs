//! The table of HTTP/1 requests: plain, and with a rule that answers all of them.

use super::recorder::{Got, Recorder};
use super::table::{self, Case, Expect, Wanted};
use super::{Mode, check_alive, count_panics, each};
use crate::harness::{Answer, Running};

#[test]
fn forwarded_requests_are_unambiguous() {
    run(Mode::Forward);
}

#[test]
fn blocked_requests_leave_no_bytes_for_the_next() {
    run(Mode::Block);
}

#[test]
fn shadowed_requests_leave_no_bytes_for_the_next() {
    run(Mode::Shadow);
}

fn run(mode: Mode) {
    count_panics();
    let (gateway, recorder) = Recorder::behind(mode.rules());
    let cases = table::http1();
    assert!(cases.len() >= 400, "{}", cases.len());
    let mut wrong = each(&cases, |number, case| fault(number, case, mode, &gateway));
    check_alive(&gateway);
    wrong.extend(misled(&cases, mode, recorder.got()));
    assert!(wrong.is_empty(), "{mode:?}: {} {wrong:#?}", wrong.len());
}

/// What is wrong with the answers to a case and to the request behind it.
fn fault(number: usize, case: &Case, mode: Mode, gateway: &Running) -> Option<String> {
    let follow = format!(
        "GET /follow HTTP/1.1\r\nhost: a.example\r\nx-case: {number}\r\nconnection: close\r\n\r\n"
    );
    let bytes = gateway
        .client()
        .raw(&[&case.bytes, follow.as_bytes()].concat());
    let statuses = statuses(&bytes);
    let acted = match mode {
        Mode::Forward | Mode::Shadow => 200,
        Mode::Block => 429,
    };
    let right = match (&case.expect, mode) {
        (Expect::Refused(may), _) => matches!(statuses[..], [one] if may.contains(&one)),
        (Expect::Late(_), Mode::Block) => statuses == [429],
        (Expect::Late(status), _) => statuses == [*status],
        (Expect::Accepted(wanted), Mode::Forward) => {
            statuses == [200, 200][usize::from(wanted.closes)..]
        }
        // A rule may answer before it has read a body, and close.
        (Expect::Accepted(wanted), _) => {
            let most = if wanted.closes { 1 } else { 2 };
            (1..=most).contains(&statuses.len()) && statuses.iter().all(|s| *s == acted)
        }
    };
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    (!right).then(|| format!("{}: {statuses:?} {shown:?}", case.name))
}

/// The statuses of all answers but the interim ones; no body of these tests holds a status line.
fn statuses(bytes: &[u8]) -> Vec<u16> {
    let is_line = |w: &[u8]| w.starts_with(b"HTTP/1.") && w[8] == b' ' && w[9].is_ascii_digit();
    let lines = bytes.windows(13).enumerate().filter(|(_, w)| is_line(w));
    let statuses = lines.map(|(at, _)| Answer::parse(&bytes[at..]).status);
    statuses.filter(|status| *status != 100).collect()
}

/// What the origin got and should not have.
fn misled(cases: &[Case], mode: Mode, got: Vec<Got>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rest = got;
    for (number, case) in cases.iter().enumerate() {
        let (own, others) = rest.into_iter().partition(|got| got.is_of(number));
        rest = others;
        let own: Vec<Got> = own;
        let right = match (&case.expect, mode) {
            (Expect::Accepted(wanted), Mode::Forward) => is_wanted(wanted, &own),
            (Expect::Late(_), Mode::Forward) => own.iter().all(|got| matches!(got, Got::Part(_))),
            _ => own.is_empty(),
        };
        if !right {
            wrong.push(format!("{}: the origin got {own:#?}", case.name));
        }
    }
    let after = |got: &Got| matches!(got, Got::Whole(m) if m.line == "GET /after HTTP/1.1");
    rest.retain(|got| !after(got));
    wrong.extend(rest.iter().map(|got| format!("nobody's: {got:?}")));
    wrong
}

fn is_wanted(wanted: &Wanted, got: &[Got]) -> bool {
    let follow = Wanted {
        line: "GET /follow HTTP/1.1".into(),
        host: "a.example".into(),
        ..Wanted::default()
    };
    let is = |got: &Got, wanted: &Wanted| match got {
        Got::Whole(message) => message.wanted() == *wanted,
        _ => false,
    };
    let open = Wanted {
        closes: false,
        ..wanted.clone()
    };
    match (got, wanted.closes) {
        ([one], true) => is(one, &open),
        ([one, next], false) => is(one, &open) && is(next, &follow),
        _ => false,
    }
}
