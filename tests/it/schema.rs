//! `lockgate schema` says what the gateway says: it accepts every file that the gateway accepts, and
//! refuses those whose mistake can be seen in one value.

mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::docs::pages::{blocks, key_rows, read, root, rows, section, ticked};
use crate::docs::whole;
use crate::harness::{Folder, Process};
use validate::{DRAFT, errors, malformed};

/// Mistakes of `tests/data/config` that no schema can see.
const UNSEEN: &[(&str, &str)] = &[
    ("address_taken", "compares two addresses"),
    ("address_taken_by_both_families", "compares two addresses"),
    ("admin_without_token", "knows which addresses are loopback"),
    ("challenge_no_table", "needs another section"),
    ("challenge_no_tls", "depends on other sections"),
    ("challenge_preset", "compares two values"),
    ("challenge_response", "depends on the action"),
    ("challenge_route", "compares two values"),
    ("client_ip_no_trusted_proxy", "a warning"),
    ("duration_bounds", "reads the number in a string"),
    ("expressions_none", "a name that is nowhere"),
    ("known_clients_no_success", "depends on other sections"),
    ("limits_inspect_body", "reads the number in a string"),
    ("listener_redirect_with_tls", "knows which listener has TLS"),
    ("log_access_words", "knows which words are no files"),
    ("network_host_bits", "a warning"),
    ("route_no_upstreams", "a name that is nowhere"),
    ("route_unknown_upstream", "a name that is nowhere"),
    ("protect_lifetime", "compares two values"),
    ("protect_no_source", "depends on other sections"),
    ("protect_no_tls", "depends on other sections"),
    ("response_imitate_status", "a value beside another"),
    ("rule_algorithm_settings", "a value beside another"),
    ("rule_candidate_no_period", "a setting without another"),
    ("rule_cost_never_fits", "compares two numbers"),
    ("rule_count_no_limit", "a setting without another"),
    ("rule_counting_no_limit", "a setting without another"),
    ("rule_limit_no_period", "a setting without another"),
    ("rule_limit_zero_with_period", "a setting without another"),
    ("rule_period_no_limit", "a setting without another"),
    ("rule_response_unknown", "a name that is nowhere"),
    ("rule_slices_too_short", "compares two values"),
    ("rule_twice", "two names are the same"),
    ("upstream_twice", "two names are the same"),
];

static SCHEMA: LazyLock<Json> = LazyLock::new(|| serde_json::from_str(&printed()).unwrap());

#[test]
fn the_schema_is_valid_for_its_draft() {
    assert_eq!(SCHEMA["$schema"], DRAFT);
    assert_eq!(SCHEMA["title"], "gateway.toml");
    let wrong = malformed(&SCHEMA);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_schema_is_deterministic() {
    assert_eq!(printed(), printed());
    assert!(printed().ends_with("}\n"));
}

#[test]
fn every_table_refuses_unknown_settings() {
    closed(&SCHEMA, "");
}

#[test]
fn the_schema_accepts_the_files_that_the_gateway_accepts() {
    let mut checked = 0;
    for (name, text) in good_files() {
        let found = errors(&SCHEMA, &parsed(&text).expect(&name));
        assert!(found.is_empty(), "{name}: {found:#?}\n{text}");
        checked += 1;
    }
    assert!(checked > 90, "only {checked} files were found");
}

#[test]
fn the_schema_refuses_the_errors_that_it_can_express() {
    let unseen: BTreeSet<&str> = UNSEEN.iter().map(|(name, _)| *name).collect();
    let (mut seen, mut missed) = (0, BTreeSet::new());
    for path in files("tests/data/config", "toml") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        // What is not TOML has no values that a schema could look at.
        let Some(value) = parsed(&text).filter(|_| !name.starts_with("ok_")) else {
            assert!(
                name.starts_with("syntax_") || name.starts_with("ok_"),
                "{name}"
            );
            continue;
        };
        match errors(&SCHEMA, &value).is_empty() {
            true => drop(missed.insert(name)),
            false => seen += 1,
        }
    }
    let missed: BTreeSet<&str> = missed.iter().map(String::as_str).collect();
    assert_eq!(missed, unseen);
    assert!(seen > 40, "{seen}");
}

#[test]
fn a_refusal_names_the_path_of_the_value() {
    let text = "[[listeners]]\naddress = '127.0.0.1:0'\n[[rules]]\nname = 'a'\nmitigate = 'ssl'\n\
                limit = '5'\nexpression = 'ssl'\n[lists]\nx = [1.5]\n'a b' = []\n";
    let found = errors(&SCHEMA, &parsed(text).unwrap());
    let places: BTreeSet<&str> = found.iter().filter_map(|e| e.split(": ").next()).collect();
    let expected = [".lists.a b", ".lists.x", ".rules[0]", ".rules[0].limit"];
    assert_eq!(places, BTreeSet::from(expected), "{found:#?}");
}

#[test]
fn the_schema_and_the_documents_list_the_same_settings() {
    let keys = keys();
    let text = read("docs/configuration.md");
    let sections = rows(section(&text, "## Sections"));
    let sections = sections.map(|row| ticked(row).next().unwrap().trim_matches(['[', ']']));
    let rows = key_rows();
    let own: BTreeSet<String> = keys.keys().filter(|key| !is_alias(key)).cloned().collect();
    let documented = rows.iter().map(|row| row.path());
    let documented = documented.chain(sections.map(str::to_owned));
    assert_eq!(own, documented.collect());
    for alias in keys.keys().filter(|key| is_alias(key)) {
        let name = alias.rsplit('.').next().unwrap();
        let told = rows
            .iter()
            .any(|row| row.meaning.contains(&format!("(`{name}`)")));
        assert!(told, "{alias} stands nowhere in docs/configuration.md");
    }
    for (path, key) in &keys {
        let told = key.schema["description"].as_str();
        assert!(told.is_some_and(|d| d.len() > 3), "{path}: {told:?}");
    }
}

#[test]
fn defaults_match_the_documents() {
    let keys = keys();
    for row in key_rows() {
        let path = row.path();
        let key = &keys[&path];
        assert_eq!(key.required, row.default == "required", "{path}");
        // That a table may be left out is no value.
        let value = Some(row.value()).filter(|v| !v.is_empty() && v != "{}");
        let value = value.map(|value| parsed(&format!("x = {value}")).unwrap()["x"].clone());
        assert_eq!(key.schema.get("default").cloned(), value, "{path}");
    }
}

/// A key of the schema.
struct Key {
    schema: Json,
    required: bool,
}

/// All keys by their dotted path; a key of the user's own is NAME.
fn keys() -> BTreeMap<String, Key> {
    let mut found = BTreeMap::new();
    collect(&SCHEMA, "", &mut found);
    assert!(found.len() > 80, "{}", found.len());
    found
}

fn collect(schema: &Json, path: &str, found: &mut BTreeMap<String, Key>) {
    let join = |name: &str| format!("{path}.{name}").trim_matches('.').to_owned();
    let required = schema["required"].as_array();
    let required = |name: &str| required.is_some_and(|all| all.contains(&json!(name)));
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let key = Key {
            schema: inner.clone(),
            required: required(name),
        };
        assert!(found.insert(join(name), key).is_none(), "{name} twice");
        collect(inner, &join(name), found);
    }
    let own = schema["patternProperties"]
        .as_object()
        .into_iter()
        .flatten();
    own.for_each(|(_, inner)| collect(inner, &join("NAME"), found));
    let any = schema["anyOf"].as_array().into_iter().flatten();
    any.chain(schema.get("items"))
        .for_each(|inner| collect(inner, path, found));
}

fn is_alias(path: &str) -> bool {
    let names = [
        "counting_expression",
        "expression",
        "characteristics",
        "requests_per_period",
        "mitigation_timeout",
    ];
    names.iter().any(|name| path == format!("rules.{name}"))
}

/// Every object with a type is closed, and those for names of the user's own have a pattern.
fn closed(schema: &Json, at: &str) {
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{at}");
        let own = [
            "lists",
            "expressions",
            "rules",
            "responses",
            "overrides",
            "headers",
            "fields",
            "set",
            "errors",
        ];
        let last = at.rsplit('/').next().unwrap();
        let is_own = own.contains(&last) && schema["properties"].is_null();
        assert_eq!(schema["patternProperties"].is_object(), is_own, "{at}");
    }
    for (name, inner) in schema.as_object().into_iter().flatten() {
        closed(inner, &format!("{at}/{name}"));
    }
    for inner in schema.as_array().into_iter().flatten() {
        closed(inner, at);
    }
}

/// Name and text of every configuration that must load.
fn good_files() -> Vec<(String, String)> {
    let mut found = vec![("gateway.toml".to_owned(), read("gateway.toml"))];
    for path in files("tests/data/config", "toml") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("ok_") {
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    for block in blocks("toml") {
        let place = format!("{}:{}", block.file, block.line);
        found.push((place, whole(&block.text)));
    }
    for path in files("tests/scenarios", "toml") {
        let scenario: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        // What runs the rules of a document has none of its own: they are among the blocks.
        let Some(text) = scenario.get("config").or(scenario.get("whole")) else {
            continue;
        };
        let text = text.as_str().unwrap().replace("{origin}", "127.0.0.1:9");
        found.push((path.display().to_string(), whole(&text)));
    }
    found
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

/// TOML as the JSON that an editor checks; nothing if it is not TOML.
fn parsed(text: &str) -> Option<Json> {
    toml::from_str(text).ok()
}

/// What the program prints.
fn printed() -> String {
    let output = Process::output(&Folder::new(), &["schema"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
