//! The rate-limit headers.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::super::{QuotaNames, add_quota_headers};
use crate::decision::{Action, QuotaStatus, RuleIndex};
use crate::expr::{ExprEnv, NamedLists, predicate};
use crate::facts::FieldTable;
use crate::limit::{Algorithm, Limiter};
use crate::rules::{HeaderStyle, Rule, RuleId, RuleScope, RuleSet};

#[test]
fn standard_headers_list_rules_in_order() {
    let rules = [
        rule("login-stuffing", 5, 60_000, HeaderStyle::Standard),
        rule("odd", 100, 1_500, HeaderStyle::Standard),
    ];
    let headers = told(rules, &[(0, 0, 42), (1, 99, 3)], HeaderMap::new());
    let policy = "\"login-stuffing\";q=5;w=60, \"odd\";q=100;w=2";
    assert_eq!(headers["ratelimit-policy"], policy);
    assert_eq!(
        headers["ratelimit"],
        "\"login-stuffing\";r=0;t=42, \"odd\";r=99;t=3"
    );
    assert_eq!(headers.len(), 2);
}

#[test]
fn legacy_headers_show_the_rule_closest_to_its_limit() {
    let rules = [
        rule("far", 100, 60_000, HeaderStyle::Legacy),
        rule("near", 5, 10_000, HeaderStyle::Legacy),
        rule("hidden", 1, 10_000, HeaderStyle::Standard),
    ];
    let quotas = [(0, 90, 120), (1, 4, 20), (2, 0, 7)];
    let headers = told(rules, &quotas, HeaderMap::new());
    assert_eq!(headers["x-ratelimit-limit"], "5");
    assert_eq!(headers["x-ratelimit-remaining"], "4");
    assert_eq!(headers["x-ratelimit-reset"], "20");
    assert_eq!(headers["ratelimit"], "\"hidden\";r=0;t=7");
}

#[test]
fn a_concurrency_quota_has_no_window() {
    let mut rule = rule("uploads", 3, 0, HeaderStyle::Both);
    rule.limiter = Some(Limiter::new(Algorithm::Concurrency, 3, Duration::ZERO));
    let headers = told([rule], &[(0, 2, 1)], HeaderMap::new());
    assert_eq!(headers["ratelimit-policy"], "\"uploads\";q=3");
    assert_eq!(headers["ratelimit"], "\"uploads\";r=2;t=1");
    assert_eq!(headers["x-ratelimit-limit"], "3");
}

#[test]
fn header_styles_both_and_none() {
    let rules = [
        rule("both", 5, 60_000, HeaderStyle::Both),
        rule("none", 5, 60_000, HeaderStyle::None),
    ];
    let headers = told(rules, &[(0, 3, 9), (1, 1, 1)], HeaderMap::new());
    assert_eq!(headers["ratelimit"], "\"both\";r=3;t=9");
    assert_eq!(headers["x-ratelimit-remaining"], "3");
    assert_eq!(headers.len(), 5);
}

#[test]
fn quota_headers_omit_rules_that_do_not_block_and_dry_runs() {
    for action in [Action::Shadow, Action::Log, Action::Allow] {
        let mut rule = rule("quiet", 5, 60_000, HeaderStyle::Both);
        rule.action = action;
        assert!(told([rule], &[(0, 3, 9)], HeaderMap::new()).is_empty());
    }
    let mut rule = rule("dry", 5, 60_000, HeaderStyle::Both);
    rule.dry_run = true;
    assert!(told([rule], &[(0, 3, 9)], HeaderMap::new()).is_empty());
}

#[test]
fn quota_headers_of_the_origin_are_replaced_only_by_those_that_are_sent() {
    let mut origin = HeaderMap::new();
    for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-limit"] {
        origin.append(name, HeaderValue::from_static("origin"));
        origin.append(name, HeaderValue::from_static("twice"));
    }
    let standard = [rule("a", 5, 60_000, HeaderStyle::Standard)];
    let headers = told(standard, &[(0, 4, 120)], origin.clone());
    assert_eq!(headers.get_all("ratelimit").iter().count(), 1);
    assert_eq!(headers["ratelimit-policy"], "\"a\";q=5;w=60");
    assert_eq!(headers.get_all("x-ratelimit-limit").iter().count(), 2);
    let silent = [rule("a", 5, 60_000, HeaderStyle::None)];
    assert_eq!(told(silent, &[(0, 4, 120)], origin.clone()), origin);
}

fn told<const N: usize>(
    rules: [Rule; N],
    quotas: &[(u16, u64, u64)],
    mut headers: HeaderMap,
) -> HeaderMap {
    let names = QuotaNames::of(&RuleSet::new(rules.into()));
    let quotas: Vec<QuotaStatus> = quotas
        .iter()
        .map(|&(rule, remaining, reset)| QuotaStatus {
            rule: RuleIndex(rule),
            remaining,
            reset,
        })
        .collect();
    add_quota_headers(&names, &quotas, &mut headers);
    headers
}

fn rule(name: &str, limit: u64, period: u64, headers: HeaderStyle) -> Rule {
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &NamedLists::default(),
        allow_response: false,
    };
    let id = RuleId {
        identity: 0,
        slot: 0,
    };
    let scope = RuleScope::Same(predicate("ssl", &env).unwrap());
    let period = Duration::from_millis(period);
    Rule {
        limiter: Some(Limiter::new(Algorithm::SlidingWindow, limit, period)),
        headers,
        ..Rule::new(name.into(), id, scope)
    }
}
