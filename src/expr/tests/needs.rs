//! If a test holds, its prefilter holds.

use std::net::IpAddr;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::super::{
    FieldFacts, Prefilter, PrefilterCondition, PrefilterTest, ValueSource, predicate,
};
use super::random::{expression, facts};
use super::{Sample, request, with_env};

proptest! {
    #[test]
    fn the_prefilter_holds_wherever_the_predicate_holds(
        source in expression(),
        samples in prop::collection::vec(facts(), 8),
    ) {
        with_env(|env| {
            if source.len() > 4096 { return }
            let compiled = predicate(&source, env).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
            for sample in &samples {
                let needed = holds(compiled.need(), sample);
                assert!(needed || !compiled.test(sample), "{source}\n{sample:?}\n{:?}", compiled.need());
            }
        });
    }
}

/// Parts of regexes: letters with more than two cases, bytes that are not UTF-8, and patterns that
/// match nothing.
const PATTERNS: &[&str] = &[
    "",
    "a",
    "ab",
    "Bot",
    "k",
    "s",
    "é",
    "ß",
    ".",
    r"\d",
    r"\w",
    r"\pL",
    "[ab]",
    "[^a]",
    "[a&&b]",
    "^",
    "$",
    r"\b",
    r"\B",
    r"\z",
    "(?m:^)",
    "(?m:$)",
    r"\b{start}",
    r"\x41",
    r"\u{212A}",
    r"(?-u:\xff)",
    r"(?-u:\xC3)",
    "(?-u:.)",
    "(?s:.)",
    "(?x: a b # c\n )",
];
const TEXTS: &[&[u8]] = &[
    b"a",
    b"b",
    b"A",
    b"k",
    b"K",
    b"s",
    b"1",
    b" ",
    b"abc",
    b"bot",
    b"BOT",
    b"\r\n",
    b"\xff",
    b"\xc3",
    b"\xe2\x84\xaa",
    b"\xc5\xbf",
    b"\xc3\xa9",
    b"\xc3\x89",
    b"\xc3\x9f",
];

fn regex() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(PATTERNS).prop_map(str::to_owned);
    let tree = leaf.prop_recursive(4, 16, 4, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..4);
        let times = prop::sample::select(&["*", "+", "?", "{0}", "{2}", "{0,2}", "+?", "??"][..]);
        prop_oneof![
            3 => many.clone().prop_map(|parts| parts.concat()),
            2 => many.prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => (inner.clone(), times).prop_map(|(part, times)| format!("(?:{part}){times}")),
            1 => inner.prop_map(|part| format!("(?i:{part})")),
        ]
    });
    let flags = prop::sample::select(&["", "(?i)", "(?s)", "(?x)", "(?im)", "(?U)", "(?R)"][..]);
    (flags, tree).prop_map(|(flags, tree)| format!("{flags}{tree}"))
}

proptest! {
    #[test]
    fn the_prefilter_of_a_regex_accepts_every_match(
        pattern in regex(),
        texts in prop::collection::vec(prop::collection::vec(prop::sample::select(TEXTS), 0..6), 12),
    ) {
        let source = format!("http.user_agent matches r##\"{pattern}\"##");
        with_env(|env| {
            let Ok(compiled) = predicate(&source, env) else { return };
            for text in texts {
                let sample = Sample::default().bytes("http.user_agent", &text.concat());
                let needed = holds(compiled.need(), &sample);
                assert!(needed || !compiled.test(&sample), "{pattern}\n{sample:?}");
            }
        });
    }
}

#[test]
fn the_prefilter_is_as_narrow_as_possible() {
    let (path, agent) = ("http.request.uri.path", "http.user_agent");
    let cases = [
        (format!("{path} eq \"/Login\""), "is /login"),
        (format!("starts_with({path}, \"/api/\")"), "starts /api/"),
        (format!("ends_with({path}, \".php\")"), "has .php"),
        (format!("{path} contains \"x\""), "has x"),
        (format!("{path} wildcard \"/a/b\""), "is /a/b"),
        (
            format!("{path} wildcard \"/A/*/long/*/s/*.json\""),
            "(starts /a/ and has /long/ and has .json)",
        ),
        (format!("{path} in {{\"/a\"}}"), "(is /a)"),
        (format!("lower({path}) eq \"/a\""), "is /a"),
        (format!("substring({path}, 0, 2) eq \"/a\""), "starts /a"),
        (format!("substring({path}, 1) eq \"a\""), "has a"),
        (format!("url_decode({path}) eq \"a\""), "starts "),
        (
            format!("any(split({path}, \"/\", 9)[*] eq \"admin\")"),
            "has admin",
        ),
        (
            format!("{agent} matches \"(?i)(curl|wget)/.*[a-z]\""),
            "((has curl/ or has wget/) and starts )",
        ),
        (
            format!("{agent} matches \".*bot\""),
            "((has bot) and starts )",
        ),
        (format!("{agent} matches \"^.{{3}}$\""), "(starts )"),
        (format!("{agent} ne \"x\""), "starts "),
        (format!("not {path} eq \"/a\""), "?"),
        (format!("{path} eq \"/a\" xor ssl"), "?"),
        (format!("{path} eq \"/a\" and ssl"), "(is /a and ?)"),
        (format!("{path} eq \"/a\" or ssl"), "(is /a or ?)"),
        (
            "any(http.request.headers[\"X\"][*] eq \"a\")".into(),
            "is a",
        ),
        ("all(http.request.headers[\"X\"][*] eq \"a\")".into(), "?"),
        ("http.request.cookies[\"s\"][0] eq \"a\"".into(), "is a"),
        ("ip.src.asnum gt 5".into(), "5..9223372036854775807"),
        ("ip.src.asnum in {1 3}".into(), "(1..1 or 3..3)"),
        ("ip.src in {10.0.0.0/31}".into(), "(10.0.0.0..10.0.0.1)"),
        ("ip.src eq ::ffff:10.0.0.1".into(), "10.0.0.1..10.0.0.1"),
        ("false".into(), "()"),
        ("true".into(), "?"),
    ];
    for (source, expected) in cases {
        let need = with_env(|env| show(predicate(&source, env).unwrap().need()));
        assert_eq!(need, expected, "{source}");
    }
}

#[test]
fn the_first_read_is_unconditional() {
    let cases = [
        ("ip.src.asnum eq 1 and ssl", Some("ip.src.asnum")),
        ("ssl and ip.src.asnum eq 1", Some("ssl")),
        ("not (http.host eq \"a\" or ssl)", Some("http.host")),
        (
            "any(http.request.cookies[\"a\"][*] eq \"b\")",
            Some("http.request.cookies"),
        ),
        ("lower(http.host) eq \"a\"", Some("http.host")),
        ("ip.src in {::1}", Some("ip.src")),
        ("true", None),
    ];
    for (source, expected) in cases {
        let first = with_env(|env| predicate(source, env).unwrap().first_read());
        assert_eq!(
            first.map(|field| field.0),
            expected.map(super::id),
            "{source}"
        );
    }
}

#[test]
fn a_large_set_is_one_prefilter_unless_the_case_changes() {
    let values: Vec<String> = (0..200).map(|n| format!("\"v{n}\"")).collect();
    let set = values.join(" ");
    let of = |source: String| with_env(|env| show(predicate(&source, env).unwrap().need()));
    assert_eq!(of(format!("http.host in {{{set}}}")), "in strings");
    assert_eq!(of(format!("lower(http.host) in {{{set}}}")), "starts ");
    let ints: Vec<String> = (0..200).map(|n| (n * 1000).to_string()).collect();
    assert_eq!(
        of(format!("ip.src.asnum in {{{}}}", ints.join(" "))),
        "in ints"
    );
    let sample = request().bytes("http.host", b"v7");
    let held =
        |source: &str| with_env(|env| holds(predicate(source, env).unwrap().need(), &sample));
    assert!(held(&format!("http.host in {{{set}}}")));
    assert!(!held("http.host in {\"v8\"}"));
}

fn show(need: &Prefilter) -> String {
    let join = |parts: &[Prefilter], word: &str| {
        let parts: Vec<String> = parts.iter().map(show).collect();
        format!("({})", parts.join(word))
    };
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    match need {
        Prefilter::Anything => "?".into(),
        Prefilter::All(parts) => join(parts, " and "),
        Prefilter::Any(parts) => join(parts, " or "),
        Prefilter::Atom(PrefilterTest { hint, .. }) => match hint {
            PrefilterCondition::Exact(whole) => format!("is {}", text(whole)),
            PrefilterCondition::Prefix(start) => format!("starts {}", text(start)),
            PrefilterCondition::Contains(part) => format!("has {}", text(part)),
            PrefilterCondition::Ints(low, high) => format!("{low}..{high}"),
            PrefilterCondition::Ips(low, high) => format!("{low}..{high}"),
            PrefilterCondition::InStrings(_) => "in strings".into(),
            PrefilterCondition::InInts(_) => "in ints".into(),
            PrefilterCondition::InIps(_) => "in ips".into(),
        },
    }
}

fn holds(need: &Prefilter, facts: &Sample) -> bool {
    match need {
        Prefilter::Anything => true,
        Prefilter::All(parts) => parts.iter().all(|part| holds(part, facts)),
        Prefilter::Any(parts) => parts.iter().any(|part| holds(part, facts)),
        Prefilter::Atom(atom) => atom_holds(atom, facts),
    }
}

fn atom_holds(PrefilterTest { source, hint }: &PrefilterTest, facts: &Sample) -> bool {
    let field = source.field();
    let ip = facts.ip(field).map(|ip: IpAddr| ip.to_canonical());
    match hint {
        PrefilterCondition::Ints(low, high) => facts
            .int(field)
            .is_some_and(|int| (low..=high).contains(&&int)),
        PrefilterCondition::Ips(low, high) => ip.is_some_and(|ip| (low..=high).contains(&&ip)),
        PrefilterCondition::InInts(set) => facts.int(field).is_some_and(|int| set.contains(int)),
        PrefilterCondition::InIps(set) => ip.is_some_and(|ip| set.contains(ip)),
        hint => values(source, facts)
            .iter()
            .any(|value| text_holds(hint, value)),
    }
}

fn text_holds(hint: &PrefilterCondition, value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    match hint {
        PrefilterCondition::Exact(whole) => lower == **whole,
        PrefilterCondition::Prefix(start) => lower.starts_with(start),
        PrefilterCondition::Contains(part) => {
            lower.windows(part.len()).any(|window| window == &**part)
        }
        PrefilterCondition::InStrings(set) => set.contains(value),
        _ => false,
    }
}

fn values(source: &ValueSource, facts: &Sample) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    match source {
        ValueSource::Field(field) => values.extend(facts.bytes(*field).map(|value| value.to_vec())),
        ValueSource::Element { field, name, index } => {
            let value = facts.element(*field, name.as_deref(), *index);
            values.extend(value.map(|value| value.to_vec()));
        }
        ValueSource::Each { field, name } => facts.each(*field, name.as_deref(), &mut |value| {
            values.push(value.to_vec());
            ControlFlow::Continue(())
        }),
    }
    values
}
