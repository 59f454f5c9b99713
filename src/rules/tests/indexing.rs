//! Plans are equal with and without an index.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{HeaderStyle, MissingPart, Plan, Rule, RuleScope, RuleSet, Step, StepOp};
use super::{Ask, answered, compile, key, rule};
use crate::decision::Action;

/// The parameters of a generated rule.
#[derive(Clone, Debug)]
struct Draft {
    count: Option<String>,
    /// Only with a count.
    total: Option<String>,
    mitigate: String,
    limited: bool,
    banned: bool,
    dry_run: bool,
    action: Action,
    headers: HeaderStyle,
}

/// What a request is made of.
type Drawn = (
    bool,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
    u8,
);

const STATUSES: [u16; 2] = [200, 401];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_index_never_changes_the_plan(
        drafts in prop::collection::vec(draft(), 1..40),
        asks in prop::collection::vec(drawn(), 1..8),
        least in 1usize..4,
    ) {
        let plain = RuleSet::with_guards(build(&drafts), usize::MAX);
        let indexed = RuleSet::with_guards(build(&drafts), least);
        prop_assert!(plain.planning.is_none());
        for drawn in asks {
            ask(drawn).facts(|facts| {
                let settled = STATUSES.map(|status| {
                    answered(facts, status, |facts| {
                        let (one, other) = (plain.settle(facts, None), indexed.settle(facts, None));
                        assert_eq!(shown(&one), shown(&other), "{drawn:?}");
                        one
                    })
                });
                compare(&plain, &plain.plan(facts), &indexed.plan(facts), &settled);
            });
        }
    }
}

/// An indexed plan may only leave out a peek that no response can show.
fn compare(rules: &RuleSet, plain: &Plan, indexed: &Plan, settled: &[Plan]) {
    let mut left = shown(indexed).into_iter().peekable();
    for (step, shown) in plain.steps.iter().zip(shown(plain)) {
        if left.next_if_eq(&shown).is_some() {
            continue;
        }
        let rule = rules.get(step.rule).unwrap();
        assert!(
            step.op == StepOp::Peek && !step.mitigates && rule.counts_response(),
            "{shown}"
        );
        let counted = |plan: &Plan| plan.steps.iter().any(|counted| counted.rule == step.rule);
        assert!(!settled.iter().any(counted), "{shown}");
    }
    assert_eq!(left.next(), None);
}

/// The steps with their keys, without the position of a key in the plan.
fn shown(plan: &Plan) -> Vec<String> {
    let show = |step: &Step| {
        let bare = Step {
            key: 0..0,
            ..step.clone()
        };
        format!("{bare:?} {:?}", plan.key(step))
    };
    plan.steps.iter().map(show).collect()
}

fn build(drafts: &[Draft]) -> Vec<Rule> {
    drafts.iter().map(Draft::rule).collect()
}

impl Draft {
    fn rule(&self) -> Rule {
        let mitigate = compile(&self.mitigate);
        let plain = rule();
        Rule {
            scope: match (&self.count, &self.total) {
                (Some(count), Some(total)) if self.limited => RuleScope::Share {
                    count: compile(count),
                    total: compile(total),
                    mitigate,
                },
                (Some(count), _) => RuleScope::Separate {
                    count: compile(count),
                    mitigate,
                },
                (None, _) => RuleScope::Same(mitigate),
            },
            key: key(
                &["ip.src", "http.request.headers[\"x-k\"]"],
                MissingPart::Skip,
            ),
            limiter: plain.limiter.filter(|_| self.limited),
            ban: Duration::from_secs(if self.banned { 60 } else { 0 }).into(),
            dry_run: self.dry_run,
            action: self.action,
            // A rule with a ratio sends none.
            headers: match &self.total {
                Some(_) => HeaderStyle::None,
                None => self.headers,
            },
            ..plain
        }
    }
}

fn draft() -> impl Strategy<Value = Draft> {
    let count = prop_oneof![
        2 => Just(None),
        1 => expression().prop_map(Some),
        2 => expression().prop_map(|e| Some(format!("http.response.code eq 401 and ({e})"))),
        1 => expression().prop_map(|e| Some(format!("http.response.code lt 300 or ({e})"))),
    ];
    let total = prop_oneof![
        3 => Just(None),
        1 => expression().prop_map(Some),
        1 => expression().prop_map(|e| Some(format!("http.response.code eq 401 and ({e})"))),
    ];
    let action = prop_oneof![
        8 => Just(Action::Block),
        2 => Just(Action::Log),
        1 => Just(Action::Shadow),
        1 => Just(Action::Allow),
    ];
    let headers = prop_oneof![2 => Just(HeaderStyle::Standard), 1 => Just(HeaderStyle::None)];
    let flags = (
        prop::bool::weighted(0.95),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    ((count, total), expression(), flags, action, headers).prop_map(
        |((count, total), mitigate, (limited, banned, dry_run), action, headers)| Draft {
            count,
            total,
            mitigate,
            limited,
            banned,
            dry_run,
            action,
            headers,
        },
    )
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![3 => of_text(), 1 => other()];
    let tests = leaf.prop_recursive(3, 12, 3, |inner| {
        let joined = |word: &'static str, inner: BoxedStrategy<String>| {
            prop::collection::vec(inner, 2..4)
                .prop_map(move |parts| format!("({})", parts.join(word)))
        };
        prop_oneof![
            3 => joined(" and ", inner.clone().boxed()),
            2 => joined(" or ", inner.clone().boxed()),
            1 => joined(" xor ", inner.clone().boxed()),
            1 => inner.prop_map(|inner| format!("not ({inner})")),
        ]
    });
    // Big sets, joined, may pass what an expression may hold.
    tests.prop_filter("too long", |test| test.len() < 4000)
}

fn of_text() -> impl Strategy<Value = String> {
    let left = prop::sample::select(
        &[
            "http.request.uri.path",
            "http.request.uri.path",
            "lower(http.request.uri.path)",
            "substring(http.request.uri.path, 0, 3)",
            "substring(http.request.uri.path, -2)",
            "substring(upper(http.request.uri.path), 0, -1)",
            "lower(url_decode(http.request.uri.path))",
            "remove_bytes(http.request.uri.path, \"/\")",
            "split(http.request.uri.path, \"/\")[-1]",
            "regex_replace(http.request.uri.path, \"a\", \"b\")",
            "concat(http.request.uri.path, http.user_agent)",
            "http.user_agent",
            "http.request.uri.args.names[-1]",
            "http.request.headers.values[1]",
            "http.request.headers[\"none\"][0]",
            "http.request.headers[\"X-K\"][0]",
            "http.request.headers[\"y-k\"][-1]",
            "http.request.cookies[\"s\"][0]",
            "http.request.uri.args[\"q\"][0]",
        ][..],
    );
    let many: Vec<String> = (70..200).map(|n| format!("\"/{n}\"")).collect();
    let many = many.join(" ");
    (left, "/[ab]{0,2}", "[ab/]{0,2}", 0..16).prop_map(
        move |(left, whole, part, pick)| match pick {
            0 => format!("{left} eq \"{whole}\""),
            1 => format!("{left} ne \"{whole}\""),
            2 => format!("starts_with({left}, \"{whole}\")"),
            3 => format!("{left} contains \"{part}\""),
            4 => format!("ends_with({left}, \"{part}\")"),
            5 => format!("{left} wildcard \"{whole}*{part}\""),
            6 => format!("{left} in {{\"{whole}\" \"/a/b\"}}"),
            7 => format!("{left} matches \"(?i){part}[ab]\""),
            8 => format!("{left} matches \"^(?:{whole}|{part})$\""),
            9 => format!("{left} matches \"(?x) {part} \\b | {whole} .\""),
            10 => format!("{left} matches \"(?-u)({part})?\""),
            11 => format!("{left} in {{{many} \"{whole}\"}}"),
            12 => format!("{left} strict wildcard \"*{part}*\""),
            13 => format!("{left} lt \"{whole}\""),
            14 => format!("{left} in {{\"\" \"{part}\" \"{whole}\"}}"),
            _ => format!("{left} in {{\"{whole}\" \"{}\"}}", whole.repeat(40)),
        },
    )
}

fn other() -> impl Strategy<Value = String> {
    let blocks: Vec<String> = (0..130).map(|n| format!("10.{n}.0.0")).collect();
    let blocks = blocks.join(" ");
    (prop::sample::select(&["a", "b", "/"][..]), 0u8..4, 0..16).prop_map(move |(part, host, pick)| {
        match pick {
            0 => "http.request.method eq \"POST\"".into(),
            1 => format!("any(http.request.headers[\"x-k\"][*] contains \"{part}\")"),
            2 => format!("ip.src in {{203.0.113.{host}/31 2001:db8::/32}}"),
            3 => format!("ip.src eq 203.0.113.{host}"),
            4 => "http.request.timestamp.sec gt 5".into(),
            5 => format!("any(lower(http.request.headers[\"x-k\"][*])[*] eq \"{part}\" xor ssl)"),
            6 => format!("all(http.request.headers[\"x-k\"][*] contains \"{part}\")"),
            7 => format!("has_key(http.request.headers, \"X-K\") and has_value(http.request.uri.args, \"{part}\")"),
            8 => format!("ip.src in {{{blocks} 203.0.113.{host}}}"),
            9 => format!("ip.src in {{::ffff:203.0.113.{host}/127 ::/0}}"),
            10 => "http.request.timestamp.sec in {-9223372036854775808..5 1700000040..9223372036854775807}".into(),
            11 => "http.request.timestamp.sec le -9223372036854775808".into(),
            12 => "any(http.request.uri.args.names[*] wildcard \"Q*\")".into(),
            13 => format!("any(concat(http.request.headers[\"x-k\"], http.request.uri.args[\"q\"])[*] eq \"{part}\")"),
            14 => format!("any(not http.request.headers[\"x-k\"][*] eq \"{part}\")"),
            _ => format!("any(split(http.request.uri.path, \"/\", 5)[*] eq \"{part}\")"),
        }
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let texts = [
        None,
        Some(""),
        Some("a"),
        Some("/b"),
        Some("/aB"),
        Some("b/a"),
        Some("/199"),
        Some("\u{212a}/a"),
    ];
    let text = move || prop::sample::select(texts.to_vec());
    (
        any::<bool>(),
        prop::sample::select(
            &[
                "/",
                "/a",
                "/a/b",
                "/B/a",
                "/ab",
                "/ab/c",
                "/c?q=/a&q=b",
                "/c?Q=/A&q=&q=b",
                "/%41/%C3%A9",
                "/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b",
                "/a?q=/ab",
            ][..],
        ),
        text(),
        text(),
        text(),
        0u8..5,
    )
}

fn ask((post, path, agent, one, cookie, host): Drawn) -> Ask {
    let mut ask = if post {
        Ask::post(path)
    } else {
        Ask::get(path)
    };
    ask.client = std::net::IpAddr::from([203, 0, 113, host]);
    if host == 4 {
        ask.client =
            std::net::IpAddr::V6(std::net::Ipv4Addr::from([203, 0, 113, 2]).to_ipv6_mapped());
    }
    for (name, value) in [
        ("user-agent", agent),
        ("x-k", one),
        ("y-k", agent),
        ("x-k", cookie),
    ] {
        if let Some(value) = value {
            ask = ask.header(name, value);
        }
    }
    match cookie {
        Some(value) => ask.header("cookie", format!("s={value}; t=1")),
        None => ask,
    }
}
