//! The expansion of presets, compared with the recipes written out.

use std::time::Duration;

use toml::{Table, Value};

use super::RuleDraft;
use crate::config::file::ConfigFile;
use crate::config::{ConfigSource, Diagnostics, ExprText, duration, read};
use crate::expr::{ExprOutline, outline};
use crate::limit::Algorithm;
use crate::rules::MissingPart;

const RECIPES: &str = include_str!("../../../tests/data/presets/recipes.toml");

const LOGIN: &str = "kind = \"login\"\npath = \"/login\"\nuser_field = \"user\"\n";
const PAGES: &str = "kind = \"pages\"\npath = \"/product/*\"\n";
const SIGNUP: &str = "kind = \"signup\"\npath = \"/signup\"\nactions = \"/invite\"\n";

fn file(lines: &str) -> ConfigFile {
    let text = format!("[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n{lines}");
    let source = ConfigSource::new("t.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = read(&source, &mut diagnostics).unwrap();
    assert!(
        !diagnostics.has_errors(),
        "{}",
        diagnostics.render(&source, false)
    );
    file
}

/// The rules of one preset.
fn rules(lines: &str) -> Vec<RuleDraft> {
    file(&format!("[[protect]]\n{lines}"))
        .presets
        .remove(0)
        .rules
}

fn names(lines: &str) -> Vec<String> {
    let rules = rules(lines).into_iter();
    rules.map(|rule| rule.settings.name.value).collect()
}

/// The rule `sub` of a preset.
fn one(lines: &str, sub: &str) -> RuleDraft {
    rules(lines)
        .into_iter()
        .find(|rule| rule.sub == sub)
        .unwrap()
}

fn text(text: Option<&ExprText>) -> &str {
    text.map_or("", |text| &text.value)
}

#[test]
fn the_expansion_equals_the_recipes() {
    let recipes: Table = RECIPES.parse().unwrap();
    let all = [(LOGIN, "login-"), (PAGES, "pages-"), (SIGNUP, "invite-")];
    for (lines, prefix) in all {
        let mut drafts = rules(lines);
        // The recipes stop bursts with one clearance only after the responses.
        drafts.retain(|draft| draft.sub != "clearance-logins");
        let written: Vec<&Table> = recipes["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| rule.as_table().unwrap())
            .filter(|rule| rule["name"].as_str().unwrap().starts_with(prefix))
            .collect();
        assert_eq!(drafts.len(), written.len(), "{prefix}");
        for (draft, written) in drafts.iter().zip(written) {
            let renamed = written["name"]
                .as_str()
                .unwrap()
                .replace(prefix, "")
                .replace("per-", "");
            assert_eq!(draft.sub, renamed);
            same(draft, written, &recipes["expressions"]);
        }
    }
}

fn same(draft: &RuleDraft, recipe: &Table, expressions: &Value) {
    let (name, settings) = (draft.sub, &draft.settings);
    let text = |key: &str| recipe.get(key).and_then(Value::as_str);
    for (key, own) in [
        ("count", &settings.count),
        ("mitigate", &settings.mitigate),
        ("total", &settings.total),
    ] {
        let written = text(key).map(|text| flat(&inlined(text, expressions)));
        let own = own.as_ref().map(|own| flat(&own.value));
        match (own, written) {
            (Some(own), Some(written)) => {
                assert!(own.is_equivalent(&written), "{name} {key}: {own:?}")
            }
            (own, written) => assert_eq!(own.is_some(), written.is_some(), "{name} {key}"),
        }
    }
    let keys: Vec<String> = recipe
        .get("key")
        .into_iter()
        .flat_map(|key| key.as_array().unwrap())
        .map(|part| inlined(part.as_str().unwrap(), expressions))
        .collect();
    assert_eq!(
        settings
            .key
            .iter()
            .map(|part| part.value.clone())
            .collect::<Vec<_>>(),
        keys,
        "{name}"
    );
    assert_eq!(
        settings.ratio.as_ref().map(|ratio| ratio.value),
        recipe.get("ratio").and_then(Value::as_float),
        "{name}"
    );
    assert_eq!(
        draft.challenges(),
        text("action") == Some("challenge"),
        "{name}"
    );
    let limit = settings.limit.as_ref().map(|limit| i64::from(limit.value));
    assert_eq!(
        limit,
        recipe.get("limit").and_then(Value::as_integer),
        "{name}"
    );
    let period = settings.period.as_ref().map(|period| period.value);
    assert_eq!(
        period,
        text("period").map(|text| duration(text).unwrap()),
        "{name}"
    );
    let ban = text("duration").map_or(Duration::ZERO, |text| duration(text).unwrap());
    assert_eq!(settings.duration.value, ban, "{name}");
    let escalate: Vec<Duration> = recipe
        .get("escalate")
        .into_iter()
        .flat_map(|bans| bans.as_array().unwrap())
        .map(|ban| duration(ban.as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(
        settings
            .escalate
            .iter()
            .map(|ban| ban.value)
            .collect::<Vec<_>>(),
        escalate,
        "{name}"
    );
    let concurrent = settings.algorithm.value == Algorithm::Concurrency;
    assert_eq!(
        concurrent,
        text("algorithm") == Some("concurrency"),
        "{name}"
    );
    let skips = settings.missing.value == MissingPart::Skip;
    // The recipe counts invitations without a cookie together.
    let invitations = settings.name.value == "signup/account";
    assert_eq!(
        skips,
        text("missing") == Some("skip") || invitations,
        "{name}"
    );
}

/// Replaces the names in a recipe.
fn inlined(text: &str, expressions: &Value) -> String {
    let mut text = text.to_owned();
    while let Some(at) = text.find('@') {
        let name: String = text[at + 1..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let whole = text.len() == name.len() + 1;
        let definition = expressions[&name].as_str().unwrap();
        let definition = if whole {
            definition.to_owned()
        } else {
            format!("({definition})")
        };
        text.replace_range(at..=at + name.len(), &definition);
    }
    text
}

/// The outline of a test, with an `and` in an `and` flattened.
fn flat(text: &str) -> ExprOutline {
    fn flatten(outline: ExprOutline) -> ExprOutline {
        match outline {
            ExprOutline::And(_) => {
                let parts = outline.conjuncts().into_iter().cloned();
                ExprOutline::And(parts.map(flatten).collect())
            }
            ExprOutline::Or(parts) => ExprOutline::Or(parts.into_iter().map(flatten).collect()),
            ExprOutline::Not(inner) => ExprOutline::Not(Box::new(flatten(*inner))),
            other => other,
        }
    }
    flatten(outline(text).unwrap_or_else(|error| panic!("{text}: {error:?}")))
}

#[test]
fn strict_replaces_the_rules_that_wait_for_an_attack() {
    let strict = |lines: &str| names(&format!("{lines}strict = true\n"));
    let login = [
        "strict",
        "known-device",
        "account",
        "address",
        "account-check",
        "clearance",
        "clearance-logins",
    ];
    assert_eq!(strict(LOGIN), login.map(|sub| format!("login/{sub}")));
    assert_eq!(strict(PAGES), ["pages/strict", "pages/clearance"]);
    let signup = [
        "strict",
        "register",
        "register-clearance",
        "account",
        "clearance",
    ];
    assert_eq!(strict(SIGNUP), signup.map(|sub| format!("signup/{sub}")));
    let registration = "kind = \"signup\"\npath = \"/signup\"\n";
    let register = ["signup/register", "signup/register-clearance"];
    assert_eq!(strict(registration), register);
    let rule = one(&format!("{LOGIN}strict = true\n"), "strict");
    let recipe = "http.request.method eq \"POST\" and http.request.uri.path eq \"/login\" and not client.known_user";
    assert_eq!(text(rule.settings.mitigate.as_ref()), recipe);
    assert!(rule.challenges() && rule.settings.limit.is_none());
}

#[test]
fn a_login_without_a_user_or_without_challenges_has_fewer_rules() {
    let nameless = "kind = \"login\"\npath = \"/login\"\n";
    let rest = [
        "known-device",
        "address",
        "at-once",
        "tool",
        "site",
        "ceiling",
        "clearance",
        "clearance-logins",
    ];
    assert_eq!(names(nameless), rest.map(|sub| format!("login/{sub}")));
    let known = one(nameless, "known-device");
    assert!(text(known.settings.mitigate.as_ref()).ends_with(" and client.known"));
    let app = names(&format!("{LOGIN}challenge = false\nname = \"app\"\n"));
    assert_eq!(app, ["app/known-device", "app/account", "app/address"]);
    let off = names(&format!("{LOGIN}ceiling = 0\n"));
    assert!(!off.iter().any(|name| name == "login/ceiling"), "{off:?}");
}

#[test]
fn paths_and_hosts_are_one_test_each() {
    let with = |lines: &str| {
        let lines = format!("kind = \"pages\"\n{lines}");
        text(one(&lines, "clearance").settings.mitigate.as_ref()).to_owned()
    };
    assert_eq!(
        with("path = [\"/a\", \"/b\"]"),
        "http.request.uri.path in {\"/a\" \"/b\"}"
    );
    assert_eq!(
        with("path = [\"/a\", \"/b/*\"]\nhost = \"h\""),
        "(http.request.uri.path eq \"/a\" or starts_with(http.request.uri.path, \"/b/\")) and http.host eq \"h\""
    );
    assert_eq!(
        with("path = \"/a\"\nexempt = 'ip.src in {10.0.0.0/8} or ssl'"),
        "http.request.uri.path eq \"/a\" and not (ip.src in {10.0.0.0/8} or ssl)"
    );
}

#[test]
fn the_form_is_protected_unless_there_is_none() {
    let site = |lines: &str| {
        text(
            one(&format!("{LOGIN}{lines}"), "site")
                .settings
                .mitigate
                .as_ref(),
        )
        .to_owned()
    };
    let form = |path: &str| {
        format!(
            " or (http.request.method eq \"GET\" and http.request.uri.path eq \"{path}\" and not client.known)"
        )
    };
    assert!(site("").ends_with(&form("/login")), "{}", site(""));
    assert!(site("form_path = \"/\"").ends_with(&form("/")));
    assert!(!site("form_path = \"\"").contains("GET"));
    let json = LOGIN.replace("user_field", "user_json");
    assert!(!text(one(&json, "site").settings.mitigate.as_ref()).contains("GET"));
}

#[test]
fn the_user_comes_from_a_form_a_document_or_an_expression() {
    let key = |line: &str| {
        let lines = LOGIN.replace("user_field = \"user\"", line);
        one(&lines, "account").settings.key.remove(0).value
    };
    assert_eq!(
        key("user_field = \"log\""),
        "lower(http.request.body.form[\"log\"])"
    );
    let json = "lower(lookup_json_string(http.request.body.raw, \"user\", \"email\"))";
    assert_eq!(key("user_json = [\"user\", \"email\"]"), json);
    assert_eq!(
        key("user = 'http.request.headers[\"x-user\"]'"),
        "http.request.headers[\"x-user\"]"
    );
}

#[test]
fn a_success_is_no_failure() {
    let source = |lines: &str| {
        let preset = file(&format!("[[protect]]\n{lines}")).presets.remove(0);
        preset.source.unwrap().success.value
    };
    let login = "http.request.method eq \"POST\" and http.request.uri.path eq";
    assert_eq!(
        source(LOGIN),
        format!(
            "{login} \"/login\" and http.response.code in {{200 204 302 303}} and not http.response.code in {{401 403}}"
        )
    );
    assert_eq!(
        source(&format!(
            "{LOGIN}success_path = \"/otp\"\nfailed = 'http.response.code eq 200'"
        )),
        format!(
            "{login} \"/otp\" and http.response.code in {{200 204 302 303}} and not http.response.code eq 200"
        )
    );
    assert_eq!(
        source(SIGNUP),
        format!("{login} \"/signup\" and http.response.code in {{200 201 204 302 303}}")
    );
}

#[test]
fn overrides_change_one_rule() {
    let lines = format!(
        "{LOGIN}dry_run = true\nceiling = 240\nratio = 0.5\n\
         rules.address = {{ limit = 20, ratio = 0.9, duration = \"5m\", dry_run = false }}\n\
         rules.tool = {{ enabled = false, action = \"block\" }}\nrules.ceiling = {{ escalate = [\"1m\"] }}\n\
         rules.site.candidate = {{ limit = 60 }}\n"
    );
    let address = one(&lines, "address");
    let own = &address.settings;
    assert_eq!(own.limit.as_ref().unwrap().value, 20);
    assert_eq!(own.ratio.as_ref().unwrap().value, 0.9);
    assert_eq!((own.duration.value.as_secs(), own.escalate.len()), (300, 0));
    assert!(!own.dry_run.value);
    let tool = one(&lines, "tool");
    assert!(tool.settings.dry_run.value && !tool.settings.enabled.value && !tool.challenges());
    let ceiling = one(&lines, "ceiling").settings;
    assert_eq!(ceiling.limit.unwrap().value, 240);
    assert_eq!(ceiling.escalate.len(), 1);
    let site = one(&lines, "site");
    assert_eq!(site.settings.ratio.unwrap().value, 0.5);
    assert_eq!(site.settings.candidate.unwrap().limit.unwrap().value, 60);
}

#[test]
fn presets_stand_after_the_last_exemption() {
    let rule = |name: &str, action: &str| {
        format!("[[rules]]\nname = \"{name}\"\nmitigate = 'ssl'\naction = \"{action}\"\n")
    };
    let preset =
        |name: &str, line: &str| format!("[[protect]]\n{PAGES}name = \"{name}\"\n{line}\n");
    let slots = |lines: &str| -> Vec<(String, usize)> {
        let file = file(lines);
        let named = |at: usize| file.protect[at].name.value.clone();
        file.presets
            .iter()
            .map(|preset| (named(preset.index), preset.slot))
            .collect()
    };
    let found = |pairs: &[(&str, usize)]| -> Vec<(String, usize)> {
        pairs
            .iter()
            .map(|(name, slot)| ((*name).to_owned(), *slot))
            .collect()
    };
    let none = preset("a", "") + &rule("r", "block");
    assert_eq!(slots(&none), found(&[("a", 0)]));
    let rules = rule("one", "block") + &rule("two", "allow") + &rule("three", "block");
    let presets = [
        preset("a", ""),
        preset("before", "before = \"three\""),
        preset("b", ""),
        preset("after", "after = \"two\""),
        preset("last", "after = \"three\""),
    ];
    let order = [("after", 2), ("a", 2), ("b", 2), ("before", 2), ("last", 3)];
    assert_eq!(slots(&(presets.concat() + &rules)), found(&order));
}
