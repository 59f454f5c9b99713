//! The trace of each rule, for given store results.

mod amounts;

use std::time::Duration;

use super::super::trace::{RequestPass, RuleTrace, SecretValues, unreached};
use super::super::{FixedKeys, KeyStatus, MissingPart, Plan, PlanResult, Rule, RuleSet};
use super::deciding::{banned, found_for, over, within};
use super::{Ask, NOW, answered, key, rule, same, separate, set};
use crate::decision::Action;
use crate::expr::{FieldFacts, FieldId, NamedLists};
use crate::limit::CounterReading;

type Found = (KeyStatus, Option<CounterReading>);

/// Everything with an entry is a secret.
struct Entries;

impl SecretValues for Entries {
    fn is_secret(&self, _: &[FieldId], entries: &[(FieldId, Box<str>)]) -> bool {
        !entries.is_empty()
    }

    fn hash(&self, value: &[u8]) -> String {
        format!("h:{}", value.len())
    }
}

/// The traces for these store results of the request and, if there is one, of the response.
fn traces(
    rules: &RuleSet,
    ask: &Ask,
    found: &[Found],
    answer: Option<(u16, &[Found])>,
) -> Vec<RuleTrace> {
    ask.facts(|facts| {
        let plan = rules.plan(facts);
        let result: PlanResult = found_for(found).collect();
        let decision = rules.decide(&plan, &result);
        let look = |facts: &dyn FieldFacts, settled: Option<(&Plan, &PlanResult)>| {
            let pass = RequestPass {
                rules,
                lists: &NamedLists::default(),
                facts,
                keys: &FixedKeys::default(),
                now: NOW,
                planned: (&plan, &result),
                decision: &decision,
                settled,
                secrets: &Entries,
            };
            pass.trace(true)
        };
        match answer {
            None => look(facts, None),
            Some((status, found)) => answered(facts, status, |facts| {
                let plan = rules.settle(facts, decision.settle_before);
                look(facts, Some((&plan, &found_for(found).collect())))
            }),
        }
    })
}

#[track_caller]
fn says(rule: Rule, ask: &Ask, found: &[Found], verdict: &str, why: &str) {
    let told = traces(&set([rule]), ask, found, None);
    assert_eq!(
        (told[0].verdict.name().as_str(), told[0].why.as_str()),
        (verdict, why)
    );
}

fn banning() -> Rule {
    Rule {
        ban: Duration::from_secs(600).into(),
        ..rule()
    }
}

#[test]
fn a_counted_request_shows_its_count_and_limit() {
    let why = "counted 2 of 5: within the limit";
    says(rule(), &Ask::post("/a"), &[within(3, 1)], "counted", why);
    let told = &traces(&set([rule()]), &Ask::post("/a"), &[within(3, 1)], None)[0];
    assert_eq!((told.count, told.mitigate), (Some(true), Some(true)));
    assert_eq!(
        (told.value, told.limit, told.remaining),
        (Some(2), Some(5), Some(3))
    );
    assert_eq!((told.key.as_deref(), told.banned_for), (Some(""), None));
}

#[test]
fn an_action_is_explained_with_its_cause() {
    let post = Ask::post("/a");
    let why = "blocked: over the limit, 5 of 5 are used";
    says(rule(), &post, &[over(Some(1))], "block", why);
    let why = "blocked: this request is above the limit of 5: banned for 10m";
    says(banning(), &post, &[banned(600_000, true)], "block", why);
    let why = "blocked: banned for another 42s";
    says(banning(), &post, &[banned(41_500, false)], "block", why);
    let dry = Rule {
        dry_run: true,
        ..rule()
    };
    let why = "dry_run: would have blocked: over the limit, 5 of 5 are used";
    says(dry, &post, &[over(Some(1))], "would_block", why);
    let plain = Rule {
        limiter: None,
        scope: same("not ssl"),
        action: Action::Log,
        ..rule()
    };
    let always = (KeyStatus::Over, None);
    let why = "recorded: the request matched, and the rule has no limit";
    says(plain, &post, &[always], "log", why);
}

#[test]
fn a_counted_request_that_is_not_mitigated_is_explained() {
    let elsewhere = Ask::post("/b");
    let not = r#"`mitigate` did not match: `http.request.uri.path eq "/a"` is false, http.request.uri.path is "/b""#;
    let is = |rule, found, verdict, counted: &str| {
        says(
            rule,
            &elsewhere,
            &[found],
            verdict,
            &format!("{counted}; {not}"),
        );
    };
    is(rule(), within(1, 1), "counted", "counted 4 of 5");
    is(
        rule(),
        over(Some(1)),
        "counted",
        "counted, above the limit of 5",
    );
    let began = "counted, above the limit of 5: banned for 10m";
    is(banning(), banned(600_000, true), "counted", began);
    let lasts = "banned for another 1m, so not charged";
    is(banning(), banned(60_000, false), "no_match", lasts);
}

#[test]
fn a_mitigated_request_that_is_not_counted_is_explained() {
    let get = Ask::get("/a");
    let not = r#"`count` did not match: `http.request.method eq "POST"` is false, http.request.method is "GET""#;
    let why = format!("`mitigate` matched, but only 4 of 5 are used; {not}");
    says(rule(), &get, &[within(1, 1)], "within", &why);
    let why = format!("`mitigate` matched, but the key is not banned; {not}");
    says(
        banning(),
        &get,
        &[(KeyStatus::Within, None)],
        "within",
        &why,
    );
}

#[test]
fn a_mismatch_names_the_deciding_condition() {
    let text =
        r#"http.request.method eq "GET" and (http.host eq "x" or not ssl) and http.host eq "y""#;
    let rule = Rule {
        scope: same(text),
        ..rule()
    };
    let why =
        r#"did not match: `http.request.method eq "GET"` is false, http.request.method is "POST""#;
    says(rule, &Ask::post("/a"), &[], "no_match", why);
    let text = r#"http.host eq "x" or http.host eq "y" or http.host eq "z" or ssl or ssl"#;
    let wide = Rule {
        scope: same(text),
        ..super::rule()
    };
    let told = &traces(&set([wide]), &Ask::get("/"), &[], None)[0];
    assert!(told.why.ends_with(", and 2 more"), "{}", told.why);
}

#[test]
fn a_missing_key_part_is_named() {
    let part = r#"http.request.cookies["s"]"#;
    let skipping = || Rule {
        key: key(&["ip.src", part], MissingPart::Skip),
        ..rule()
    };
    let why = r#"key part `http.request.cookies["s"]` is missing and missing = "skip""#;
    says(skipping(), &Ask::post("/a"), &[], "skip", why);
    let other = traces(&set([skipping()]), &Ask::get("/b"), &[], None);
    assert_eq!(other[0].verdict.name(), "no_match");
    let ask = Ask::post("/a").header("cookie", "s=abc");
    let told = &traces(&set([skipping()]), &ask, &[within(4, 1)], None)[0];
    assert_eq!(told.key.as_deref(), Some("203.0.113.0/24 h:3"));
    assert_eq!(told.key_parts[1], (part.to_owned(), Some("h:3".to_owned())));
}

#[test]
fn secrets_do_not_appear_in_explanations_and_conditions() {
    let scope = same(r#"http.request.headers["authorization"][0] eq "let me in""#);
    let ask = Ask::get("/").header("authorization", "Bearer tell-nobody");
    let told = &traces(&set([Rule { scope, ..rule() }]), &ask, &[], None)[0];
    let text = format!("{told:?}");
    assert!(!text.contains("tell-nobody"), "{text}");
    assert!(told.why.ends_with("is h:18"), "{}", told.why);
}

#[test]
fn rules_after_the_deciding_one_are_not_reached() {
    let named = |name: &str| Rule {
        name: name.into(),
        ..rule()
    };
    let rules = set([named("first"), named("second")]);
    let told = traces(
        &rules,
        &Ask::post("/a"),
        &[over(Some(1)), within(4, 1)],
        None,
    );
    assert_eq!(told[1].verdict.name(), "not_reached");
    let why = "not reached: rule first ended the evaluation; its counter was read for Retry-After";
    assert_eq!(told[1].why, why);
    let none = unreached(&rules, "refused");
    assert_eq!((none[1].why.as_str(), none[1].mitigate), ("refused", None));
}

#[test]
fn counted_responses_are_explained() {
    let failed = || Rule {
        scope: separate("http.response.code eq 401"),
        ..banning()
    };
    let told = |ask: &Ask, found: &[Found], answer: Option<(u16, &[Found])>| {
        let told = traces(&set([failed()]), ask, found, answer).remove(0);
        (told.count, told.verdict.name(), told.why)
    };
    let is = |told: (Option<bool>, String, String), count, verdict: &str, why: &str| {
        assert_eq!(told, (count, verdict.to_owned(), why.to_owned()));
    };
    let post = Ask::post("/a");
    let free = "`mitigate` matched, but the key is not banned";
    let counted = told(&post, &[within(5, 0)], Some((401, &[within(3, 1)])));
    is(
        counted,
        Some(true),
        "counted",
        &format!("{free}; the response counted 2 of 5"),
    );
    let past = told(
        &post,
        &[within(5, 0)],
        Some((401, &[banned(600_000, true)])),
    );
    let why = "the response counted, above the limit of 5: banned for 10m from now on";
    is(past, Some(true), "counted", &format!("{free}; {why}"));
    let fine = told(&post, &[within(5, 0)], Some((200, &[])));
    let why =
        "`count` did not match: `http.response.code eq 401` is false, http.response.code is 200";
    is(fine, Some(false), "within", &format!("{free}; {why}"));
    let stopped = told(&post, &[within(5, 0)], None);
    let why = "`count` reads the response, and this response never counts";
    is(stopped, None, "within", &format!("{free}; {why}"));
}
