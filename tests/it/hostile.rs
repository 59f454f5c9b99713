//! Requests that no honest client sends. Whatever comes in, an origin sees nothing of it or
//! exactly one well-formed request, and what is left of a body is never a request.

mod cases;
mod h2;
mod noise;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use self::cases::{Case, Expect};
use crate::harness::{Answer, Running};

/// Panics on the threads of a gateway, in this whole process.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// What a gateway does with requests that are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    Block,
    Shadow,
}

#[test]
fn forwarded_requests_have_one_meaning() {
    run(Mode::Forward, "");
}

#[test]
fn blocked_requests_leave_nothing_behind() {
    run(
        Mode::Block,
        "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'",
    );
}

#[test]
fn shadowed_requests_leave_nothing_behind() {
    run(
        Mode::Shadow,
        "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'\naction = \"shadow\"",
    );
}

fn run(mode: Mode, rules: &str) {
    let gateway = gateway(rules);
    let cases = cases::all();
    assert!(cases.len() >= 80, "{}", cases.len());
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fault = fault(case, mode, &gateway);
                    wrong.lock().unwrap().extend(fault);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{mode:?}: {wrong:#?}");
    check_origin(&cases, mode, &gateway);
    check_alive(&gateway);
}

/// A gateway whose idle connections end soon.
fn gateway(rules: &str) -> Running {
    static COUNTING: Once = Once::new();
    COUNTING.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            if name.starts_with("core-") {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(panic);
        }));
    });
    let limits = "[limits]\nidle_timeout = \"1s\"\nmax_body_bytes = \"1MiB\"\n";
    Running::with(&format!("{limits}{rules}"))
}

/// What is wrong with the answer to a case.
fn fault(case: &Case, mode: Mode, gateway: &Running) -> Option<String> {
    let bytes = gateway.client().raw(&case.bytes);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    let status = Answer::parse(bytes.strip_prefix(interim).unwrap_or(&bytes)).status;
    let answers = if case.expect == Expect::Two { 2 } else { 1 };
    let acted = match mode {
        Mode::Forward => 0,
        Mode::Block => 429,
        Mode::Shadow => 200,
    };
    let right = match (&case.expect, mode) {
        (Expect::Refused(statuses), _) => statuses.contains(&status),
        (Expect::Broken, Mode::Forward | Mode::Shadow) => status == 400,
        (Expect::TooLarge, Mode::Forward | Mode::Shadow) => status == 413,
        (Expect::One(..) | Expect::Two, Mode::Forward) => status == 200,
        (_, _) => status == acted,
    };
    let right = right && count_answers(&bytes) == answers;
    let shown = &bytes[..bytes.len().min(400)];
    let text = || format!("{}: {}", case.name, String::from_utf8_lossy(shown));
    (!right).then(text)
}

/// How many status lines there are; no body of these tests holds one.
fn count_answers(bytes: &[u8]) -> usize {
    let is_line = |w: &[u8]| w.starts_with(b"HTTP/1.") && w[8] == b' ' && w[9].is_ascii_digit();
    let lines = bytes.windows(13).filter(|w| is_line(w));
    lines.filter(|w| &w[9..12] != b"100").count()
}

fn check_origin(cases: &[Case], mode: Mode, gateway: &Running) {
    let seen = gateway.origin.seen();
    let mut total = 0;
    for (number, case) in cases.iter().enumerate() {
        let number = number.to_string();
        let own = seen.iter().filter(|s| s.header("x-case") == Some(&number));
        let own: Vec<_> = own.collect();
        let name = &case.name;
        match &case.expect {
            Expect::One(line, body) if mode == Mode::Forward => {
                assert_eq!(own.len(), 1, "{name}");
                assert_eq!(own[0].line, *line, "{name}");
                assert_eq!(own[0].body.len(), body.len(), "{name}");
                assert!(own[0].body == body.as_bytes(), "{name}");
                total += 1;
            }
            Expect::Two if mode == Mode::Forward => {
                assert_eq!(own.len(), 2, "{name}");
                total += 2;
            }
            _ => assert_eq!(own.len(), 0, "{name}: the origin saw {own:?}"),
        }
    }
    let lines: Vec<&str> = seen.iter().map(|seen| seen.line.as_str()).collect();
    assert_eq!(seen.len(), total, "{lines:?}");
}

/// Every core still answers.
fn check_alive(gateway: &Running) {
    for client in [gateway.client(), gateway.tls_client()] {
        let client = client.header("host", "after").get("/after");
        client.times(16).all_are(200);
    }
    let metrics = gateway.metrics();
    assert!(metrics.contains("lockgate_protocol_errors_total"));
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "a core panicked");
}
