//! With an index and without, the same comes out.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{HeaderStyle, Missing, Op, Plan, Rule, RuleSet, Scope, Step};
use super::{Ask, answered, compile, key, rule};
use crate::decision::Action;

/// What a rule says.
#[derive(Clone, Debug)]
struct Draft {
    count: Option<String>,
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
    fn an_index_changes_no_plan(
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

/// A plan may leave out a look that cannot be told of, whatever the answer is; nothing else.
fn compare(rules: &RuleSet, plain: &Plan, indexed: &Plan, settled: &[Plan]) {
    let mut left = shown(indexed).into_iter().peekable();
    for (step, shown) in plain.steps.iter().zip(shown(plain)) {
        if left.next_if_eq(&shown).is_some() {
            continue;
        }
        let rule = rules.get(step.rule).unwrap();
        assert!(
            step.op == Op::Peek && !step.acts && rule.counts_response(),
            "{shown}"
        );
        let counted = |plan: &Plan| plan.steps.iter().any(|counted| counted.rule == step.rule);
        assert!(!settled.iter().any(counted), "{shown}");
    }
    assert_eq!(left.next(), None);
}

/// The steps with their keys, without the place of a key among others.
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
            scope: match &self.count {
                Some(count) => Scope::Separate {
                    count: compile(count),
                    mitigate,
                },
                None => Scope::Same(mitigate),
            },
            key: key(&["ip.src", "http.request.headers[\"x-k\"]"], Missing::Skip),
            limiter: plain.limiter.filter(|_| self.limited),
            ban: Duration::from_secs(if self.banned { 60 } else { 0 }),
            dry_run: self.dry_run,
            action: self.action,
            headers: self.headers,
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
    (count, expression(), flags, action, headers).prop_map(
        |(count, mitigate, (limited, banned, dry_run), action, headers)| Draft {
            count,
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
    leaf.prop_recursive(3, 12, 3, |inner| {
        let joined = |word: &'static str, inner: BoxedStrategy<String>| {
            prop::collection::vec(inner, 2..4)
                .prop_map(move |parts| format!("({})", parts.join(word)))
        };
        prop_oneof![
            3 => joined(" and ", inner.clone().boxed()),
            2 => joined(" or ", inner.clone().boxed()),
            1 => inner.prop_map(|inner| format!("not ({inner})")),
        ]
    })
}

fn of_text() -> impl Strategy<Value = String> {
    let left = prop::sample::select(
        &[
            "http.request.uri.path",
            "http.request.uri.path",
            "lower(http.request.uri.path)",
            "substring(http.request.uri.path, 0, 3)",
            "http.user_agent",
            "http.request.headers[\"X-K\"][0]",
            "http.request.headers[\"y-k\"][-1]",
            "http.request.cookies[\"s\"][0]",
            "http.request.uri.args[\"q\"][0]",
        ][..],
    );
    (left, "/[ab]{0,2}", "[ab/]{1,2}", 0..9).prop_map(|(left, whole, part, pick)| match pick {
        0 | 1 => format!("{left} eq \"{whole}\""),
        2 => format!("starts_with({left}, \"{whole}\")"),
        3 => format!("{left} contains \"{part}\""),
        4 => format!("ends_with({left}, \"{part}\")"),
        5 => format!("{left} wildcard \"{whole}*{part}\""),
        6 => format!("{left} in {{\"{whole}\" \"/a/b\"}}"),
        7 => format!("{left} matches \"(?i){part}[ab]\""),
        _ => format!("{left} ne \"{whole}\""),
    })
}

fn other() -> impl Strategy<Value = String> {
    (prop::sample::select(&["a", "b", "/"][..]), 0u8..4, 0..6).prop_map(|(part, host, pick)| {
        match pick {
            0 => "http.request.method eq \"POST\"".into(),
            1 => format!("any(http.request.headers[\"x-k\"][*] contains \"{part}\")"),
            2 => format!("ip.src in {{203.0.113.{host}/31 2001:db8::/32}}"),
            3 => format!("ip.src eq 203.0.113.{host}"),
            4 => "http.request.timestamp.sec gt 5".into(),
            _ => format!("any(split(http.request.uri.path, \"/\", 5)[*] eq \"{part}\")"),
        }
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let text =
        || prop::sample::select(&[None, Some("a"), Some("/b"), Some("/aB"), Some("b/a")][..]);
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
    let mut ask = match post {
        true => Ask::post(path),
        false => Ask::get(path),
    };
    ask.client = std::net::IpAddr::from([203, 0, 113, host]);
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
