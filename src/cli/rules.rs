//! `lockgate rules`: the rules in effect, with those of presets, as a table or as TOML.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::import::quote;
use super::{print, print_error};
use crate::clock::Clock;
use crate::config::file::{ConfigFile, KnownClientSettings, RuleSettings};
use crate::config::schema::ExampleValue;
use crate::config::{self, ConfigSource, Diagnostics, FilledReference};

/// Prints the rules of the file at `path`. Returns exit code 1 if the file is unusable.
pub fn rules(path: &Path, expanded: bool) -> ExitCode {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(path, &mut diagnostics);
    if let Some(file) = &file {
        config::compile(file, &source, Clock::System.now(), None, &mut diagnostics);
    }
    match file.filter(|_| !diagnostics.has_errors()) {
        Some(file) if expanded => print(&as_toml(&file, &source, diagnostics.filled())),
        Some(file) => print(&as_table(&file, &source, diagnostics.filled())),
        None => {
            print_error(diagnostics.render(&source, false).trim_end());
            ExitCode::FAILURE
        }
    }
}

/// One line for each rule: name, action, limit, key, and where it is written.
fn as_table(file: &ConfigFile, source: &ConfigSource, filled: &[FilledReference]) -> String {
    let rows = file.rules.iter().map(|rule| {
        [
            config::restored(&rule.name.value, filled),
            action(rule),
            limit(rule),
            config::restored(&key(rule), filled),
            origin(rule, file, source),
        ]
    });
    let header = ["rule", "action", "limit", "key", "from"].map(str::to_owned);
    let rows: Vec<[String; 5]> = [header].into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = widths.get(at).copied().unwrap_or(0);
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn action(rule: &RuleSettings) -> String {
    let name = rule.action.value.name();
    match (rule.enabled.value, rule.dry_run.value) {
        (false, _) => format!("{name} (disabled)"),
        (true, true) => format!("{name} (dry run)"),
        (true, false) => name.to_owned(),
    }
}

/// The limit as text, such as `5 / 1m`. `-` for a deny rule.
fn limit(rule: &RuleSettings) -> String {
    let limit = rule.limit.as_ref().map(|limit| limit.value.to_string());
    let period = rule
        .period
        .as_ref()
        .map(|one| config::duration_text(one.value));
    match (limit, period) {
        (Some(limit), Some(period)) => format!("{limit} / {period}"),
        (Some(limit), None) => format!("{limit} in flight"),
        (None, _) => "-".to_owned(),
    }
}

fn key(rule: &RuleSettings) -> String {
    let parts: Vec<&str> = rule.key.iter().map(|part| part.value.trim()).collect();
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Where the rule is written, such as `gateway.toml:41`, with its preset if it has one.
fn origin(rule: &RuleSettings, file: &ConfigFile, source: &ConfigSource) -> String {
    let start = rule.span.start;
    let place = format!(
        "{}:{}",
        source.part(start).path,
        source.position(start).line
    );
    match file.preset_of(rule) {
        Some(preset) => format!("[[protect]] \"{}\", {place}", preset.name.value),
        None => place,
    }
}

/// All rules as TOML, each with a comment that says where it comes from.
fn as_toml(file: &ConfigFile, source: &ConfigSource, filled: &[FilledReference]) -> String {
    let mut text = tables(file, filled);
    for rule in &file.rules {
        if !text.is_empty() {
            text.push('\n');
        }
        let (name, origin) = (&rule.name.value, origin(rule, file, source));
        let _ = writeln!(text, "# {name}: from {origin}\n[[rules]]");
        for (setting, value) in rule.written() {
            let _ = writeln!(
                text,
                "{setting} = {}",
                toml_value(&value, is_expression(setting), filled)
            );
        }
    }
    text
}

/// The tables that the presets imply, for a file without presets.
fn tables(file: &ConfigFile, filled: &[FilledReference]) -> String {
    let mut text = String::new();
    let challenge = file.challenge.as_ref();
    if challenge.is_some_and(|table| file.is_implied(&table.span)) {
        text.push_str("# implied by [[protect]]\n[challenge]\n");
    }
    let known = file.known_clients.as_ref();
    if let Some(known) = known.filter(|_| !file.presets.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&known_clients(file, known, filled));
    }
    text
}

/// The one `[known_clients]` that is closest to the sources of the presets and the written table.
fn known_clients(
    file: &ConfigFile,
    known: &KnownClientSettings,
    filled: &[FilledReference],
) -> String {
    let sources = || file.known_sources();
    let of_presets = sources().map(|source| (Some(&source.success), source.user.as_ref()));
    let written = [(known.success.as_ref(), known.user.as_ref())];
    let all: Vec<_> = of_presets.chain(written).collect();
    // One table has one user: a source without one must not get the user of another.
    let has_users = all.iter().any(|(_, user)| user.is_some());
    let named = all.iter().filter(|(_, user)| user.is_some() || !has_users);
    let successes: Vec<&str> = named.filter_map(|(one, _)| Some(&*(*one)?.value)).collect();
    let mut users: Vec<&str> = all
        .iter()
        .filter_map(|(_, user)| Some(&*(*user)?.value))
        .collect();
    users.dedup();
    let mut text = "# from [[protect]]".to_owned();
    if !file.is_implied(&known.span) {
        text.push_str("; it replaces the written table");
    }
    if users.len() > 1 {
        text.push_str("; one table has one `user`: this is that of the first preset");
    }
    let left_out = all
        .iter()
        .filter(|(one, user)| one.is_some() && user.is_none());
    if has_users && left_out.count() > 0 {
        text.push_str("; successes without a user no longer make clients known");
    }
    let success = match successes.as_slice() {
        [] => "false".to_owned(),
        [only] => (*only).to_owned(),
        several => format!("({})", several.join(") or (")),
    };
    let _ = writeln!(
        text,
        "\n[known_clients]\nsuccess = {}",
        quote::string(&config::restored(&success, filled))
    );
    if let Some(user) = users.first() {
        let _ = writeln!(
            text,
            "user = {}",
            quote::string(&config::restored(user, filled))
        );
    }
    let lifetime = config::duration_text(known.lifetime.value);
    let _ = writeln!(text, "lifetime = {}", quote::word(&lifetime));
    if let Some(domain) = &known.domain.value {
        let _ = writeln!(
            text,
            "domain = {}",
            quote::word(&config::restored(domain, filled))
        );
    }
    text
}

/// Returns whether a setting holds expressions, which are easier to read in single quotes.
fn is_expression(setting: &str) -> bool {
    ["count", "mitigate", "total", "key", "cost"].contains(&setting)
}

fn toml_value(value: &ExampleValue, is_expression: bool, filled: &[FilledReference]) -> String {
    match value {
        ExampleValue::Text(text) if is_expression => quote::string(&config::restored(text, filled)),
        ExampleValue::Text(text) => quote::word(&config::restored(text, filled)),
        ExampleValue::Integer(number) => number.to_string(),
        ExampleValue::Number(number) => format!("{number:?}"),
        ExampleValue::Boolean(value) => value.to_string(),
        ExampleValue::List(values) => {
            let values = values.iter();
            let values = values.map(|value| toml_value(value, is_expression, filled));
            format!("[{}]", values.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    fn loaded(text: &str) -> (ConfigFile, ConfigSource) {
        let source = ConfigSource::new("gateway.toml", text);
        let mut diagnostics = Diagnostics::new();
        let file = read(&source, &mut diagnostics).unwrap();
        let errors = diagnostics.render(&source, false);
        assert!(!diagnostics.has_errors(), "{errors}\n{text}");
        (file, source)
    }

    /// The settings of all rules.
    fn settings(file: &ConfigFile) -> Vec<Vec<config::file::WrittenSetting>> {
        file.rules.iter().map(RuleSettings::written).collect()
    }

    #[test]
    fn the_toml_of_the_rules_is_read_as_the_same_rules() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/config");
        for name in ["ok_algorithms", "ok_full", "ok_protect"] {
            let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
            let (file, source) = loaded(&text);
            let printed = as_toml(&file, &source, &[]);
            let rest = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n[[upstreams]]\nname = \"honeypot\"\n\
                        servers = [\"127.0.0.1:9\"]\n[responses.sorry]\nstatus = 200\n[responses.invited]\n";
            let (again, _) = loaded(&format!("{printed}\n{rest}"));
            assert_eq!(settings(&again), settings(&file), "{printed}");
            assert!(again.protect.is_empty());
        }
    }

    #[test]
    fn every_setting_of_a_rule_is_written() {
        let writer = include_str!("../config/file/written_rule.rs");
        let root = config::schema::root();
        let rules = root
            .keys
            .into_iter()
            .find(|key| key.name == "rules")
            .unwrap();
        let config::schema::ValueSchema::List { item, .. } = rules.shape else {
            panic!("rules are an array");
        };
        let config::schema::ValueSchema::Table(rule) = *item else {
            panic!("a rule is a table");
        };
        for key in rule.keys.iter().filter(|key| key.name != "candidate") {
            assert!(
                writer.contains(&format!("\"{}\"", key.name)),
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn the_table_shows_where_a_rule_is_written() {
        let (file, source) = loaded(
            "[[listeners]]\naddress = \"127.0.0.1:0\"\n[expressions]\nhost = 'lower(http.host)'\n\
             [[rules]]\nname = \"one\"\nmitigate = 'ssl'\nkey = ['@host', \"ip.src\"]\nlimit = 5\nperiod = \"60s\"\n\
             [[rules]]\nname = \"second\"\nmitigate = 'ssl'\naction = \"close\"\ndry_run = true\n\
             [[rules]]\nname = \"third\"\nmitigate = 'ssl'\nalgorithm = \"concurrency\"\nlimit = 9\nenabled = false\n",
        );
        let lines: Vec<String> = as_table(&file, &source, &[])
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(
            lines,
            [
                "rule    action            limit        key                       from",
                "one     block             5 / 1m       lower(http.host), ip.src  gateway.toml:5",
                "second  close (dry run)   -            -                         gateway.toml:11",
                "third   block (disabled)  9 in flight  -                         gateway.toml:16",
            ]
        );
    }
}
