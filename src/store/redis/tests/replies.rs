//! Replies that the script sends, and replies that it cannot send.

use proptest::prelude::*;

use crate::clock::Timestamp;
use crate::rules::plan::{KeyStatus, PlanResult};
use crate::store::redis::read_reply;

/// A reply with one result.
fn reply(step: u16, flags: u8, remaining: u64, reset: u64, delay: u64) -> Vec<u8> {
    let mut bytes = 1_767_225_600_000_000u64.to_le_bytes()[..7].to_vec();
    bytes.extend(step.to_le_bytes());
    bytes.push(flags);
    bytes.extend(&remaining.to_le_bytes()[..5]);
    bytes.extend(&reset.to_le_bytes()[..7]);
    bytes.extend(&delay.to_le_bytes()[..7]);
    bytes
}

fn status(result: Option<PlanResult>) -> Option<KeyStatus> {
    Some(result?.steps.first()?.status)
}

#[test]
fn a_reply_has_a_status_and_a_reading() {
    let within = read_reply(&reply(0, 32 + 64 + 16, 4, 1_000, 0), 1).unwrap();
    let [step] = within.steps[..] else {
        panic!("one step");
    };
    assert!(step.charged);
    assert_eq!(step.reading.unwrap().remaining, 4);
    assert_eq!(
        status(read_reply(&reply(0, 1, 0, 0, 0), 1)),
        Some(KeyStatus::Over)
    );
    let banned = read_reply(&reply(0, 3 + 32, 2, 5, 5_000_000), 1).unwrap();
    let until = Timestamp::from_secs(1_767_225_605);
    let started = true;
    assert_eq!(banned.steps[0].status, KeyStatus::Banned { until, started });
    assert_eq!(banned.offence(0), 2);
}

#[test]
fn an_impossible_reply_is_refused() {
    let good = reply(0, 32, 4, 0, 0);
    for bad in [
        Vec::new(),
        good[..6].to_vec(),
        good[..20].to_vec(),
        [&good[..], &[0]].concat(),
        reply(1, 0, 0, 0, 0),
        reply(0, 4, 0, 0, 0),
        vec![255; 7],
        [&good[..], &good[7..], &good[7..]].concat(),
    ] {
        assert_eq!(read_reply(&bad, 1), None, "{bad:?}");
    }
}

proptest! {
    #[test]
    fn no_reply_causes_a_panic(reply in prop::collection::vec(any::<u8>(), 0..200), steps in 0..9usize) {
        if let Some(result) = read_reply(&reply, steps) {
            prop_assert!(result.steps.iter().all(|read| usize::from(read.step) < steps));
        }
    }
}
