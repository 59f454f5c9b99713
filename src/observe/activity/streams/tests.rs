//! Tests of the queues of event streams.

use super::super::decision_record::tests::{blocked, forwarded};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Queues `decisions`, of which each has its index as its text.
fn decide(queue: &StreamQueue, decisions: &[DecisionRecord], elapsed: Duration) {
    let mut json = |index: usize| index.to_string().into();
    queue.decide(decisions, &[], elapsed, &mut json);
}

fn sent(queue: &StreamQueue) -> Vec<usize> {
    let decisions = queue.take().unwrap_or_default().decisions;
    decisions.iter().map(|text| text.parse().unwrap()).collect()
}

fn filtered(filter: DecisionFilter) -> StreamQueue {
    StreamQueue::new(filter, None)
}

#[test]
fn a_flood_does_not_hide_a_rare_rule() {
    let queue = filtered(DecisionFilter::default());
    let mut decisions = vec![blocked("flood", [1; 4]); 500];
    decisions.push(forwarded());
    decisions.push(blocked("rare", [2; 4]));
    decide(&queue, &decisions, SECOND);
    let first = sent(&queue);
    assert_eq!(first.len(), PER_SECOND as usize);
    assert!(first.contains(&500) && first.contains(&501));
    // The limit holds until the next tick.
    decide(&queue, &decisions, SECOND);
    assert_eq!(queue.take(), None);
    queue.tick("t".into());
    let events = queue.take().unwrap();
    assert_eq!((events.skipped, events.decisions.len()), (2 * 502 - 20, 0));
    decide(&queue, &decisions, SECOND);
    assert_eq!(sent(&queue).len(), PER_SECOND as usize);
}

#[test]
fn decisions_are_spread_over_the_second() {
    let queue = filtered(DecisionFilter::default());
    let flood = vec![blocked("flood", [1; 4]); 100];
    for _ in 0..5 {
        decide(&queue, &flood, SECOND / 5);
        assert_eq!(sent(&queue).len(), 4);
    }
}

#[test]
fn filters_apply_before_sampling() {
    let mut decisions = vec![blocked("flood", [1; 4]); 500];
    decisions.push(DecisionRecord {
        action: "shadow",
        ..blocked("rare", [2; 4])
    });
    for filter in [
        DecisionFilter {
            rule: Some("rare".to_owned()),
            ..DecisionFilter::default()
        },
        DecisionFilter {
            action: Some("shadow".to_owned()),
            ..DecisionFilter::default()
        },
        DecisionFilter {
            ip: Some([2; 4].into()),
            ..DecisionFilter::default()
        },
    ] {
        let queue = filtered(filter);
        decide(&queue, &decisions, SECOND);
        assert_eq!(sent(&queue), [500]);
        queue.tick("t".into());
        assert_eq!(queue.take().unwrap().skipped, 0);
    }
}

#[test]
fn decisions_that_were_only_counted_are_skipped() {
    let missed = |rule: &str, action| MissedDecisions {
        rule: Some(rule.into()),
        action,
        count: 100,
    };
    let missed = [missed("a", "block"), missed("b", "shadow")];
    let skipped = |filter| {
        let queue = filtered(filter);
        queue.decide(&[], &missed, SECOND, &mut |_| Arc::default());
        queue.tick("t".into());
        queue.take().unwrap().skipped
    };
    let by_rule = |rule: &str| DecisionFilter {
        rule: Some(rule.to_owned()),
        ..DecisionFilter::default()
    };
    assert_eq!(skipped(DecisionFilter::default()), 200);
    assert_eq!(skipped(by_rule("a")), 100);
    assert_eq!(skipped(by_rule("c")), 0);
}

#[test]
fn a_slow_reader_does_not_grow_its_queue() {
    let queue = StreamQueue::new(DecisionFilter::default(), Some("first".into()));
    let flood = vec![blocked("flood", [1; 4]); 100];
    for n in 0..1000 {
        decide(&queue, &flood, SECOND);
        queue.mark(n.to_string().into());
        queue.tick(n.to_string().into());
    }
    let events = queue.take().unwrap();
    assert_eq!(events.decisions.len(), MAX_WAITING);
    assert_eq!(events.marks.len(), MAX_MARKS);
    assert_eq!(events.tick.as_deref(), Some("999"));
    assert_eq!(events.skipped, 100 * 1000 - MAX_WAITING as u64);
    assert_eq!(queue.take(), None);
}

#[test]
fn a_reader_is_woken() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let queue = Arc::new(filtered(DecisionFilter::default()));
        let (events, ()) = tokio::join!(queue.next(), async { queue.tick("t".into()) });
        assert_eq!(events.tick.as_deref(), Some("t"));
    });
}
