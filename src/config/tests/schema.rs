//! The schema and the reader agree: the reader accepts what the schema allows, and accepted strings
//! match their patterns.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use proptest::prelude::*;
use proptest::string::string_regex;
use regex::Regex;
use toml::de::DeValue;
use toml::{Table as Toml, Value};

use crate::config::scalar::{
    SettingType, check_name, country, duration, header_name, header_value, network, server, size,
    socket, target_path,
};
use crate::config::schema::{self, TableSchema, ValueSchema};
use crate::config::{ConfigSource, Diagnostics, read};

/// Constraints between values, or within strings, that the schema does not express.
const NOT_IN_A_SHAPE: &[&str] = &[
    "is already in use",
    "is defined twice",
    "is set twice",
    "is in both `set` and `remove`",
    "requires a limit",
    "requires `period`",
    "unknown upstream",
    "unknown response",
    "unknown listener",
    "needs a listener with TLS",
    "is only for a listener without TLS",
    "unknown expression",
    "is defined only later",
    "cannot use itself",
    "two presets are named",
    "`success` is missing",
    "of `[known_clients]` differ",
    "no client can solve a challenge",
    "is the name of a rule of the preset",
    "two presets set different lifetimes",
    "has no rule",
    "`path` is empty",
    "unknown rule",
    "contradicts `strict = true`",
    "needs `actions`, or `strict = true`",
    "cannot have both",
    "the right side of a comparison must be a value, not",
    "`token_file` is required",
    "is set by the gateway itself",
    "use `content_type`",
    "is not a domain",
    "is not an address and a port",
    "is not an address or a name with a port",
    "is not a network",
    "does not apply to",
    "has no effect",
    "`concurrency` has no period",
    "cannot be combined with",
    "`divert` requires `upstream`",
    "never admits a cost",
    "a sub-window is shorter",
    "`imitate` requires a success status",
    "a header is listed twice",
    "this is not a valid host",
    "is not a host",
    "`host` has no effect without",
    "is not set among the headers of health checks",
    "is not a status or a range of statuses",
    "a response to `HEAD` has no body",
    "the access log cannot go to",
    "the URL must not contain a user name",
    "a host of this URL",
    "a port is a number",
    "the number of a database",
    "the name of the master",
    "a Cluster has only the database 0",
    "the path of the socket",
    "a client certificate needs both",
    "cannot be counted in async mode",
    "requires `ratio`",
    "requires `total`",
    "cannot have a ratio",
    "cannot have sub-windows",
    "does not apply to a rule with `ratio`",
    "needs the table `[challenge]`",
    "no client can solve a challenge",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn files_that_match_the_schema_are_read(file in table(&schema::root())) {
        let text = toml::to_string(&file).unwrap();
        let source = ConfigSource::new("t.toml", text);
        let mut diagnostics = Diagnostics::new();
        prop_assert!(read(&source, &mut diagnostics).is_some(), "{}", source.text);
        for found in diagnostics.sorted() {
            let known = NOT_IN_A_SHAPE.iter().any(|part| found.message.contains(part));
            let known = known || found.severity != crate::config::Severity::Error;
            prop_assert!(known, "{}\n{}", found.message, source.text);
        }
    }
}

proptest! {
    #[test]
    fn accepted_values_match_their_pattern(written in strings()) {
        has_form(&written, &duration(), schema::DURATION)?;
        has_form(&written, &size(), schema::SIZE)?;
        has_form(&written, &socket(), schema::SOCKET)?;
        has_form(&written, &server(), schema::SERVER)?;
        has_form(&format!("unix:{written}"), &server(), schema::SERVER)?;
        has_form(&format!("/{written}"), &target_path(), schema::TARGET)?;
        has_form(&written, &network(), schema::NETWORK)?;
        has_form(&written, &header_name(), schema::HEADER_NAME)?;
        has_form(&written, &header_value(), schema::HEADER_VALUE)?;
        has_form(&written, &country(), schema::COUNTRY)?;
        let form = Regex::new(schema::NAME).unwrap();
        prop_assert_eq!(check_name(&written).is_ok(), form.is_match(&written));
    }

    #[test]
    fn addresses_match_their_pattern(ip in any::<IpAddr>(), port in any::<u16>(), bits in 0..=32_u8) {
        has_form(&SocketAddr::new(ip, port).to_string(), &socket(), schema::SOCKET)?;
        has_form(&format!("[fe80::1%7]:{port}"), &socket(), schema::SOCKET)?;
        let net = IpNet::new(ip, bits).unwrap();
        has_form(&net.to_string(), &network(), schema::NETWORK)?;
        has_form(&ip.to_string(), &network(), schema::NETWORK)?;
    }
}

#[test]
fn every_setting_is_described_once() {
    let root = schema::root();
    assert_eq!(root.keys.len(), 19);
    let rules = root.keys.iter().find(|key| key.name == "rules").unwrap();
    let ValueSchema::List { item, .. } = &rules.shape else {
        panic!("{:?}", rules.shape);
    };
    let ValueSchema::Table(rule) = &**item else {
        panic!("{item:?}");
    };
    assert_eq!(rule.aliases.len(), 5);
    assert_eq!(rule.at_least_one, [["count", "mitigate"].as_slice()]);
    let required = rule.keys.iter().filter(|key| key.required);
    assert_eq!(required.map(|key| key.name).collect::<Vec<_>>(), ["name"]);
    let mut names: Vec<_> = rule.keys.iter().map(|key| key.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rule.keys.len());
    assert_eq!(rule.apart, [("duration", "escalate")]);
}

fn has_form<T: 'static>(
    written: &str,
    scalar: &SettingType<T>,
    pattern: &str,
) -> Result<(), TestCaseError> {
    let accepted = scalar.parse(&DeValue::String(written.into())).is_ok();
    let form = || Regex::new(pattern).unwrap();
    prop_assert!(
        !accepted || form().is_match(written),
        "{written:?} {pattern}"
    );
    Ok(())
}

/// Generates strings that often match a pattern, exactly or nearly.
fn strings() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9]{0,3}(ms|s|m|h|d|B|KiB|MiB|GiB|M)?\n?",
        "[0-9a-f.:/\\[\\]%]{0,12}",
        "[0-9]{1,3}\\.[0-9]{1,3}\\.0\\.0(/[0-9]{1,3})?(:[0-9]{1,6})?",
        "[A-Za-z0-9_ -]{0,70}",
        "[\\x00-\\x7f]{0,4}",
        "[A-Za-z0-9]{1,3}",
        "[A-Z][A-Z0-9]",
    ]
}

/// Generates tables that match a schema.
fn table(of: &TableSchema) -> BoxedStrategy<Toml> {
    let mut all = Just(Toml::new()).boxed();
    for key in &of.keys {
        let names: Vec<String> = names_of(of, key.name);
        let (always, chosen) = choices(of, key.name, key.required);
        let entry = (
            prop::sample::select(names),
            value(&key.shape),
            any::<bool>(),
        );
        all = (all, entry)
            .prop_map(move |(mut table, (name, value, put))| {
                if always || (put && chosen) {
                    table.insert(name, value);
                }
                table
            })
            .boxed();
    }
    let Some(names) = &of.names else {
        return without_pairs(of.clone(), all);
    };
    let value = ValueSchema::Either(names.shapes.clone());
    let entry = (matching(names.pattern), self::value(&value));
    prop::collection::vec(entry, 0..3)
        .prop_map(|entries| entries.into_iter().collect())
        .boxed()
}

/// Keeps only the first of two settings that exclude each other.
fn without_pairs(of: TableSchema, all: BoxedStrategy<Toml>) -> BoxedStrategy<Toml> {
    all.prop_map(move |mut table| {
        for (one, other) in &of.apart {
            let names = names_of(&of, one);
            if names.iter().any(|name| table.contains_key(name)) {
                table.remove(*other);
            }
        }
        table
    })
    .boxed()
}

/// Returns the names of a setting.
fn names_of(of: &TableSchema, key: &str) -> Vec<String> {
    let aliases = of.aliases.iter().filter(|(ours, _)| *ours == key);
    let theirs = aliases.map(|(_, theirs)| (*theirs).to_owned());
    [key.to_owned()].into_iter().chain(theirs).collect()
}

/// Returns whether a setting is always present, and whether it may be. Of a set, the first is present.
fn choices(of: &TableSchema, key: &str, required: bool) -> (bool, bool) {
    let sets = of.exactly_one.iter();
    let of_set = sets.clone().find(|set| set.contains(&key));
    let first = sets.chain(&of.at_least_one).any(|set| set[0] == key);
    (required || first, of_set.is_none())
}

fn value(shape: &ValueSchema) -> BoxedStrategy<Value> {
    match shape {
        ValueSchema::Text {
            pattern, examples, ..
        } => {
            let any = matching(pattern.unwrap_or("^.{1,9}$")).prop_map(Value::String);
            match examples {
                [] => any.boxed(),
                some => {
                    let some = prop::sample::select(some.to_vec());
                    prop_oneof![some.prop_map(Value::from), any].boxed()
                }
            }
        }
        ValueSchema::Integer { low, high } => (*low..=*high).prop_map(Value::Integer).boxed(),
        ValueSchema::Number { low, high } => (*low..=*high).prop_map(Value::Float).boxed(),
        ValueSchema::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        ValueSchema::Words(words) => prop::sample::select(words.clone())
            .prop_map(Value::from)
            .boxed(),
        ValueSchema::Duration { low, high, seconds } => {
            let number = *seconds;
            (low.as_millis()..=high.as_millis(), any::<bool>())
                .prop_map(move |(millis, plain)| {
                    if plain && number && millis >= 1000 {
                        Value::Integer(i64::try_from(millis / 1000).unwrap())
                    } else {
                        Value::String(format!("{millis}ms"))
                    }
                })
                .boxed()
        }
        ValueSchema::Size { low, high } => (*low..=*high)
            .prop_map(|bytes| Value::String(format!("{bytes}B")))
            .boxed(),
        ValueSchema::List {
            item,
            least,
            unique,
        } => list(value(item), *least as usize, *unique),
        ValueSchema::Table(inner) => table(inner).prop_map(Value::Table).boxed(),
        ValueSchema::Either(shapes) => {
            let shapes: Vec<_> = shapes.iter().map(value).collect();
            prop::strategy::Union::new(shapes).boxed()
        }
    }
}

fn list(item: BoxedStrategy<Value>, least: usize, unique: bool) -> BoxedStrategy<Value> {
    prop::collection::vec(item, least..least + 3)
        .prop_map(move |mut items| {
            if unique {
                let mut seen = Vec::new();
                items.retain(|item| {
                    !seen.contains(item) && {
                        seen.push(item.clone());
                        true
                    }
                });
            }
            Value::Array(items)
        })
        .boxed()
}

/// Generates strings that match a pattern. The generator needs no anchors: it makes whole strings.
fn matching(pattern: &str) -> BoxedStrategy<String> {
    let whole = pattern.trim_start_matches('^').trim_end_matches('$');
    string_regex(whole).unwrap().boxed()
}
