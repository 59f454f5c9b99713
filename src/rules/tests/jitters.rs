//! Each key's own limit.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use super::super::{CandidateLimit, LimitJitter, MissingPart, Rule, RuleId, RuleSet};
use super::{Ask, NOW, key, rule, same, set};
use crate::clock::Timestamp;
use crate::limit::{Algorithm, Limiter};

/// The hour of [`NOW`].
const HOUR: u64 = NOW.as_secs() / 3_600 * 3_600;

#[test]
fn limits_are_drawn_evenly_within_the_bounds() {
    let rules = set([jittered(1, 100, 200_000)]);
    let drawn: Vec<u64> = (0..20_000u32).map(|n| limit(&rules, n, NOW)).collect();
    let count = |limit: u64| drawn.iter().filter(|drawn| **drawn == limit).count();
    assert!(drawn.iter().all(|limit| (80..=120).contains(limit)));
    // Each of the 41 is drawn 488 times on average; seven standard deviations are 152.
    for limit in 80..=120 {
        assert!(
            (336..=640).contains(&count(limit)),
            "{limit}: {}",
            count(limit)
        );
    }
}

#[test]
fn a_limit_stays_for_its_hour() {
    let rules = set([jittered(1, 1_000, 500_000)]);
    for client in 0..50 {
        let at = |second| limit(&rules, client, Timestamp::from_secs(HOUR + second));
        assert_eq!(at(0), at(1_800));
        assert_eq!(at(0), at(3_599));
    }
    let hours: HashSet<u64> = (0..20)
        .map(|hour| limit(&rules, 1, Timestamp::from_secs(HOUR + hour * 3_600)))
        .collect();
    assert!(hours.len() > 10, "{hours:?}");
}

#[test]
fn each_rule_and_key_has_its_own_jitter() {
    let (one, other) = (
        set([jittered(1, 1_000, 500_000)]),
        set([jittered(2, 1_000, 500_000)]),
    );
    let differs = (0..100).filter(|c| limit(&one, *c, NOW) != limit(&other, *c, NOW));
    assert!(differs.count() > 90);
    let keys: HashSet<u64> = (0..100).map(|client| limit(&one, client, NOW)).collect();
    assert!(keys.len() > 60, "{keys:?}");
}

#[test]
fn every_gateway_draws_the_same() {
    // Known values: another hash would let a fleet disagree while it is upgraded.
    let rules = set([jittered(1, 1_000, 500_000)]);
    let drawn: Vec<u64> = (0..4).map(|client| limit(&rules, client, NOW)).collect();
    assert_eq!(drawn, KNOWN);
}

const KNOWN: [u64; 4] = [1395, 1375, 1165, 819];

#[test]
fn a_burst_gets_the_same_jitter_and_is_at_least_one() {
    let mut bucket = jittered(1, 10, 900_000);
    let minute = Duration::from_secs(60);
    let limiter = Limiter::new(Algorithm::TokenBucket, 10, minute);
    bucket.limiter = Some(limiter);
    let rules = set([bucket]);
    let mut wide = jittered(1, 10, 900_000);
    wide.limiter = Some(Limiter {
        burst: 100,
        ..limiter
    });
    let wide = set([wide]);
    for client in 0..200 {
        let even = limiter_of(&rules, client, NOW);
        assert_eq!(even.limit, even.burst);
        let wide = limiter_of(&wide, client, NOW);
        assert_eq!(wide.limit, even.limit);
        assert!(wide.burst.abs_diff(wide.limit * 10) <= 10, "{wide:?}");
    }
    let all = set([jittered(1, 3, 1_000_000)]);
    let limits: HashSet<u64> = (0..200).map(|client| limit(&all, client, NOW)).collect();
    assert_eq!(limits, HashSet::from_iter(1..=6));
    // Nothing that is a whole unit away is within a fifth of four.
    let few = set([jittered(1, 4, 200_000)]);
    assert!((0..100).all(|client| limit(&few, client, NOW) == 4));
}

#[test]
fn a_candidate_has_the_jitter_of_its_rule() {
    let mut tried = jittered(1, 100, 200_000);
    tried.candidate = Some(CandidateLimit {
        id: RuleId {
            identity: 9,
            slot: 9,
        },
        limiter: tried.limiter.unwrap(),
    });
    let rules = set([tried]);
    for client in 0..50 {
        let plan = ask(client, NOW).facts(|facts| rules.plan(facts));
        assert_eq!(plan.steps[0].limiter, plan.steps[1].limiter);
    }
}

fn jittered(identity: u64, limit: u64, ppm: u32) -> Rule {
    let limiter = Limiter::new(Algorithm::SlidingWindow, limit, Duration::from_secs(60));
    Rule {
        key: key(&[r#"http.request.headers["x-k"]"#], MissingPart::Group),
        limiter: Some(limiter),
        jitter: LimitJitter(ppm),
        ..Rule::new(
            "jittered".into(),
            RuleId { identity, slot: 1 },
            same(r#"http.request.uri.path eq "/a""#),
        )
    }
}

fn ask(client: u32, now: Timestamp) -> Ask {
    let mut ask = Ask::get("/a").header("x-k", client.to_string());
    ask.client = IpAddr::from([203, 0, 113, 7]);
    ask.now = now;
    ask
}

fn limiter_of(rules: &RuleSet, client: u32, now: Timestamp) -> Limiter {
    let plan = ask(client, now).facts(|facts| rules.plan(facts));
    plan.steps[0].limiter
}

fn limit(rules: &RuleSet, client: u32, now: Timestamp) -> u64 {
    limiter_of(rules, client, now).limit
}

#[test]
fn without_jitter_the_limit_is_exact() {
    let plan = Ask::post("/a").facts(|facts| set([rule()]).plan(facts));
    assert_eq!(plan.steps[0].limiter, rule().limiter.unwrap());
}
