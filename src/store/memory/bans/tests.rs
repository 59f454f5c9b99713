//! Tests of ban evictions, and of a clock that is set back.

use super::*;
use crate::rules::plan::RuleId;
use crate::rules::{BanId, KeyDigest};
use crate::store::BanAuthor;
use crate::store::memory::hash::KeyHasher;

/// Bans of keys that are known by a number.
struct Case {
    hasher: KeyHasher,
    bans: ShardBans,
}

impl Case {
    fn new() -> Self {
        Self {
            hasher: KeyHasher::random(),
            bans: ShardBans::default(),
        }
    }

    fn key(&self, key: u8) -> KeyHash {
        self.hasher.hash(1, &[key])
    }

    fn add(&mut self, key: u8, began: u64, until: u64, counts: bool) {
        let ban = BanEntry {
            id: RuleId {
                identity: 1,
                slot: 1,
            },
            ban_id: BanId::of_digest(1, KeyDigest::of(&[key])),
            key: [key].into(),
            until: at(until),
            since: at(began),
            by: BanAuthor::Rule,
            is_shared: false,
            offence: self.bans.past(self.key(key)).unwrap_or(0) + 1,
        };
        let began = at(began);
        let sentence = BanRecord { ban, began, counts };
        self.bans.add(self.key(key), sentence);
    }

    fn until(&mut self, key: u8, now: u64) -> Option<Timestamp> {
        if self.bans.is_behind(at(now)) {
            self.bans.catch_up(at(now));
        }
        self.bans.until(self.key(key).whole())
    }
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + secs)
}

const DAY: u64 = 24 * 60 * 60;

#[test]
fn an_ended_ban_is_gone_or_past() {
    let mut case = Case::new();
    case.add(1, 0, 10, false);
    case.add(2, 0, 10, true);
    assert!(!case.bans.is_behind(at(9)));
    assert_eq!(case.until(1, 9), Some(at(10)));
    assert!(case.bans.is_behind(at(10)));
    assert_eq!(case.bans.catch_up(at(10)), 1);
    assert_eq!(case.until(1, 10), None);
    assert_eq!(case.until(2, 10), None);
    assert_eq!(case.bans.past(case.key(1)), None);
    assert_eq!(case.bans.past(case.key(2)), Some(1));
    assert_eq!(case.bans.live(at(10)).count(), 0);
    assert!(!case.bans.is_behind(at(DAY + 9)));
    assert_eq!(case.bans.catch_up(at(DAY + 10)), 1);
    assert!(case.bans.is_empty());
}

#[test]
fn a_repetition_takes_the_place_of_the_past_one() {
    let mut case = Case::new();
    case.add(1, 0, 10, true);
    case.bans.catch_up(at(10));
    case.add(1, 20, 80, true);
    assert_eq!(case.bans.past(case.key(1)), None);
    assert_eq!(case.bans.live(at(20)).next().unwrap().offence, 2);
    assert!(!case.bans.forget_first());
    case.bans.catch_up(at(80));
    assert_eq!(case.bans.past(case.key(1)), Some(2));
}

#[test]
fn what_stands_first_in_line_is_told() {
    let mut case = Case::new();
    let nothing = NextExpiries {
        live: u64::MAX,
        past: u64::MAX,
    };
    assert_eq!(case.bans.firsts(), nothing);
    for (key, until) in [(1, 30), (2, 10), (3, 20)] {
        case.add(key, 0, until, true);
    }
    let live = at(10).as_nanos();
    assert_eq!(case.bans.firsts(), NextExpiries { live, ..nothing });
    case.bans.catch_up(at(20));
    let (live, past) = (at(30).as_nanos(), at(10).as_nanos());
    assert_eq!(case.bans.firsts(), NextExpiries { live, past });
    assert!(case.bans.forget_first());
    assert_eq!(case.bans.past(case.key(2)), None);
    assert_eq!(case.bans.past(case.key(3)), Some(1));
    assert_eq!(case.bans.lift_first(None).unwrap().until, at(30));
    assert!(case.bans.lift_first(None).is_none());
}

#[test]
fn a_ban_moves_back_with_the_clock() {
    let mut case = Case::new();
    case.add(1, 1_000, 1_600, false);
    case.add(2, 100, 1_600, false);
    // As far as threads may differ, nothing moves.
    assert_eq!(case.until(1, 990), Some(at(1_600)));
    let listed = |case: &Case| {
        let live = case.bans.live(at(500));
        let mut ends: Vec<_> = live.map(|ban| ban.until).collect();
        ends.sort();
        ends
    };
    assert_eq!(listed(&case), [at(1_100), at(1_600)]);
    assert_eq!(case.until(1, 500), Some(at(1_100)));
    assert_eq!(case.until(2, 500), Some(at(1_600)), "it began before");
    assert_eq!(listed(&case), [at(1_100), at(1_600)]);
    // It ends by the new clock, and by nothing else.
    assert_eq!(case.until(1, 1_099), Some(at(1_100)));
    assert_eq!(case.until(1, 1_100), None);
    // And once more, as often as the clock is set.
    case.add(1, 1_100, 1_700, false);
    assert_eq!(case.until(1, 200), Some(at(800)));
    assert_eq!(case.until(1, 100), Some(at(700)));
}

#[test]
fn a_jump_forward_ends_what_it_ends() {
    let mut case = Case::new();
    case.add(1, 0, 600, false);
    case.add(2, 0, 6_000, false);
    assert_eq!(case.until(1, 3_600), None);
    assert_eq!(case.until(2, 3_600), Some(at(6_000)));
    // Corrected again: what was left is as it was.
    assert_eq!(case.until(2, 60), Some(at(6_000)));
}

#[test]
fn a_past_offence_does_not_wait_for_a_clock_that_was_wrong() {
    let mut case = Case::new();
    case.add(1, 1_000_000, 1_000_010, true);
    case.bans.catch_up(at(1_000_010));
    assert_eq!(case.until(1, 100), None);
    assert_eq!(case.bans.past(case.key(1)), Some(1));
    case.until(1, 100 + DAY - 1);
    assert_eq!(case.bans.past(case.key(1)), Some(1));
    case.until(1, 100 + DAY);
    assert!(case.bans.is_empty());
}

#[test]
fn those_of_a_rule_go_together() {
    let mut case = Case::new();
    for key in 0..4 {
        case.add(key, 0, 10 * u64::from(key + 1), true);
    }
    case.bans.catch_up(at(20));
    let removed = case.bans.remove(|record| record.ban.key[0] % 2 == 0);
    assert_eq!((removed.live.len(), removed.past), (1, 1));
    let (live, past) = (at(40).as_nanos(), at(20).as_nanos());
    assert_eq!(case.bans.firsts(), NextExpiries { live, past });
}
