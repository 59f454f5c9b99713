//! Hostile expressions: limits on depth, length, memory and the number of reported errors.

use super::super::{predicate, scalar};
use super::{request, with_env};

/// As small a stack as a thread of the gateway has.
const STACK: usize = 2 << 20;

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(run).unwrap().join().unwrap();
}

/// An expression as deep as allowed, of each kind of nesting.
fn deepest() -> Vec<String> {
    let nest = |open: &str, middle: &str, close: &str, count: usize| {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    };
    let each = r#"http.request.headers["x-tag"][*]"#;
    vec![
        nest("(", "ssl", ")", 64),
        nest("not ", "ssl", "", 64),
        nest("!(", "ssl", ")", 32),
        nest("(ssl and (ssl or ", "ssl", "))", 32),
        nest("lower(", "http.host", ")", 64) + " eq \"x\"",
        nest("concat(\"a\", ", "http.host", ")", 64) + " eq \"x\"",
        nest("cidr(", "ip.src", ", 24, 64)", 64) + " eq 1.2.3.4",
        format!("any({})", nest("not ", &format!("{each} eq \"a\""), "", 63)),
        nest(
            &format!("any({each} eq \"a\" or "),
            &format!("{each} eq \"b\""),
            ")",
            60,
        ),
        nest("join(split(", "http.host", ", \".\"), \"-\")", 32) + " eq \"x\"",
        nest("regex_replace(", "http.host", ", \"a\", \"${0}${0}\")", 60) + " eq \"x\"",
        nest("to_string(len(", "http.host", "))", 32) + " eq \"x\"",
    ]
}

#[test]
fn the_deepest_expressions_fit_on_a_small_stack() {
    on_a_small_stack(|| {
        let request = request();
        with_env(|env| {
            for source in deepest() {
                let compiled =
                    predicate(&source, env).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
                compiled.test(&request);
                drop(compiled);
            }
        });
    });
}

#[test]
fn expressions_nested_too_deep_are_refused_on_a_small_stack() {
    on_a_small_stack(|| {
        with_env(|env| {
            for piece in [
                "(",
                "not ",
                "!",
                "lower(",
                "any(",
                "concat(\"a\",",
                "[",
                "{",
                "[*]",
                "a[",
                "((a)or",
                "not(",
                "ssl and (",
                "ssl xor ",
            ] {
                for count in [65, 300, 4096 / piece.len()] {
                    let source = piece.repeat(count);
                    assert!(predicate(&source, env).is_err(), "{piece}");
                    assert!(scalar(&source, env).is_err(), "{piece}");
                }
            }
            let long = "(".repeat(1 << 20);
            assert!(predicate(&long, env).is_err());
            let path = format!("http.host{}", "[0]".repeat(1300));
            assert!(scalar(&path, env).is_err());
        });
    });
}

#[test]
fn at_most_twenty_errors_are_reported() {
    with_env(|env| {
        let wrong = |count: usize| vec!["zzz"; count].join(" and ");
        assert_eq!(predicate(&wrong(20), env).unwrap_err().len(), 20);
        let errors = predicate(&wrong(500), env).unwrap_err();
        assert_eq!(errors.len(), 21);
        assert_eq!(errors[20].message, "480 more errors in this expression");
        let lexed = predicate(&"% ".repeat(2000), env).unwrap_err();
        assert_eq!(lexed.len(), 21);
    });
}

#[test]
fn regexes_share_the_size_budget_of_their_expression() {
    with_env(|env| {
        let many = |test: &str, count: usize| vec![test; count].join(" or ");
        // A small regex is charged 64 KiB, of 4 MiB.
        assert!(predicate(&many("http.host ~ \"a+b\"", 64), env).is_ok());
        let errors = predicate(&many("http.host ~ \"a+b\"", 65), env).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].message.contains("too large: together"),
            "{}",
            errors[0].message
        );
        let nested = r#"http.host matches "(((a{1,50}){1,50}){1,50}){1,50}""#;
        assert!(
            predicate(nested, env).unwrap_err()[0]
                .message
                .contains("more than 1 MiB")
        );
    });
}

#[test]
fn counted_repetitions_share_the_time_budget_of_their_expression() {
    let told = |source: &str| {
        with_env(|env| {
            predicate(source, env)
                .err()
                .map(|errors| errors[0].message.clone())
        })
    };
    for fits in [
        r#"http.host matches "^[a-z0-9]{1,255}$""#,
        r#"http.host matches "a.{1024}c""#,
        r#"http.host matches "(?:a[bc]{31}){32}""#,
        r#"http.host matches "[ab]{500}" or http.host matches "[ab]{500,}""#,
        r#"http.host matches "(?:a*){0}""#,
    ] {
        assert_eq!(told(fits), None, "{fits}");
    }
    for slow in [
        r#"http.host matches "a.{1026}c""#,
        r#"http.host matches "a[ab]{5000}c""#,
        r#"http.host matches "(?:a[bc]{33}){33}""#,
        r#"http.host matches "[ab]{600}" or http.host matches "[ab]{600,}""#,
        r#"regex_replace(http.host, "[ab]{0,2000}c", "") eq "x""#,
    ] {
        let message = told(slow).unwrap_or_default();
        assert!(
            message.contains("more than 1024 characters"),
            "{slow}: {message}"
        );
    }
}

#[test]
fn computed_strings_have_a_maximum_length() {
    let values = vec![("x", "y"); 1000];
    let facts = request().list("http.request.headers", &values);
    let separator = "-".repeat(100);
    let joined = format!("len(join(http.request.headers[\"x\"], \"{separator}\")) gt 0");
    let many = vec!["http.host"; 300].join(", ");
    let long = "h".repeat(300);
    let put_together = format!("len(concat({many})) gt 0");
    with_env(|env| {
        assert!(!predicate(&joined, env).unwrap().test(&facts));
        let short = joined.replace(&separator, "-");
        assert!(predicate(&short, env).unwrap().test(&facts));
        let facts = request().bytes("http.host", long.as_bytes());
        let whole = predicate(&put_together, env).unwrap();
        assert!(!whole.test(&facts) && whole.test(&request()));
    });
}
