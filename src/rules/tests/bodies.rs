//! Which requests have a body that rules may need.

use super::*;
use crate::facts::BodyReads;

const FORM_USER: &str = r#"http.request.body.form["user"]"#;

fn reads(rules: &RuleSet, ask: &Ask) -> BodyReads {
    ask.facts(|facts| rules.body_reads(facts))
}

#[test]
fn rules_without_body_fields_need_no_body() {
    let by_header = key(&[r#"http.request.headers["x"]"#], MissingPart::Group);
    // The media type is in the head.
    let by_type = same(r#"http.request.body.mime eq "application/json""#);
    let rules = set([
        Rule {
            key: by_header,
            ..rule()
        },
        Rule {
            scope: by_type,
            ..rule()
        },
    ]);
    assert!(!rules.needs_bodies());
    assert!(reads(&rules, &Ask::post("/a")).is_none());
}

#[test]
fn a_body_in_a_key_or_a_cost_is_needed_if_count_or_mitigate_may_match() {
    let by_user = Rule {
        key: key(&["ip.src", FORM_USER], MissingPart::Group),
        scope: separate(r#"http.request.method eq "POST" and http.response.code eq 401"#),
        ..rule()
    };
    let rules = set([rule(), by_user]);
    assert!(rules.needs_bodies());
    assert_eq!(rules.form_names(), [Box::<str>::from("user")]);
    assert_eq!(reads(&rules, &Ask::post("/b")), BodyReads::FORM);
    assert_eq!(reads(&rules, &Ask::get("/a")), BodyReads::FORM);
    assert!(reads(&rules, &Ask::get("/b")).is_none());
    let cost = with_env(|env| scalar("len(http.request.body.raw)", env).unwrap());
    let rules = set([Rule {
        cost: crate::rules::RuleCost::Computed(cost),
        ..rule()
    }]);
    assert!(reads(&rules, &Ask::post("/b")).raw);
    assert!(reads(&rules, &Ask::get("/b")).is_none());
}

#[test]
fn each_part_is_needed_only_by_the_rules_that_may_match() {
    let rules = set([
        Rule {
            scope: same(
                r#"http.request.uri.path eq "/form" and http.request.body.form["x"] eq "1""#,
            ),
            ..rule()
        },
        Rule {
            scope: same(
                r#"http.request.uri.path eq "/raw" and http.request.body.raw contains "1""#,
            ),
            ..rule()
        },
        Rule {
            scope: same(r#"not (http.request.uri.path ne "/long" or http.request.body.truncated)"#),
            ..rule()
        },
    ]);
    let parts = |path| {
        let reads = reads(&rules, &Ask::post(path));
        (reads.form, reads.raw, reads.truncated)
    };
    assert_eq!(parts("/form"), (true, false, false));
    assert_eq!(parts("/raw"), (false, true, false));
    assert_eq!(parts("/long"), (false, false, true));
    assert_eq!(parts("/other"), (false, false, false));
}

#[test]
fn count_of_a_deny_rule_does_not_matter() {
    let deny = Rule {
        limiter: None,
        scope: separate(r#"http.request.body.form["x"] eq "1""#),
        ..rule()
    };
    let rules = set([deny]);
    assert!(reads(&rules, &Ask::post("/b")).is_none());
    assert_eq!(reads(&rules, &Ask::post("/a")), BodyReads::FORM);
}
