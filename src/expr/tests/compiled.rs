//! The properties of compiled expressions: reads, keys, lists and limits.

use std::borrow::Cow;

use super::super::{FieldFacts, FieldId, IntSet, ScalarValue, functions, predicate, scalar};
use super::{Sample, id, request, with_env};

fn eval<'a>(source: &str, facts: &'a dyn FieldFacts) -> Option<ScalarValue<'a>> {
    with_env(|env| {
        scalar(source, env)
            .unwrap_or_else(|errors| panic!("{source}: {errors:?}"))
            .eval(facts)
    })
}

fn text(value: &str) -> Option<ScalarValue<'_>> {
    Some(ScalarValue::Bytes(Cow::Borrowed(value.as_bytes())))
}

#[test]
fn a_predicate_knows_which_fields_it_reads() {
    let source = r#"http.request.headers["X-Tag"][0] eq "a" and any(http.request.headers["x-tag"][*] eq "b") and http.response.code eq 1 and http.request.method eq "x""#;
    let compiled = with_env(|env| predicate(source, env)).unwrap();
    let fields = [
        "http.request.method",
        "http.request.headers",
        "http.response.code",
    ];
    assert_eq!(compiled.reads(), fields.map(|name| FieldId(id(name))));
    assert_eq!(
        compiled.reads_entries(),
        [(FieldId(id("http.request.headers")), "x-tag".into())]
    );
    assert!(compiled.reads_response());
    assert_eq!(compiled.source(), source);
    let plain = with_env(|env| predicate("ssl", env)).unwrap();
    assert!(!plain.reads_response());
}

#[test]
fn a_key_part_without_an_index_takes_the_first_value() {
    let request = request();
    assert_eq!(
        eval(r#"http.request.headers["X-TAG"]"#, &request),
        text("Alpha")
    );
    assert_eq!(
        eval(r#"http.request.headers["x-tag"][0]"#, &request),
        text("Alpha")
    );
    assert_eq!(
        eval(r#"http.request.headers["x-tag"][-1]"#, &request),
        text("a*b")
    );
    assert_eq!(
        eval(r#"http.request.uri.args["q"][1]"#, &request),
        text("22")
    );
    assert_eq!(
        eval(r#"lower(http.request.headers["x-tag"])"#, &request),
        text("alpha")
    );
    assert_eq!(eval(r#"http.request.cookies["none"]"#, &request), None);
}

#[test]
fn a_key_part_has_the_type_of_its_field() {
    let request = request();
    assert_eq!(
        eval("ip.src", &request),
        Some(ScalarValue::Ip("203.0.113.7".parse().unwrap()))
    );
    assert_eq!(
        eval("ip.peer", &request),
        Some(ScalarValue::Ip("192.0.2.5".parse().unwrap()))
    );
    assert_eq!(
        eval("cidr(ip.src, 8, 64)", &request),
        Some(ScalarValue::Ip("203.0.0.0".parse().unwrap()))
    );
    assert_eq!(
        eval("ip.src.asnum", &request),
        Some(ScalarValue::Int(64500))
    );
    assert_eq!(eval("ssl", &request), Some(ScalarValue::Bool(true)));
    assert_eq!(eval("len(http.host)", &request), Some(ScalarValue::Int(16)));
    assert_eq!(
        eval("len(http.request.headers.names)", &request),
        Some(ScalarValue::Int(6))
    );
    assert_eq!(
        eval(r#"starts_with(http.host, "s")"#, &request),
        Some(ScalarValue::Bool(true))
    );
    assert_eq!(eval("http.referer", &request), None);
    assert_eq!(eval("ssl", &Sample::default()), None);
}

#[test]
fn fields_and_unchanged_strings_are_borrowed() {
    let request = request();
    for source in [
        "http.host",
        "lower(http.host)",
        r#"http.request.headers["accept"]"#,
        "substring(http.host, 2)",
        "concat(http.host)",
        r#"regex_replace(http.host, "zzz", "y")"#,
        r#"wildcard_replace(http.host, "zzz*", "y")"#,
        r#"split(http.host, ".")[1]"#,
    ] {
        let value = eval(source, &request);
        assert!(
            matches!(value, Some(ScalarValue::Bytes(Cow::Borrowed(_)))),
            "{source}: {value:?}"
        );
    }
}

#[test]
fn only_a_field_without_functions_is_bare() {
    with_env(|env| {
        let bare = |source| scalar(source, env).unwrap().bare_field();
        assert_eq!(bare("ip.src"), Some(FieldId(id("ip.src"))));
        assert_eq!(bare("ssl"), Some(FieldId(id("ssl"))));
        assert_eq!(bare("cidr(ip.src, 8, 8)"), None);
        assert_eq!(bare(r#"http.request.headers["x"]"#), None);
    });
}

#[test]
fn a_long_chain_is_flat_and_deep_nesting_is_refused() {
    let request = request();
    with_env(|env| {
        let chain = vec!["ssl"; 500].join(" and ");
        assert!(predicate(&chain, env).unwrap().test(&request));
        for (open, close) in [
            ("(", ")"),
            ("not ", ""),
            ("!", ""),
            ("lower(", ")"),
            ("any(", ")"),
        ] {
            let deep = format!("{}ssl{}", open.repeat(500), close.repeat(500));
            let errors = predicate(&deep, env).unwrap_err();
            assert_eq!(errors[0].message, "more than 64 levels deep", "{open}");
        }
        let fits = format!("{}ssl{}", "(".repeat(64), ")".repeat(64));
        assert!(predicate(&fits, env).is_ok());
        assert!(predicate(&"(".repeat(4096), env).is_err());
        let long = format!("ssl{}", " ".repeat(4094));
        assert_eq!(predicate(&long, env).unwrap_err()[0].span, 4096..4097);
    });
}

#[test]
fn the_table_of_functions_is_complete() {
    let contract = "any all cidr cidr6 concat decode_base64 ends_with starts_with len lower upper \
        substring url_decode remove_bytes lookup_json_string lookup_json_integer to_string \
        regex_replace wildcard_replace split join jwt_claim has_key has_value";
    for name in contract.split_whitespace() {
        let spec = functions().iter().find(|spec| spec.name == name);
        let spec = spec.unwrap_or_else(|| panic!("{name}"));
        assert!(spec.signature.starts_with(&format!("{name}(")) && spec.doc.ends_with('.'));
    }
    assert_eq!(functions().len(), contract.split_whitespace().count());
}

#[test]
fn url_decode_follows_its_options() {
    let request = |value: &str| Sample::default().bytes("http.host", value.as_bytes());
    for (source, given, expected) in [
        ("url_decode(http.host)", "a%2Fb+c", "a/b c"),
        ("url_decode(http.host)", "%252F", "%2F"),
        ("url_decode(http.host)", "%zz%4", "%zz%4"),
        ("url_decode(http.host)", "%u0041", "%u0041"),
        (r#"url_decode(http.host, "r")"#, "%25252F", "/"),
        (r#"url_decode(http.host, "u")"#, "%u00e9%ud800", "é%ud800"),
    ] {
        assert_eq!(
            eval(source, &request(given)),
            text(expected),
            "{source} of {given}"
        );
    }
}

#[test]
fn literals_of_every_length_are_compared_whole() {
    let text = "abcdefghijklmnopqrstuvwxyz";
    with_env(|env| {
        for length in 0..20 {
            let literal = &text[..length];
            let test = |source: String, given: &str| {
                let sample = Sample::default().bytes("http.host", given.as_bytes());
                predicate(&source, env).unwrap().test(&sample)
            };
            let other = "z".repeat(length);
            for given in [
                &text[..length],
                &text[..length + 1],
                &text[..length.saturating_sub(1)],
                &other,
            ] {
                let equal = given == literal;
                assert_eq!(test(format!("http.host eq \"{literal}\""), given), equal);
                assert_eq!(
                    test(format!("http.host in {{\"{literal}\"}}"), given),
                    equal
                );
                let starts = given.starts_with(literal);
                assert_eq!(
                    test(format!("starts_with(http.host, \"{literal}\")"), given),
                    starts
                );
            }
        }
    });
}

#[test]
fn integer_sets_hold_at_the_ends_of_their_type() {
    let set = IntSet::new([(i64::MAX - 10, i64::MAX)]);
    assert!(set.contains(i64::MAX) && set.contains(i64::MAX - 10));
    assert!(!set.contains(i64::MAX - 11) && !set.contains(i64::MIN) && !set.contains(i64::MIN + 5));
    let set = IntSet::new([(i64::MIN, i64::MIN), (i64::MAX, i64::MAX)]);
    assert!(set.contains(i64::MIN) && set.contains(i64::MAX) && !set.contains(0));
    let set = IntSet::new([(0, 0), (63, 63)]);
    assert!(set.contains(63) && !set.contains(64) && !set.contains(-1) && !set.contains(62));
}
