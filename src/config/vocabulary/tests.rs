//! The table is valid: its words are not lockgate's settings or values, and its suggestions exist.

use std::collections::BTreeSet;

use super::{TABLE, VALUES, foreign_setting, foreign_value, rows};
use crate::config::schema::{self, TableSchema, ValueSchema};

/// Returns the settings of every section, by its path.
fn sections() -> Vec<(String, BTreeSet<&'static str>)> {
    let mut found = Vec::new();
    collect("", &schema::root(), &mut found);
    found
}

fn collect(path: &str, table: &TableSchema, found: &mut Vec<(String, BTreeSet<&'static str>)>) {
    let theirs = table.aliases.iter().map(|(_, theirs)| *theirs);
    let keys = table.keys.iter().map(|key| key.name).chain(theirs);
    found.push((path.to_owned(), keys.collect()));
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for key in &table.keys {
        within(&below(key.name), &key.shape, found);
    }
    for shape in table.names.iter().flat_map(|names| &names.shapes) {
        within(&below("NAME"), shape, found);
    }
}

fn within(path: &str, shape: &ValueSchema, found: &mut Vec<(String, BTreeSet<&'static str>)>) {
    match shape {
        ValueSchema::Table(table) => collect(path, table, found),
        ValueSchema::List { item, .. } => within(path, item, found),
        ValueSchema::Either(all) => all.iter().for_each(|shape| within(path, shape, found)),
        _ => {}
    }
}

#[test]
fn foreign_settings_are_unique_and_not_settings_of_lockgate() {
    let sections = sections();
    let mut seen = BTreeSet::new();
    for row in rows().filter(|row| row.section != VALUES) {
        let path = row.section;
        let own = sections.iter().find(|(section, _)| section == path);
        let (_, keys) = own.unwrap_or_else(|| panic!("there is no section {path}"));
        for word in row.words.split(' ') {
            assert!(!keys.contains(word), "{path}: {word} is a setting");
            assert!(seen.insert((path, word)), "{path}: {word} is listed twice");
            assert_eq!(word, word.to_lowercase().replace('-', "_"), "{path}");
        }
    }
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('['));
    assert_eq!(lines.count(), rows().count());
}

#[test]
fn every_suggested_setting_exists() {
    let sections = sections();
    let keys: BTreeSet<&str> = sections
        .iter()
        .flat_map(|(_, keys)| keys)
        .copied()
        .collect();
    for row in rows().filter(|row| row.section != VALUES) {
        for quoted in row.ours.split('`').skip(1).step_by(2) {
            let word = quoted.trim_start_matches('[').split([' ', ']', '.']).next();
            let word = word.unwrap();
            // Expressions, comments, values and commands are not settings.
            let known = keys.contains(word)
                || quoted.starts_with(['#', '"'])
                || ["ip", "not", "office", "lockgate"].contains(&word);
            assert!(known, "{}: {}: {word}", row.section, row.ours);
        }
    }
}

#[test]
fn a_word_matches_regardless_of_case_and_hyphens() {
    let health = foreign_setting("upstreams", "health_check");
    assert!(health.is_some());
    assert_eq!(foreign_setting("upstreams", "Health-Check"), health);
    assert_eq!(foreign_setting("upstreams", "flavour"), None);
    assert_eq!(foreign_setting("nowhere", "health_check"), None);
}

/// Returns the values of every choice.
fn choices() -> Vec<Vec<&'static str>> {
    let mut found = Vec::new();
    choices_of(&schema::root(), &mut found);
    found
}

fn choices_of(table: &TableSchema, found: &mut Vec<Vec<&'static str>>) {
    let names = table.names.iter().flat_map(|names| &names.shapes);
    let keys = table.keys.iter().map(|key| &key.shape);
    keys.chain(names)
        .for_each(|shape| choices_within(shape, found));
}

fn choices_within(shape: &ValueSchema, found: &mut Vec<Vec<&'static str>>) {
    match shape {
        ValueSchema::Words(words) => found.push(words.clone()),
        ValueSchema::Table(table) => choices_of(table, found),
        ValueSchema::List { item, .. } => choices_within(item, found),
        ValueSchema::Either(all) => all.iter().for_each(|shape| choices_within(shape, found)),
        _ => {}
    }
}

#[test]
fn every_suggested_value_exists_and_no_foreign_value_does() {
    let choices = choices();
    for row in rows().filter(|row| row.section == VALUES) {
        let ours = row.ours;
        let own = choices.iter().filter(|words| words.contains(&ours));
        let own: Vec<_> = own.collect();
        assert!(!own.is_empty(), "no setting has the value `{ours}`");
        for words in own {
            for word in row.words.split(' ') {
                assert!(!words.contains(&word), "`{word}` is beside `{ours}`");
                assert_eq!(foreign_value(word, words), Some(ours), "{word}");
            }
        }
    }
}

#[test]
fn a_foreign_value_is_suggested_only_for_its_setting() {
    assert_eq!(
        foreign_value("Least-Conn", &["p2c", "least_requests"]),
        Some("least_requests")
    );
    assert_eq!(foreign_value("least_conn", &["block", "log"]), None);
    assert_eq!(foreign_value("flavour", &["block", "log"]), None);
}
