//! Tests with unknown fields in three-valued logic, compared with all values that those fields may have.

use proptest::prelude::*;

use super::super::{EvalContext, ExprEnv, FieldId, FieldScheme, FieldSpec, predicate};
use super::random::{expression, facts};
use super::{Sample, Small, lists};

/// The fields that the random facts set.
const FIELDS: [&str; 9] = [
    "http.request.method",
    "http.host",
    "http.user_agent",
    "http.request.headers",
    "http.request.cookies",
    "ip.src.asnum",
    "ip.src",
    "ip.peer",
    "ssl",
];

/// The fields of [`Small`], except that these are not known from the head.
struct Partly(Vec<u16>);

impl FieldScheme for Partly {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        Small.field(name)
    }

    fn names(&self) -> Vec<&'static str> {
        Small.names()
    }

    fn refusal(&self, name: &str) -> Option<String> {
        Small.refusal(name)
    }

    fn read_cost(&self, field: FieldId) -> usize {
        Small.read_cost(field)
    }

    fn is_known_from_head(&self, field: FieldId) -> bool {
        !self.0.contains(&field.0)
    }
}

/// The unknown fields that `picks` selects, with those that are computed from them.
fn unknown(picks: u16) -> Vec<u16> {
    let picked = FIELDS.iter().enumerate();
    let picked = picked.filter(|(at, _)| picks >> at & 1 == 1);
    let mut fields: Vec<u16> = picked.map(|(_, name)| super::id(name)).collect();
    if fields.contains(&super::id("http.request.headers")) {
        fields.push(super::id("http.request.headers.names"));
    }
    fields.push(super::id("http.response.code"));
    fields
}

/// Known fields from `head`, unknown ones from `rest`.
fn joined(head: &Sample, rest: &Sample, unknown: &[u16]) -> Sample {
    fn of<T: Clone>(
        head: &std::collections::BTreeMap<u16, T>,
        rest: &std::collections::BTreeMap<u16, T>,
        unknown: &[u16],
    ) -> std::collections::BTreeMap<u16, T> {
        let known = head.iter().filter(|(field, _)| !unknown.contains(field));
        let later = rest.iter().filter(|(field, _)| unknown.contains(field));
        let pairs = known.chain(later);
        pairs
            .map(|(field, value)| (*field, value.clone()))
            .collect()
    }
    Sample {
        bytes: of(&head.bytes, &rest.bytes, unknown),
        ints: of(&head.ints, &rest.ints, unknown),
        ips: of(&head.ips, &rest.ips, unknown),
        bools: of(&head.bools, &rest.bools, unknown),
        lists: of(&head.lists, &rest.lists, unknown),
    }
}

fn can_hold(source: &str, sample: &Sample, unknown: &[&str]) -> bool {
    let lists = lists();
    let env = ExprEnv {
        scheme: &Partly(unknown.iter().map(|name| super::id(name)).collect()),
        lists: &lists,
        allow_response: true,
    };
    let compiled = predicate(source, &env).unwrap();
    compiled.can_hold(&EvalContext::of(sample))
}

#[test]
fn known_parts_decide_where_they_can() {
    let sample = Sample::default()
        .bytes("http.request.method", b"POST")
        .bytes("http.request.uri.path", b"/login");
    let code = |source: &str| can_hold(source, &sample, &["http.response.code"]);
    assert!(code("http.response.code eq 401"));
    assert!(code("not http.response.code eq 401"));
    assert!(code(
        "http.response.code eq 401 and http.request.method eq \"POST\""
    ));
    assert!(!code(
        "http.response.code eq 401 and http.request.method eq \"GET\""
    ));
    assert!(!code(
        "http.request.method eq \"GET\" and http.response.code eq 401"
    ));
    assert!(!code(
        "not (http.response.code eq 401 or http.request.method eq \"POST\")"
    ));
    assert!(code(
        "http.response.code eq 401 or http.request.method eq \"GET\""
    ));
    assert!(code(
        "http.response.code eq 401 xor http.request.method eq \"POST\""
    ));
    // Known on both sides of the `xor`.
    assert!(!code(
        "(http.response.code eq 401 and http.request.method eq \"GET\") xor http.request.uri.path eq \"/\""
    ));
    assert!(code(
        "(http.response.code eq 401 and http.request.method eq \"GET\") xor http.request.method eq \"POST\""
    ));
}

#[test]
fn functions_and_lists_of_unknown_values_are_unknown() {
    let sample = Sample::default().bytes("http.host", b"shop.example");
    let unknown = ["http.request.cookies", "http.request.method"];
    for source in [
        "lower(http.request.cookies[\"a\"][0]) eq \"x\"",
        "len(http.request.cookies[\"a\"]) gt 3",
        "any(http.request.cookies[\"a\"][*] eq \"x\")",
        "all(http.request.cookies[\"a\"][*] eq \"x\")",
        "any(split(http.host, \".\")[*] eq \"x\" and http.request.method eq \"POST\")",
        "concat(http.host, http.request.method) eq \"x\"",
        "lookup_json_integer(http.request.method, \"a\") eq 1",
        "has_key(http.request.cookies, \"a\")",
        "len(split(http.request.method, \".\")) eq 2",
    ] {
        assert!(can_hold(source, &sample, &unknown), "{source}");
        assert!(!can_hold(source, &sample, &[]), "{source}");
        let turned = format!("not ({source})");
        assert!(can_hold(&turned, &sample, &unknown), "{turned}");
    }
}

proptest! {
    #[test]
    fn a_test_that_may_hold_for_some_values_is_never_ruled_out(
        source in expression(),
        picks in any::<u16>(),
        head in facts(),
        values in prop::collection::vec(facts(), 16),
    ) {
        if source.len() > 4096 { return Ok(()) }
        let (unknown, lists) = (unknown(picks), lists());
        let scheme = Partly(unknown.clone());
        let env = ExprEnv { scheme: &scheme, lists: &lists, allow_response: true };
        let compiled = predicate(&source, &env).unwrap();
        let possible = compiled.can_hold(&EvalContext::of(&head));
        for rest in &values {
            let sample = joined(&head, rest, &unknown);
            let holds = compiled.test(&sample);
            prop_assert!(possible || !holds, "{source}\n{sample:?}");
            // Only the known fields matter.
            prop_assert_eq!(compiled.can_hold(&EvalContext::of(&sample)), possible);
        }
    }
}
