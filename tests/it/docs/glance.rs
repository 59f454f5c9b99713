//! docs/rule-at-a-glance.md lists every setting, action and algorithm of `[[rules]]`.

use std::collections::BTreeSet;

use lockgate::config::schema::{self, ExampleValue, SettingSchema, TableSchema, ValueSchema};

use super::pages::{read, rows, section, ticked};

const PAGE: &str = "docs/rule-at-a-glance.md";

#[test]
fn the_page_lists_every_setting_of_a_rule() {
    let text = read(PAGE);
    let documented = first_words(&text, "## Settings");
    let rule = rule();
    let real = rule.keys.iter().map(|key| key.name.to_owned());
    assert_eq!(documented, real.collect());
}

#[test]
fn the_page_has_the_default_of_every_setting() {
    let text = read(PAGE);
    for key in &rule().keys {
        let default = cells(&text, key.name)[1];
        match (&key.default, key.required) {
            (Some(value), _) => {
                assert_eq!(default, format!("`{}`", written(value)), "{}", key.name);
            }
            (None, true) => assert_eq!(default, "required", "{}", key.name),
            (None, false) => assert!(!default.starts_with('`'), "{}: {default}", key.name),
        }
    }
}

#[test]
fn the_page_names_every_value_and_every_nested_setting() {
    let text = read(PAGE);
    for key in &rule().keys {
        if ["action", "algorithm"].contains(&key.name) {
            continue;
        }
        let row = cells(&text, key.name).join(" ");
        for word in words(&key.shape) {
            assert!(row.contains(word), "{}: {word}", key.name);
        }
    }
}

#[test]
fn the_page_lists_every_action_and_every_algorithm() {
    let text = read(PAGE);
    for (setting, heading) in [("action", "## Actions"), ("algorithm", "## Algorithms")] {
        let rule = rule();
        let key = rule.keys.iter().find(|key| key.name == setting).unwrap();
        let real = words(&key.shape).into_iter().map(str::to_owned);
        assert_eq!(first_words(&text, heading), real.collect(), "{setting}");
    }
}

/// The schema of one rule.
fn rule() -> TableSchema {
    let keys = schema::root().keys.into_iter();
    let rules = keys.filter(|key| key.name == "rules");
    let mut tables = rules.filter_map(|SettingSchema { shape, .. }| match shape {
        ValueSchema::List { item, .. } => match *item {
            ValueSchema::Table(table) => Some(table),
            _ => None,
        },
        _ => None,
    });
    tables.next().expect("`rules` is a list of tables")
}

/// The first text between backticks of each row of a table.
fn first_words(text: &str, heading: &str) -> BTreeSet<String> {
    let table = rows(section(text, heading)).filter_map(|row| ticked(row).next());
    table.map(str::to_owned).collect()
}

/// The cells of a setting's row: name, default, meaning.
fn cells<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let row = rows(section(text, "## Settings"))
        .find(|row| ticked(row).next() == Some(name))
        .unwrap_or_else(|| panic!("{PAGE} has no row for `{name}`"));
    let row = row.trim_start_matches("| ").trim_end_matches(" |");
    row.split(" | ").collect()
}

/// The words that a value may be, and the names of the settings in its table.
fn words(shape: &ValueSchema) -> Vec<&'static str> {
    match shape {
        ValueSchema::Words(words) => words.clone(),
        ValueSchema::Table(table) => table.keys.iter().map(|key| key.name).collect(),
        ValueSchema::Either(shapes) => shapes.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

/// A default as a user would write it.
fn written(value: &ExampleValue) -> String {
    match value {
        ExampleValue::Text(text) => format!("{text:?}"),
        ExampleValue::Integer(number) => number.to_string(),
        ExampleValue::Number(number) => format!("{number:?}"),
        ExampleValue::Boolean(boolean) => boolean.to_string(),
        ExampleValue::List(values) => {
            let values: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
    }
}
