//! Tests that exclude or imply each other.

use super::{TLS, deny, none, only};

#[test]
fn tests_that_exclude_each_other() {
    let never = |file: String, other: &str| {
        only(
            &file,
            &format!("this test and `{other}` are never both true"),
        );
    };
    never(
        deny(r#"http.host eq "a" and http.host eq "b""#),
        r#"http.host eq "a""#,
    );
    never(
        deny(r#"http.host in {"a" "b"} and ssl and http.host eq "c""#),
        r#"http.host in {"a" "b"}"#,
    );
    never(deny("ssl and not ssl"), "ssl");
    never(
        deny("http.request.body.size gt 10 and http.request.body.size eq 3"),
        "http.request.body.size gt 10",
    );
    never(
        deny(r#"starts_with(http.request.uri.path, "/a") and http.request.uri.path eq "/b""#),
        r#"starts_with(http.request.uri.path, "/a")"#,
    );
    for fine in [
        r#"http.host eq "a" or http.host eq "b""#,
        r#"http.host in {"a" "b"} and not http.host eq "b""#,
        "http.request.body.size gt 10 and http.request.body.size in {3..20}",
        r#"starts_with(http.request.uri.path, "/a") and starts_with(http.request.uri.path, "/a/b")"#,
        r#"any(http.request.headers["x"][*] eq "a") and any(http.request.headers["x"][*] eq "b")"#,
        r#"http.request.headers["x"][0] eq "a" and http.request.headers["x"][1] eq "b""#,
        r#"lower(http.host) eq "a" and http.host matches "b""#,
    ] {
        none(&deny(fine));
    }
}

#[test]
fn calls_with_different_arguments_are_different_values() {
    for expression in [
        r#"substring(http.host, 0, 1) eq "a" and substring(http.host, 1, 2) eq "b""#,
        r#"concat(http.host, "/") eq "a/" and concat("/", http.host) eq "/a""#,
        r#"concat(http.host, ssl) eq "a" and concat(http.host, http.referer) eq "ab""#,
        r#"split(http.host, ".")[0] eq "a" and split(http.host, "-")[0] eq "b""#,
        r#"len(concat(http.host, "a")) eq 3 and len(concat(http.host, "ab")) eq 4"#,
        r#"not has_key(http.request.headers, "a") and has_key(http.request.headers, "b")"#,
    ] {
        none(&deny(expression));
    }
    let any = |name| {
        let names = "http.request.headers.names[*]";
        format!(r#"any({names} eq "{name}" or {names} eq "x")"#)
    };
    none(&deny(&format!("{} and not {}", any("a"), any("b"))));
    only(
        &deny(r#"substring(http.host, 0, 1) eq "a" and substring(http.host, 0, 1) eq "b""#),
        "this test and `substring(http.host, 0, 1) eq \"a\"` are never both true",
    );
}

#[test]
fn nested_expressions_are_compared_in_bounded_time() {
    let nested = |name: &str| {
        let mut text = "ssl".to_owned();
        for at in 0..50 {
            let join = ["or", "and"][at % 2];
            text = format!("({text}) {join} http.host eq \"{name}{at}\"");
        }
        text
    };
    let rule = |name: &str| {
        format!(
            "[[rules]]\nname = \"{name}\"\nmitigate = '{}'\n",
            nested(name)
        )
    };
    none(&format!("{TLS}{}{}", rule("a"), rule("b")));
}
