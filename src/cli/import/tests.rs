//! For any ruleset, the output loads and mentions every rule.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::draft::UsedNames;
use super::judge;
use super::{convert, quote};

/// Strings that try to break out of a TOML string, and strings with a meaning.
const TEXTS: &[&str] = &[
    "",
    "ssl",
    "http.request.uri.path eq \"/login\"",
    "http.request.uri.path eq '/x'",
    "http.user_agent contains \"it's\"",
    "http.user_agent contains \"'''\"",
    "(ssl)\nor\r\n(not ssl)",
    "ip.src in $office",
    "ip.src in $cf.vpn",
    "ip.src in $a.b",
    "http.host matches \"^a$b\" and ip.src in $office",
    "cf.threat_score gt 5",
    "http.response.code eq 401",
    "cf.colo.id",
    "cf.unique_visitor_id",
    "ip.src",
    "http.request.headers[\"x\"]",
    "\"\n[[rules]]\nname = \"x\"",
    "'''\n[[rules]]\n",
    "\"\"\"\n# x",
    "\u{0}\u{1b}[2J\u{7f}\u{85}\r",
    "\u{202e}\u{2028}é漢😀",
    "\\ \\u0000 \\",
    "{{uuid}} {{",
    "text/html",
    "current",
    "block",
    "skip",
    "forbidden",
    "close",
    "redirect",
    "challenge",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(TEXTS).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => ".{60,90}",
    ]
}

/// Generates any JSON, mostly small.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..100_u64).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|entries| { Value::Object(entries.into_iter().collect::<Map<_, _>>()) }),
        ]
    })
}

/// Generates values that mostly have the right type. `None` omits the JSON key.
fn mostly(right: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        8 => right.prop_map(Some),
        1 => anything().prop_map(Some),
        1 => Just(None),
    ]
}

fn object(fields: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> BoxedStrategy<Value> {
    let (keys, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    values
        .prop_map(move |values| {
            let there = keys.iter().zip(values);
            let there = there.filter_map(|(key, value)| Some((key.to_string(), value?)));
            Value::Object(there.collect())
        })
        .boxed()
}

fn string() -> BoxedStrategy<Option<Value>> {
    mostly(text().prop_map(Value::from)).boxed()
}

fn whole() -> BoxedStrategy<Option<Value>> {
    mostly((0..5000_u64).prop_map(Value::from)).boxed()
}

fn ratelimit() -> BoxedStrategy<Value> {
    let parts = prop::collection::vec(text().prop_map(Value::from), 0..4);
    object(vec![
        (
            "characteristics",
            mostly(parts.prop_map(Value::from)).boxed(),
        ),
        ("period", whole()),
        ("requests_per_period", whole()),
        ("mitigation_timeout", whole()),
        ("counting_expression", string()),
        ("requests_to_origin", mostly(Just(json!(true))).boxed()),
        ("score_per_period", whole()),
        ("score_response_header_name", string()),
        ("unknown", prop::option::of(anything()).boxed()),
    ])
}

fn parameters() -> BoxedStrategy<Value> {
    let response = object(vec![
        (
            "status_code",
            mostly((100..700).prop_map(Value::from)).boxed(),
        ),
        ("content", string()),
        ("content_type", string()),
        ("unknown", prop::option::of(anything()).boxed()),
    ]);
    object(vec![
        ("response", prop::option::of(response).boxed()),
        (
            "ruleset",
            prop::option::of(text().prop_map(Value::from)).boxed(),
        ),
        ("products", prop::option::of(anything()).boxed()),
    ])
}

fn rule() -> BoxedStrategy<Value> {
    object(vec![
        ("description", string()),
        ("ref", string()),
        ("id", string()),
        ("expression", string()),
        ("action", string()),
        ("action_parameters", prop::option::of(parameters()).boxed()),
        ("ratelimit", prop::option::of(ratelimit()).boxed()),
        (
            "enabled",
            mostly(any::<bool>().prop_map(Value::from)).boxed(),
        ),
        ("logging", prop::option::of(anything()).boxed()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_output_loads_and_names_every_rule(
        rules in prop::collection::vec(prop_oneof![9 => rule(), 1 => anything().boxed()], 1..5),
    ) {
        let document = json!({ "rules": rules });
        let imported = convert("x.json", document.to_string().as_bytes()).unwrap();
        prop_assert_eq!(judge::errors(&imported.toml), Vec::<String>::new());
        let mut names = UsedNames::default();
        for rule in &rules {
            let name = names.rule(rule.as_object());
            prop_assert!(imported.toml.contains(&name), "{name} in\n{}", imported.toml);
        }
        let (sum, notes) = imported.messages.split_last().unwrap();
        prop_assert!(sum.ends_with(" notes") || sum.ends_with(" note"));
        let written = imported.toml.matches("# note: ").count();
        prop_assert!(written >= notes.len(), "{notes:#?}\n{}", imported.toml);
        let calm = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        prop_assert!(calm(&imported.toml));
        prop_assert!(notes.iter().all(|line| calm(line) && !line.contains(['\n', '\t'])));
    }

    #[test]
    fn no_document_causes_a_panic(document in anything()) {
        for wrapped in [document.clone(), json!({ "result": document }), json!([document])] {
            let _ = convert("x.json", wrapped.to_string().as_bytes());
        }
    }

    #[test]
    fn a_string_is_imported_unchanged(text in text()) {
        for written in [quote::string(&text), quote::word(&text)] {
            let table: toml::Table = toml::from_str(&format!("x = {written}")).unwrap();
            prop_assert_eq!(table["x"].as_str(), Some(text.as_str()));
        }
    }

    #[test]
    fn uncommenting_a_rule_restores_it(
        description in "[a-z]{1,8}",
        expression in text(),
    ) {
        let rule = json!({ "ref": description, "expression": expression, "action": "redirect" });
        let imported = convert("x.json", rule.to_string().as_bytes()).unwrap();
        let lines = imported.toml.lines().filter(|line| !line.starts_with("# note: "));
        let lines = lines.skip_while(|line| *line != "# [[rules]]");
        let uncommented: Vec<_> = lines
            .map(|line| line.strip_prefix("# ").unwrap_or(line.trim_start_matches('#')))
            .collect();
        let table: toml::Table = toml::from_str(&uncommented.join("\n")).unwrap();
        prop_assert_eq!(table["rules"][0]["mitigate"].as_str(), Some(expression.as_str()));
    }
}

#[test]
fn rule_names_are_valid_and_unique() {
    let mut names = UsedNames::default();
    let mut name = |rule: Value| names.rule(rule.as_object());
    assert_eq!(
        name(json!({"description": "Log-in: 5/min!"})),
        "log-in-5-min"
    );
    assert_eq!(
        name(json!({"description": "LOG-IN 5 min"})),
        "log-in-5-min-2"
    );
    assert_eq!(
        name(json!({"description": "漢字", "ref": "My_Ref"})),
        "my_ref"
    );
    assert_eq!(name(json!({"description": "", "id": "0a1b"})), "0a1b");
    assert_eq!(name(json!({"description": 7})), "rule-5");
    assert_eq!(name(json!(null)), "rule-6");
    let long = json!({"description": "x".repeat(100)});
    assert_eq!(name(long.clone()).len(), 64);
    let second = name(long);
    assert_eq!((second.len(), &second[60..]), (64, "xx-2"));
}

#[test]
fn seconds_become_the_largest_unit_that_fits() {
    for (seconds, written) in [
        (json!(0), "\"0s\""),
        (json!(10), "\"10s\""),
        (json!(60), "\"1m\""),
        (json!(90), "\"90s\""),
        (json!(7200.0), "\"2h\""),
        (json!(86_400), "\"1d\""),
        (json!(-1), "-1"),
        (json!(1.5), "1.5"),
        (json!("60"), "\"60\""),
    ] {
        assert_eq!(quote::duration(&seconds), written);
    }
}

#[test]
fn a_rule_with_an_empty_limit_does_not_become_a_deny_rule() {
    for ratelimit in [
        json!({}),
        json!({"requests_per_period": 0}),
        json!("x"),
        json!([]),
    ] {
        let rule = json!({"expression": "ssl", "action": "block", "ratelimit": ratelimit});
        let imported = convert("x.json", rule.to_string().as_bytes()).unwrap();
        assert!(
            imported.toml.contains("\n# [[rules]]\n"),
            "{}",
            imported.toml
        );
    }
}

#[test]
fn an_array_of_one_object_is_read_as_the_object() {
    let limit = json!({"characteristics": ["ip.src"], "period": 60, "requests_per_period": 5});
    let response = json!({"status_code": 420, "content": "calm"});
    let rule = |limit: Value, parameters: Value| {
        let rule = json!({"expression": "ssl", "action": "block", "ratelimit": limit,
                          "action_parameters": parameters});
        convert("x.json", rule.to_string().as_bytes()).unwrap().toml
    };
    let plain = rule(limit.clone(), json!({"response": response.clone()}));
    let listed = rule(json!([limit.clone()]), json!([{"response": [response]}]));
    assert!(plain.contains("1 rule written, 0 written as comments, 0 notes"));
    assert_eq!(listed, plain);
    let two = rule(json!([limit.clone(), limit]), json!({}));
    assert!(
        two.contains("`ratelimit` is an array, not an object"),
        "{two}"
    );
}

#[test]
fn a_rule_named_like_the_shared_response_gets_its_own_response() {
    let document = json!([
        {"description": "Forbidden", "expression": "ssl", "action": "block",
         "action_parameters": {"response": {"status_code": 451, "content": "law"}}},
        {"description": "plain", "expression": "ssl", "action": "block"},
    ]);
    let imported = convert("x.json", document.to_string().as_bytes()).unwrap();
    assert!(
        imported
            .toml
            .contains("[responses.forbidden]\nstatus = 403\n")
    );
    assert!(
        imported
            .toml
            .contains("[responses.forbidden-2]\nstatus = 451\n")
    );
}

#[test]
fn a_list_used_only_by_commented_rules_is_a_comment() {
    let rule = |expression: &str| json!({ "expression": expression, "action": "block" });
    let [good, bad] = ["ip.src in $good", "ip.src in $bad and cf.threat_score gt 5"].map(rule);
    let lists = |rules: Value| {
        let imported = convert("f", rules.to_string().as_bytes()).unwrap();
        let lines = imported.toml.lines().skip(2);
        lines
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(lists(json!([bad])), ["# [lists]", "# bad = []"]);
    assert_eq!(
        lists(json!([bad, good])),
        ["[lists]", "# bad = []", "good = []"]
    );
}
