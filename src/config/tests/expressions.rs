//! Named expressions: their text after inlining, and where each byte of it was written.

use crate::config::file::RuleSettings;
use crate::config::{ConfigSource, Diagnostics, read};

/// The source and the only rule of a file with these named expressions and this `mitigate`.
fn rule(definitions: &str, mitigate: &str) -> (ConfigSource, RuleSettings) {
    let text = format!(
        "[[listeners]]\naddress = \"127.0.0.1:0\"\n[expressions]\n{definitions}\n\
         [[rules]]\nname = \"r\"\nmitigate = {mitigate}\n"
    );
    let source = ConfigSource::new("t.toml", text);
    let mut diagnostics = Diagnostics::new();
    let mut file = read(&source, &mut diagnostics).unwrap();
    assert!(
        !diagnostics.has_errors(),
        "{}",
        diagnostics.render(&source, false)
    );
    (source, file.rules.remove(0))
}

fn inlined(definitions: &str, mitigate: &str) -> String {
    rule(definitions, mitigate).1.mitigate.unwrap().value
}

/// The text of the file for `part` of the inlined text, and the names through which it came.
fn origin(definitions: &str, mitigate: &str, part: &str) -> (String, Vec<String>) {
    let (source, rule) = rule(definitions, mitigate);
    let text = rule.mitigate.unwrap();
    let start = text.value.find(part).unwrap();
    let origin = text.origin(&source, start..start + part.len());
    let names = origin.uses.iter().map(|used| used.name.to_string());
    (source.text[origin.span].to_owned(), names.collect())
}

#[test]
fn only_a_compound_test_gets_parentheses() {
    let named = "a = 'ssl or ip.src in {10.0.0.0/8}'\nb = 'http.host eq \"b\"'\nc = 'not ssl'\n\
                 d = 'lower(http.host)'\ne = '@a'";
    let group = "(ssl or ip.src in {10.0.0.0/8})";
    assert_eq!(inlined(named, "'@a and ssl'"), format!("{group} and ssl"));
    assert_eq!(inlined(named, "'not @b'"), "not http.host eq \"b\"");
    assert_eq!(inlined(named, "'not @c'"), "not (not ssl)");
    assert_eq!(inlined(named, "'@d eq \"x\"'"), "lower(http.host) eq \"x\"");
    assert_eq!(inlined(named, "' @a '"), " ssl or ip.src in {10.0.0.0/8} ");
    assert_eq!(
        inlined(named, "'@e and @e'"),
        format!("{group} and {group}")
    );
    assert_eq!(
        inlined(named, "'http.host eq \"@a\"'"),
        "http.host eq \"@a\""
    );
}

#[test]
fn a_part_of_a_named_expression_is_written_in_its_definition() {
    let named = "a = 'ssl or http.host eq \"x\"'\nb = '@a and http.request.method eq \"GET\"'";
    let written = |mitigate, part| origin(named, mitigate, part);
    assert_eq!(
        written("'ip.src in {10.0.0.0/8} or @b'", "GET"),
        ("GET".into(), vec!["b".into()])
    );
    let nested = written("'ip.src in {10.0.0.0/8} or @b'", "http.host");
    assert_eq!(nested, ("http.host".into(), vec!["a".into(), "b".into()]));
    let own = written("'ip.src in {10.0.0.0/8} or @b'", "ip.src");
    assert_eq!(own, ("ip.src".into(), vec![]));
}

#[test]
fn a_whole_named_expression_is_written_where_it_is_used() {
    let named = "a = 'ssl or http.host eq \"x\"'\nb = '@a and http.request.method eq \"GET\"'";
    let whole = "(ssl or http.host eq \"x\")";
    assert_eq!(origin(named, "'@a and ssl'", whole), ("@a".into(), vec![]));
    let inner = &whole[1..whole.len() - 1];
    assert_eq!(origin(named, "'@a and ssl'", inner), ("@a".into(), vec![]));
    assert_eq!(
        origin(named, "'@b and ssl'", inner),
        ("@a".into(), vec!["b".into()])
    );
    let both = "\"x\") and http";
    assert_eq!(
        origin(named, "'@b and ssl'", both),
        ("@a and http".into(), vec!["b".into()])
    );
    let over = "\"GET\") and ssl";
    assert_eq!(
        origin(named, "\"\"\"\n@b and\\u0020ssl\"\"\"", over).0,
        "@b and\\u0020ssl"
    );
}
