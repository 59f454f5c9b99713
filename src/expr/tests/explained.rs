//! Explained expressions: the value of each part and what it read.

use proptest::prelude::*;

use super::super::{ExplainedPart, FieldFacts, PartKind, ScalarValue, explain, predicate};
use super::random::{expression, facts};
use super::{request, with_env};

fn explained(text: &str, facts: &dyn FieldFacts) -> ExplainedPart {
    with_env(|env| explain(text, env, facts).unwrap())
}

/// One line per part: indented, with its value and what it read.
fn shown(part: &ExplainedPart, depth: usize) -> String {
    let mut lines = format!("{:depth$}{} {}", "", part.holds, part.text);
    for read in &part.reads {
        let values: Vec<String> = read.values.iter().map(show).collect();
        lines += &format!(" | {} = {}", read.label, values.join(", "));
    }
    let parts = part.parts.iter().map(|part| shown(part, depth + 1));
    parts.fold(lines, |lines, part| lines + "\n" + &part)
}

fn show(value: &ScalarValue<'_>) -> String {
    match value {
        ScalarValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ScalarValue::Int(int) => int.to_string(),
        ScalarValue::Ip(ip) => ip.to_string(),
        ScalarValue::Bool(truth) => truth.to_string(),
    }
}

#[track_caller]
fn is(text: &str, lines: &str) {
    assert_eq!(shown(&explained(text, &request()), 0), lines);
}

#[test]
fn every_part_is_explained() {
    is(
        r#"http.request.method eq "GET" and (ssl or ip.src in {192.0.2.0/24})"#,
        "false and\n \
         false http.request.method eq \"GET\" | http.request.method = POST\n \
         true or\n  \
         true ssl | ssl = true\n  \
         false ip.src in {192.0.2.0/24} | ip.src = 203.0.113.7",
    );
    is(
        r#"not (http.host eq "x" xor true)"#,
        "false not\n true xor\n  false http.host eq \"x\" | http.host = shop.example.com\n  \
         true true",
    );
}

#[test]
fn missing_fields_have_no_values() {
    is(
        r#"http.referer eq "x""#,
        r#"false http.referer eq "x" | http.referer = "#,
    );
    is(
        r#"http.request.cookies["none"][0] eq "x""#,
        r#"false http.request.cookies["none"][0] eq "x" | http.request.cookies["none"][0] = "#,
    );
}

#[test]
fn lists_show_the_entries_that_were_read() {
    is(
        r#"any(http.request.headers["X-Tag"][*] eq "beta")"#,
        "true any(http.request.headers[\"X-Tag\"][*] eq \"beta\") \
         | http.request.headers[\"X-Tag\"][*] = Alpha, beta, a*b",
    );
    is(
        r#"http.request.uri.args["q"][-1] eq "333""#,
        r#"true http.request.uri.args["q"][-1] eq "333" | http.request.uri.args["q"][-1] = 333"#,
    );
    is(
        r#"len(http.request.uri.args["q"]) gt 2"#,
        "true len(http.request.uri.args[\"q\"]) gt 2 | http.request.uri.args[\"q\"] = 1, 22, 333 \
         | len(http.request.uri.args[\"q\"]) = 3",
    );
}

#[test]
fn functions_show_their_input_and_output() {
    is(
        r#"lower(http.request.uri.path) contains "/login""#,
        "true lower(http.request.uri.path) contains \"/login\" \
         | http.request.uri.path = /api/v1/Login | lower(http.request.uri.path) = /api/v1/login",
    );
    is(
        r#"starts_with(http.request.uri.path, "/x")"#,
        r#"false starts_with(http.request.uri.path, "/x") | http.request.uri.path = /api/v1/Login"#,
    );
}

#[test]
fn reads_name_their_fields_by_id_too() {
    let read = explained(r#"http.request.headers["X-Tag"][0] eq "x""#, &request());
    let read = &read.reads[0];
    assert_eq!(
        read.fields,
        [super::super::FieldId(super::id("http.request.headers"))]
    );
    assert_eq!(&*read.entries[0].1, "x-tag");
}

#[test]
fn the_explained_result_is_that_of_the_rule() {
    let facts = request();
    for text in super::truths::all() {
        let whole = with_env(|env| predicate(text, env).unwrap().test(&facts));
        assert_eq!(explained(text, &facts).holds, whole, "{text}");
    }
}

#[test]
fn errors_are_those_of_the_rule() {
    for text in ["http.hst eq \"x\"", "ssl and", "http.host"] {
        let (explained, compiled) =
            with_env(|env| (explain(text, env, &request()), predicate(text, env)));
        assert_eq!(explained.unwrap_err(), compiled.unwrap_err(), "{text}");
    }
}

/// Checks that the value of each connective follows from its parts.
fn adds_up(part: &ExplainedPart) {
    let mut truths = part.parts.iter().map(|part| part.holds);
    let made = match part.kind {
        PartKind::And => truths.all(|truth| truth),
        PartKind::Or => truths.any(|truth| truth),
        PartKind::Xor => truths.fold(false, |odd, truth| odd ^ truth),
        PartKind::Not => truths.all(|truth| !truth),
        _ => part.holds,
    };
    assert_eq!(made, part.holds, "{part:?}");
    part.parts.iter().for_each(adds_up);
}

proptest! {
    #[test]
    fn the_explained_parts_add_up_to_the_result(source in expression(), sample in facts()) {
        with_env(|env| {
            if source.len() > 4096 { return }
            let whole = predicate(&source, env).unwrap().test(&sample);
            let explained = explain(&source, env, &sample).unwrap();
            assert_eq!(explained.holds, whole, "{source}");
            adds_up(&explained);
        });
    }
}
