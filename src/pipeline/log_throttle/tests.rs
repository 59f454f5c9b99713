//! What is said, how often, and what is counted instead.

use super::*;
use crate::clock::ManualClock;

#[test]
fn a_line_a_second_says_how_many_were_left_out() {
    let clock = ManualClock::at(Timestamp::from_secs(100));
    let throttle = LogThrottle::default();
    let say = |upstream, reason| throttle.say(upstream, reason, clock.now());
    assert_eq!(say("a", "closed"), Some(0));
    for _ in 0..97_100 {
        assert_eq!(say("a", "closed"), None);
    }
    assert_eq!(say("a", "no_server"), Some(0));
    assert_eq!(say("b", "closed"), Some(0));
    clock.set(Timestamp::from_millis(100_999));
    assert_eq!(say("a", "closed"), None);
    clock.set(Timestamp::from_secs(101));
    assert_eq!(say("a", "closed"), Some(97_101));
    assert_eq!(say("a", "closed"), None);
    assert_eq!(say("b", "closed"), Some(0));
}

#[test]
fn a_clock_that_was_set_back_does_not_silence_it() {
    let clock = ManualClock::at(Timestamp::from_secs(100));
    let throttle = LogThrottle::default();
    assert_eq!(throttle.say("a", "closed", clock.now()), Some(0));
    clock.set(Timestamp::from_secs(50));
    assert_eq!(throttle.say("a", "closed", clock.now()), Some(0));
    assert_eq!(throttle.say("a", "closed", clock.now()), None);
}

#[test]
fn a_new_kind_is_said_though_all_places_are_taken() {
    let clock = ManualClock::at(Timestamp::from_secs(100));
    let throttle = LogThrottle::default();
    let say = |name: &str, reason| throttle.say(name, reason, clock.now());
    for n in 0..MOST {
        assert_eq!(say(&format!("upstream {n}"), "closed"), Some(0));
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(say("upstream 0", "closed"), None);
    // It takes the place of the first, and tells what was left out of that one.
    assert_eq!(say("one more", "closed"), Some(1));
    assert_eq!(throttle.0.borrow().said.len(), MOST);
    assert_eq!(say("one more", "closed"), None);
    assert_eq!(say("upstream 1", "closed"), None);
    assert_eq!(say("upstream 0", "closed"), Some(1), "it was forgotten");
}

#[test]
fn what_it_keeps_and_what_it_says_are_bounded_and_nothing_is_lost_count_of() {
    let clock = ManualClock::at(Timestamp::from_secs(100));
    let throttle = LogThrottle::default();
    let (mut lines, mut told) = (0, 0);
    let mut failures = 0;
    for pass in 0..5 {
        // As many as there can ever be, all failing over and over within a second.
        for n in 0..MOST * 20 {
            failures += 1;
            if let Some(more) = throttle.say(&format!("upstream {n}"), "closed", clock.now()) {
                lines += 1;
                told += more;
            }
        }
        assert_eq!(throttle.0.borrow().said.len(), MOST, "{pass}");
    }
    assert!(lines <= MOST as u64 + SURPLUS, "{lines}");
    let memory = throttle.0.borrow();
    let kept: u64 = memory.said.iter().map(|said| said.more).sum();
    assert_eq!(lines + told + kept + memory.surplus.more, failures);
    drop(memory);
    clock.set(Timestamp::from_secs(101));
    let more = throttle.say("after a pause", "closed", clock.now());
    assert!(more.is_some_and(|more| more > 0), "{more:?}");
}
