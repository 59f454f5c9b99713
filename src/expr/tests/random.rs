//! Generated input: nothing panics, and the closures agree with the naive walk.

use proptest::prelude::*;

use super::super::set::{IntSet, IpSet};
use super::super::{explain, parse, predicate, scalar};
use super::{Sample, naive, with_env};

/// Pieces that make garbage look like the language.
const PIECES: &[&str] = &[
    "http.host",
    "ip.src",
    "ssl",
    "http.request.headers",
    "[\"x\"]",
    "[*]",
    "[0]",
    "(",
    ")",
    "{",
    "}",
    "\"",
    "\\",
    "r#\"",
    "\"#",
    "eq",
    " and ",
    " or ",
    "not ",
    "!",
    "in ",
    "1..5",
    "10.0.0.0/8",
    "::1",
    "$office",
    "any(",
    "lower(",
    ",",
    " ",
    "matches ",
    "wildcard ",
    "\"a*\"",
    "é",
    "\u{0}",
    "-",
    "0x",
    "strict ",
    "&",
    "true",
    "len(",
];

fn text() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("http.request.method"),
        Just("http.host"),
        Just("http.referer"),
        Just("http.user_agent"),
        Just("http.request.headers[\"A\"][0]"),
        Just("http.request.headers[\"a\"][-1]"),
        Just("http.request.cookies[\"A\"][0]"),
        Just("http.request.headers.names[1]"),
        Just("lower(http.request.headers[\"a\"][*])[0]"),
        Just("decode_base64(http.request.headers[\"a\"][*])[0]"),
        Just("split(http.host, \".\")[0]"),
        Just("split(http.host, \"1\", 2)[-1]"),
        Just("to_string(ip.src.asnum)"),
        Just("to_string(cidr(ip.src, 24, 64))"),
        Just("to_string(ssl)"),
        Just("join(http.request.headers[\"a\"], \"-\")"),
        Just("join(split(http.host, \".\"), \"\")"),
        Just("join(lookup_json_string(http.request.headers[\"a\"][*], 0), \".\")"),
        Just("concat(http.request.headers[\"a\"], http.request.cookies[\"a\"])[1]"),
    ];
    let plain = plain.prop_map(str::to_owned);
    plain.prop_recursive(3, 6, 2, |inner| changed(inner.boxed()))
}

/// Functions of a string that give a string.
fn changed(inner: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    (inner, 0..16, -3i64..4, -3i64..4).prop_map(|(inner, pick, from, to)| match pick {
        0 => format!("lower({inner})"),
        1 => format!("upper({inner})"),
        2 => format!("substring({inner}, {from})"),
        3 => format!("substring({inner}, {from}, {to})"),
        4 => format!("remove_bytes({inner}, \"a.\")"),
        5 => format!("url_decode({inner})"),
        6 => format!("url_decode({inner}, \"ur\")"),
        7 => format!("decode_base64({inner})"),
        8 => format!("lookup_json_string({inner}, \"a\")"),
        9 => format!("lookup_json_string({inner}, {})", from.unsigned_abs()),
        10 => format!("jwt_claim({inner}, \"a\")"),
        11 => format!("regex_replace({inner}, \"(a|1)+(b?)\", \"<${{2}}$$${{1}}>\")"),
        12 => format!("wildcard_replace({inner}, \"*a*.*\", \"${{3}}-${{1}}\")"),
        13 => format!("wildcard_replace({inner}, \"A*\", \"${{1}}a\", \"s\")"),
        14 => format!("concat({inner}, \".\", http.referer, ip.src.asnum)"),
        _ => format!("concat(http.referer, {inner})"),
    })
}

fn many() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("http.request.headers[\"a\"][*]"),
        Just("http.request.headers[*][*]"),
        Just("http.request.headers.names[*]"),
        Just("http.request.cookies[\"b\"][*]"),
        Just("lower(http.request.headers[\"a\"][*])[*]"),
        Just("upper(http.request.headers.names[*])[*]"),
        Just("decode_base64(http.request.headers[\"a\"][*])[*]"),
        Just("lookup_json_string(http.request.cookies[\"b\"][*], \"a\")[*]"),
        Just("concat(http.request.headers[\"a\"][*], \"-\", http.host)[*]"),
        Just("regex_replace(http.request.headers[*][*], \"[ab]\", \"\")[*]"),
        Just("split(http.host, \".\")[*]"),
        Just("split(http.request.headers[\"a\"][0], \"1\", 2)[*]"),
        Just("concat(http.request.headers[\"a\"], http.request.cookies[\"b\"])[*]"),
        Just("concat(lower(http.request.headers[\"a\"][*]), split(http.host, \".\"))[*]"),
    ]
    .prop_map(str::to_owned)
}

/// Tests of many values under one connective: some of one list, some of the request.
fn many_joined() -> impl Strategy<Value = String> {
    let tests = many().prop_flat_map(|list| prop::collection::vec(of_text(Just(list)), 1..4));
    (
        tests,
        prop::option::of(other()),
        0usize..3,
        any::<[bool; 4]>(),
    )
        .prop_map(|(mut tests, beside, logic, turned)| {
            tests.extend(beside);
            let turned = tests.iter().zip(turned);
            let tests: Vec<String> = turned
                .map(|(test, turned)| format!("{}{test}", if turned { "not " } else { "" }))
                .collect();
            tests.join([" and ", " or ", " xor "][logic])
        })
}

/// Compares `left`, a string; literals without letters keep `lower` and `upper` possible.
fn of_text(left: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (left, "[.1]{0,2}", "[ab.1]{0,2}", "[AB*.]{0,4}", 0..15).prop_map(
        |(left, plain, free, wild, pick)| match pick {
            0 => format!("{left} eq \"{plain}\""),
            1 => format!("{left} ne \"{plain}\""),
            2 => format!("{left} contains \"{plain}\""),
            3 => format!("{left} lt \"{free}\""),
            4 => format!("{left} ge \"{free}\""),
            5 => format!("{left} in {{\"{plain}\" \"{free}\" \"ab\" \"AB\"}}"),
            6 => format!("{left} wildcard \"{wild}\""),
            7 => format!("{left} wildcard \"\\*{free}*\""),
            8 => format!("{left} matches \"^{free}[ab]?\""),
            9 => format!("starts_with({left}, \"{free}\")"),
            10 => format!("ends_with({left}, \"{free}\")"),
            11 => format!("lookup_json_integer({left}, \"a\") ge -1"),
            12 => format!("lookup_json_integer({left}, 0) in {{-2..2}}"),
            13 => format!("{left} strict wildcard \"*{plain}*\""),
            _ => format!("len({left}) gt 1"),
        },
    )
}

fn other() -> impl Strategy<Value = String> {
    let int = prop_oneof![Just("ip.src.asnum"), Just("http.response.code")];
    let int = (int, -2i64..4, 0i64..3, 0..6).prop_map(|(left, low, width, pick)| match pick {
        0 => format!("{left} eq {low}"),
        1 => format!("{left} ne {low}"),
        2 => format!("{left} le {low}"),
        3 => format!("{left} in {{{low}..{} 3}}", low + width),
        4 => format!("{left} & {low}"),
        _ => format!("{left} in $networks"),
    });
    let ip = (
        prop_oneof![Just("ip.src"), Just("ip.peer")],
        0u8..4,
        28u8..=32,
        0..5,
    );
    let ip = ip.prop_map(|(left, host, prefix, pick)| match pick {
        0 => format!("{left} eq 10.0.0.{host}"),
        1 => format!("{left} ne 10.0.0.{host}"),
        2 => format!("{left} in {{10.0.0.{host}/{prefix} ::{host}/127}}"),
        3 => format!("{left} in {{::1 10.0.0.{host}..10.0.0.3}}"),
        _ => format!("{left} in $office"),
    });
    let flag = prop_oneof![
        Just("ssl"),
        Just("ssl eq false"),
        Just("ssl ne false"),
        Just("true")
    ];
    let whole = prop_oneof![
        Just("len(http.request.headers[\"a\"]) gt 1"),
        Just("len(split(http.host, \".\")) eq 2"),
        Just("len(concat(http.request.headers[\"a\"], http.request.cookies[\"b\"])) gt 1"),
        Just("len(decode_base64(http.request.headers[\"a\"][*])) eq 1"),
        Just("has_key(http.request.headers, \"A\")"),
        Just("has_key(http.request.cookies, \"A\")"),
        Just("has_value(http.request.headers, \"a\")"),
        Just("has_value(http.request.headers.names, \"a\")"),
        Just("has_value(http.request.cookies[\"b\"], \"\")"),
        Just("has_value(lower(http.request.headers[\"a\"][*]), \"a\")"),
        Just("has_value(split(http.host, \".\"), \"a\")"),
        Just("cidr(ip.src, 30, 64) eq 10.0.0.0"),
        Just("cidr6(ip.peer, 127) eq ::2"),
    ];
    prop_oneof![
        int,
        ip,
        flag.prop_map(str::to_owned),
        whole.prop_map(str::to_owned)
    ]
}

pub(super) fn expression() -> impl Strategy<Value = String> {
    let each = prop_oneof![of_text(many()), many_joined()];
    let each = each.prop_flat_map(|test| {
        prop_oneof![Just(format!("any({test})")), Just(format!("all({test})"))]
    });
    let leaf = prop_oneof![of_text(text()), each, other()];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let joined = |word: &'static str, inner: BoxedStrategy<String>| {
            prop::collection::vec(inner, 2..4).prop_map(move |parts| parts.join(word))
        };
        prop_oneof![
            joined(" and ", inner.clone().boxed()),
            joined(" or ", inner.clone().boxed()),
            joined(" xor ", inner.clone().boxed()),
            inner.clone().prop_map(|inner| format!("not {inner}")),
            inner.prop_map(|inner| format!("({inner})")),
        ]
    })
}

/// A value that some function can make something of.
fn value() -> impl Strategy<Value = String> {
    let json = prop_oneof![
        "\\{\"a\": ?(\"[ab.1]{0,2}\"|-?[1-3]|null|true|1\\.0)\\}",
        "\\[(\"[ab.1]{0,2}\"|-?[1-3]), ?[1-3]\\]",
        "\\{\"a\":\"a\",\"a\":\"\\\\u0062\"\\}",
    ];
    let token = json.clone().prop_map(|json| {
        format!(
            "Bearer e30.{}.x",
            naive::encode(json.as_bytes(), true, false)
        )
    });
    let encoded = json
        .clone()
        .prop_map(|json| naive::encode(json.as_bytes(), false, true));
    prop_oneof![
        8 => "[abAB.1*]{0,4}".boxed(),
        2 => "[ab%+u21064]{0,8}".boxed(),
        2 => json.boxed(),
        1 => token.boxed(),
        1 => encoded.boxed(),
    ]
}

prop_compose! {
    pub(super) fn facts()(
        method in prop::option::of("[abAB.1*]{0,4}"),
        host in prop::option::of(value()),
        agent in prop::option::of(value()),
        headers in prop::collection::vec(("[ab]", value()), 0..4),
        cookies in prop::collection::vec(("[abAB]", value()), 0..3),
        asnum in prop::option::of(-2i64..5),
        code in prop::option::of(-2i64..5),
        src in prop::option::of(0u8..5),
        peer in prop::option::of(0u8..5),
        ssl in prop::option::of(any::<bool>()),
    ) -> Sample {
        let mut sample = Sample::default();
        for (field, values) in [("http.request.headers", &headers), ("http.request.cookies", &cookies)] {
            let pairs: Vec<(&str, &str)> = values.iter().map(|(name, value)| (&**name, &**value)).collect();
            sample = sample.list(field, &pairs);
        }
        let names: Vec<(&str, &str)> = headers.iter().map(|(name, _)| ("", &**name)).collect();
        sample = sample.list("http.request.headers.names", &names);
        if let Some(value) = method { sample = sample.bytes("http.request.method", value.as_bytes()) }
        if let Some(value) = agent { sample = sample.bytes("http.user_agent", value.as_bytes()) }
        if let Some(value) = host { sample = sample.bytes("http.host", value.as_bytes()) }
        if let Some(value) = asnum { sample = sample.int("ip.src.asnum", value) }
        if let Some(value) = code { sample = sample.int("http.response.code", value) }
        if let Some(host) = src { sample = sample.ip("ip.src", &format!("10.0.0.{host}")) }
        if let Some(host) = peer { sample = sample.ip("ip.peer", &format!("::{host}")) }
        if let Some(value) = ssl { sample = sample.bool("ssl", value) }
        sample
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(source in any::<String>()) {
        with_env(|env| {
            let _ = predicate(&source, env);
            let _ = scalar(&source, env);
        });
    }

    #[test]
    fn errors_of_plausible_texts_have_spans_within_the_text(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
    ) {
        let source = pieces.concat();
        let sample = super::request();
        with_env(|env| {
            match predicate(&source, env) {
                Ok(compiled) => {
                    let explained = explain(&source, env, &sample).unwrap();
                    assert_eq!(compiled.test(&sample), explained.holds, "{source}");
                }
                Err(errors) => {
                    assert!(!errors.is_empty());
                    assert!(errors.iter().all(|error| source.get(error.span.clone()).is_some()), "{errors:?}");
                }
            }
            if let Ok(compiled) = scalar(&source, env) { compiled.eval(&sample); }
        });
    }

    #[test]
    fn compiled_expressions_agree_with_a_naive_interpreter(
        source in expression(),
        samples in prop::collection::vec(facts(), 8),
    ) {
        with_env(|env| {
            if source.len() > 4096 { return }
            let compiled = predicate(&source, env).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
            let node = parse::predicate(&source).unwrap();
            for sample in &samples {
                assert_eq!(compiled.test(sample), naive::holds(&node, sample), "{source}\n{sample:?}");
            }
        });
    }

    #[test]
    fn sets_contain_what_their_ranges_contain(
        ranges in prop::collection::vec((0u32..300, 0u32..20), 0..30),
        probe in 0u32..330,
    ) {
        let ranges: Vec<(u32, u32)> = ranges.into_iter().map(|(low, width)| (low, low + width)).collect();
        let expected = ranges.iter().any(|(low, high)| (low..=high).contains(&&probe));
        let ints = IntSet::new(ranges.iter().map(|&(low, high)| (low.into(), high.into())));
        prop_assert_eq!(ints.contains(probe.into()), expected);
        let v4 = |bits: u32| std::net::IpAddr::from(std::net::Ipv4Addr::from_bits(bits));
        let ips = IpSet::new(ranges.iter().map(|&(low, high)| (v4(low), v4(high))));
        prop_assert_eq!(ips.contains(v4(probe)), expected);
        let v6 = |bits: u32| std::net::IpAddr::from(std::net::Ipv6Addr::from_bits(u128::from(bits) << 64));
        let ips = IpSet::new(ranges.iter().map(|&(low, high)| (v6(low), v6(high))));
        prop_assert_eq!(ips.contains(v6(probe)), expected);
    }
}
