//! Requests that no honest client sends. Whatever comes in, an origin sees nothing of it or
//! exactly one well-formed request, and what is left of a body is never a request.

mod faults;
mod h2;
mod http1;
mod noise;
mod recorder;
mod spellings;
mod strict;
mod table;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use crate::harness::Running;

/// Panics on the threads of a gateway, in this whole process.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// What a gateway does with requests that are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    Block,
    Shadow,
}

impl Mode {
    /// The rules that make a gateway do so, but for the host `after`.
    fn rules(self) -> &'static str {
        match self {
            Mode::Forward => "",
            Mode::Block => "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'",
            Mode::Shadow => {
                "[[rules]]\nname = \"all\"\nmitigate = 'not http.host eq \"after\"'\n\
                 action = \"shadow\""
            }
        }
    }
}

/// What `check` finds wrong with each of `cases`, looked at by several threads.
fn each<C: Sync>(cases: &[C], check: impl Fn(usize, &C) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else {
                        return;
                    };
                    let fault = check(number, case);
                    wrong.lock().unwrap().extend(fault);
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// A gateway whose idle connections end soon.
fn gateway(rules: &str) -> Running {
    count_panics();
    let limits = "[limits]\nidle_timeout = \"1s\"\nrequest_body_timeout = \"1s\"\nmax_body_bytes = \"1MiB\"\n";
    Running::with(&format!("{limits}{rules}"))
}

fn count_panics() {
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
