//! When entries appear, what they say, and how long they stay.

use super::findings::RuleActivity;
use super::*;
use crate::admin::objects::{
    AttentionLevel, CertificateObject, ConfigErrorObject, HeldObject, LastReloadObject,
    ServerObject, StoreObject, UpstreamObject,
};
use crate::observe::activity::CandidateRates;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

/// The id, the level and the text of each entry.
fn found(facts: &AttentionFacts) -> Vec<(String, AttentionLevel, String)> {
    let findings = facts.findings(NOW).into_iter();
    findings.map(|one| (one.id, one.level, one.text)).collect()
}

fn only(facts: &AttentionFacts) -> AttentionFinding {
    let mut findings = facts.findings(NOW);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

#[test]
fn a_calm_gateway_needs_no_attention() {
    assert_eq!(found(&AttentionFacts::default()), []);
}

#[test]
fn a_refused_reload_is_critical_until_a_good_one() {
    let error = ConfigErrorObject {
        file: "gateway.toml".into(),
        line: 112,
        column: 14,
        length: 20,
        message: "unknown field `x`".into(),
        source: "mitigate = 'x'".into(),
    };
    let reload = |ok| AttentionFacts {
        last_reload: Some(LastReloadObject {
            at: ApiTime(NOW),
            ok,
            by: "SIGHUP",
            errors: vec![error.clone()],
        }),
        ..AttentionFacts::default()
    };
    let finding = only(&reload(false));
    assert_eq!(finding.text, "The last reload was refused");
    assert!(
        finding
            .detail
            .starts_with("gateway.toml:112:14: unknown field `x`.")
    );
    assert_eq!(finding.link.as_deref(), Some("config:last_reload"));
    assert_eq!(finding.since, Some(NOW));
    assert_eq!(found(&reload(true)), []);
}

fn rule(action: &'static str, rate: f64, before: f32) -> AttentionFacts {
    let activity = RuleActivity {
        name: "login".into(),
        action,
        mitigated_per_s: rate,
        before: vec![before; 45],
        bans: 419,
        ..RuleActivity::default()
    };
    AttentionFacts {
        rules: vec![activity],
        ..AttentionFacts::default()
    }
}

#[test]
fn a_rule_that_suddenly_mitigates_much_more_is_critical() {
    let finding = only(&rule("shadow", 594.2, 0.0));
    assert_eq!(finding.id, "rule:login");
    assert_eq!(finding.text, "login shadows 594 requests per second");
    assert_eq!(
        finding.detail,
        "0 per second 15 minutes ago. 419 active bans."
    );
    assert_eq!(found(&rule("block", 20.0, 0.0)), []);
    assert_eq!(found(&rule("block", 20.1, 0.0)).len(), 1);
    assert_eq!(found(&rule("block", 55.0, 10.0)), []);
    assert_eq!(found(&rule("block", 55.1, 10.0)).len(), 1);
    for harmless in ["allow", "tag", "log"] {
        assert_eq!(found(&rule(harmless, 594.0, 0.0)), []);
    }
}

#[test]
fn the_first_quarter_counts_by_its_median() {
    let mut facts = rule("block", 100.0, 0.0);
    facts.rules[0].before = vec![500.0; 22];
    facts.rules[0].before.extend([0.0; 23]);
    assert_eq!(found(&facts).len(), 1);
    facts.rules[0].before.push(500.0);
    facts.rules[0].before.push(500.0);
    assert_eq!(found(&facts), []);
}

fn server(address: &str, state: &'static str, health: &'static str) -> ServerObject {
    ServerObject {
        address: address.into(),
        weight: 1,
        backup: false,
        state,
        health,
        reason: (health == "unhealthy").then(|| "connection refused".to_owned()),
        since: None,
        in_flight: 0,
        requests_per_s: 0.0,
        error_ratio: 0.0,
        p99_ms: None,
        recent_attempts: 0,
        recent_errors: 0,
    }
}

#[test]
fn an_upstream_without_a_server_is_critical_and_one_unhealthy_server_is_not() {
    let facts = |servers| AttentionFacts {
        upstreams: vec![UpstreamObject {
            name: "app".into(),
            balance: "p2c",
            servers,
        }],
        ..AttentionFacts::default()
    };
    let bad = || server("a:1", "ready", "unhealthy");
    let finding = only(&facts(vec![bad(), server("b:1", "ready", "healthy")]));
    assert_eq!(finding.id, "server:app/a:1");
    assert_eq!(finding.level, AttentionLevel::Warn);
    assert_eq!(finding.text, "app: a:1 is unhealthy");
    assert_eq!(
        finding.detail,
        "Connection refused. 1 of 2 servers take requests."
    );
    let ids: Vec<_> = found(&facts(vec![bad(), server("b:1", "drain", "healthy")]));
    let ids: Vec<_> = ids.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(ids, ["upstream:app", "server:app/a:1"]);
}

#[test]
fn an_upstream_whose_requests_all_fail_is_critical_although_its_server_is_healthy() {
    let facts = |counts: &[(u64, u64)]| {
        let servers = counts.iter().map(|(attempts, errors)| ServerObject {
            recent_attempts: *attempts,
            recent_errors: *errors,
            ..server("a:1", "ready", "healthy")
        });
        let upstream = UpstreamObject {
            name: "app".into(),
            balance: "p2c",
            servers: servers.collect(),
        };
        AttentionFacts {
            upstreams: vec![upstream],
            ..AttentionFacts::default()
        }
    };
    let finding = only(&facts(&[(5, 5)]));
    assert_eq!(
        (finding.id.as_str(), finding.level),
        ("upstream:app", AttentionLevel::Crit)
    );
    assert_eq!(finding.text, "Every request to app fails");
    assert_eq!(
        finding.detail,
        "5 attempts in the last 10 s, none with a response."
    );
    assert_eq!(found(&facts(&[(3, 3), (2, 2)])).len(), 1);
    for calm in [
        &[(4, 4)][..],
        &[(100, 99)],
        &[(50, 50), (50, 49)],
        &[(0, 0)],
    ] {
        assert_eq!(found(&facts(calm)), [], "{calm:?}");
    }
}

#[test]
fn a_certificate_warns_at_21_days_and_is_critical_at_7() {
    let facts = |not_after: Timestamp| AttentionFacts {
        certificates: vec![CertificateObject {
            listener: "public".into(),
            name: "shop.example".into(),
            not_after: ApiTime(not_after),
        }],
        ..AttentionFacts::default()
    };
    assert_eq!(found(&facts(NOW.plus(days(21)))), []);
    let soon = only(&facts(NOW.plus(days(20))));
    assert_eq!(soon.id, "certificate:public/shop.example");
    assert_eq!(soon.level, AttentionLevel::Warn);
    assert_eq!(
        soon.text,
        "The certificate of shop.example expires in 20 days"
    );
    assert_eq!(only(&facts(NOW.plus(days(7)))).level, AttentionLevel::Warn);
    assert_eq!(only(&facts(NOW.plus(days(6)))).level, AttentionLevel::Crit);
    let past = only(&facts(Timestamp::from_secs(1)));
    assert_eq!(past.text, "The certificate of shop.example has expired");
    assert_eq!(past.link, None);
}

#[test]
fn a_store_that_is_not_ok_is_a_warning() {
    let facts = |state| AttentionFacts {
        store: Some(StoreObject {
            kind: "redis",
            mode: Some("exact"),
            state,
            since: Some(ApiTime(NOW)),
            error: Some("the store did not reply in time".into()),
            local_fraction: Some(0.5),
            roundtrip_p99_ms: None,
            keys: 0,
            max_keys: 0,
            bans: 0,
            max_bans: 0,
        }),
        ..AttentionFacts::default()
    };
    assert_eq!(found(&facts("ok")), []);
    assert_eq!(only(&facts("degraded")).text, "Store redis is degraded");
    let local = only(&facts("local"));
    assert_eq!(local.text, "Store redis is unavailable");
    assert_eq!(
        local.detail,
        "The store did not reply in time. This gateway counts alone, at 50 % of each limit."
    );
}

#[test]
fn full_limits_and_panics_are_found() {
    let held = |now| AttentionFacts {
        held: HeldObject { now, max: 100 },
        ..AttentionFacts::default()
    };
    assert_eq!(found(&held(80)), []);
    assert_eq!(only(&held(81)).text, "81 of at most 100 requests are held");
    let facts = AttentionFacts {
        panics: 1,
        evicted_bans: 3,
        likely_false_positives: 7,
        ..AttentionFacts::default()
    };
    let levels: Vec<_> = found(&facts)
        .into_iter()
        .map(|(id, level, _)| (id, level))
        .collect();
    assert_eq!(
        levels,
        [
            ("panics".to_owned(), AttentionLevel::Crit),
            ("evictions".to_owned(), AttentionLevel::Warn),
            ("false_positives".to_owned(), AttentionLevel::Note),
        ]
    );
}

#[test]
fn candidates_and_dry_runs_are_notes() {
    let mut facts = rule("block", 0.0, 0.0);
    facts.rules[0].would_mitigate_per_s = 9.5;
    let trial = only(&facts);
    assert_eq!(trial.id, "dry_run:login");
    assert_eq!(
        trial.text,
        "The dry run of login would block 9.5 requests per second"
    );
    assert_eq!(trial.link.as_deref(), Some("rule:login"));
    facts.rules[0].would_mitigate_per_s = 0.5;
    assert_eq!(found(&facts), []);
    facts.rules[0].candidate = Some(CandidateRates {
        stricter_per_s: 9.8,
        laxer_per_s: 0.2,
    });
    assert_eq!(
        only(&facts).text,
        "The candidate of login decides 10 requests per second differently"
    );
}

fn finding(id: &str, level: AttentionLevel) -> AttentionFinding {
    AttentionFinding {
        id: id.to_owned(),
        level,
        text: id.to_owned(),
        detail: String::new(),
        link: None,
        since: None,
    }
}

#[test]
fn an_entry_stays_for_at_least_30_seconds() {
    let mut board = AttentionBoard::default();
    let at = |seconds| NOW.plus(Duration::from_secs(seconds));
    let held = || vec![finding("held", AttentionLevel::Warn)];
    assert_eq!(board.update(at(0), held()).len(), 1);
    assert_eq!(board.update(at(29), vec![]).len(), 1);
    assert_eq!(board.update(at(30), vec![]).len(), 0);
    assert_eq!(board.update(at(40), held())[0].since, ApiTime(at(40)));
    assert_eq!(board.update(at(100), held())[0].since, ApiTime(at(40)));
    assert_eq!(board.update(at(101), vec![]).len(), 0);
}

#[test]
fn entries_are_sorted_by_level_and_then_newest_first() {
    let mut board = AttentionBoard::default();
    let note = finding("note", AttentionLevel::Note);
    let old = finding("old", AttentionLevel::Crit);
    board.update(NOW, vec![note.clone(), old.clone()]);
    let new = finding("new", AttentionLevel::Crit);
    let warn = finding("warn", AttentionLevel::Warn);
    let later = NOW.plus(Duration::from_secs(5));
    let shown = board.update(later, vec![note, old, warn, new]);
    let ids: Vec<_> = shown.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["new", "old", "warn", "note"]);
}
