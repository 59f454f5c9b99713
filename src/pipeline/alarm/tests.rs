//! Waits end, in order and never early.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Builder;

use super::Alarm;
use crate::clock::Clock;

fn run(test: impl Future<Output = ()> + 'static) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .unwrap();
    runtime.block_on(test);
}

#[test]
fn a_wait_is_never_early() {
    run(async {
        let alarm = Alarm::new(Clock::System);
        for micros in [0, 1, 50, 300, 900, 1500, 5000, 20, 700] {
            let then = Clock::System.instant() + Duration::from_micros(micros);
            alarm.until(then).await;
            assert!(Clock::System.instant() >= then, "{micros} µs");
        }
        let past = Clock::System.instant() - Duration::from_secs(1);
        alarm.until(past).await;
    });
}

#[test]
fn many_waits_end_in_order() {
    run(async {
        let alarm = Alarm::new(Clock::System);
        let ended = Rc::new(RefCell::new(Vec::new()));
        let began = Clock::System.instant();
        let waits = (0..200u64).map(|n| {
            let (alarm, ended) = (alarm.clone(), ended.clone());
            // Not in the order in which they end, and some at the same time.
            let turn = n * 77 % 100;
            let then = began + Duration::from_micros(20_000 + turn * 200);
            tokio::task::spawn_local(async move {
                alarm.until(then).await;
                ended.borrow_mut().push(turn);
            })
        });
        for wait in waits.collect::<Vec<_>>() {
            wait.await.unwrap();
        }
        let ended = ended.borrow();
        assert_eq!(ended.len(), 200);
        assert!(ended.is_sorted(), "{ended:?}");
        assert!(alarm.waiting.borrow().is_empty());
    });
}

#[test]
fn who_leaves_keeps_nobody_waiting() {
    run(async {
        let alarm = Alarm::new(Clock::System);
        let soon = Clock::System.instant() + Duration::from_millis(2);
        let later = soon + Duration::from_millis(3);
        for _ in 0..20 {
            let mut wait = Box::pin(alarm.until(soon));
            let polled = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
        }
        assert!(alarm.waiting.borrow().is_empty());
        alarm.until(later).await;
        assert!(Clock::System.instant() >= later);
    });
}
