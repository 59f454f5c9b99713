//! Random rules and requests: plan, store, decide and settle against a naive model that is written
//! straight from the sentences of the contract.

mod naive;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::decision::{Action, Decision, Verdict};
use lockgate::expr::{Env, Lists, predicate, scalar};
use lockgate::facts::{Connection, Fields, Head, NoGeo, Prefixes, RequestFacts, ResponseFacts};
use lockgate::limit::{Algorithm, Limiter};
use lockgate::rules::{Key, KeyPart, Missing, Rule, RuleSet, Scope};
use lockgate::store::memory::Memory;
use proptest::prelude::*;

use self::naive::{Naive, Outcome};

/// The period of every rule, in seconds.
const PERIOD: u64 = 10;
const STOPS: &[&[&str]] = &[&["/a"], &["/b"], &["/a", "/b"], &["/a", "/b", "/c"]];
const EVERYWHERE: &[&str] = &["/a", "/b", "/c"];
const BYS: &[By] = &[By::Everybody, By::Address, By::Header, By::HeaderOrSkip];

/// What a rule counts.
#[derive(Clone, Debug)]
enum Counts {
    /// What it stops.
    Same,
    /// These paths.
    Paths(&'static [&'static str]),
    /// Answers with 401 at these paths.
    Status401(&'static [&'static str]),
}

/// Whom a rule counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Everybody,
    Address,
    Header,
    HeaderOrSkip,
}

/// A rule as data, for the gateway and the model alike.
#[derive(Clone, Debug)]
struct Case {
    counts: Counts,
    stops: &'static [&'static str],
    by: By,
    /// Zero: no limit.
    limit: u64,
    /// In seconds.
    ban: u64,
    action: Action,
    dry_run: bool,
}

/// A request as data.
#[derive(Clone, Debug)]
struct Ask {
    /// Milliseconds since the one before.
    after: u64,
    path: &'static str,
    client: u8,
    header: Option<&'static str>,
    /// What the origin answers.
    status: u16,
    /// How many other requests come before the answer.
    lag: usize,
}

/// The gateway's rules on a real store.
struct Gateway {
    rules: RuleSet,
    store: Memory,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rules_decide_as_the_sentences_say(
        // The more are enough for an index.
        cases in prop_oneof![
            3 => prop::collection::vec(case(), 2..=4),
            1 => prop::collection::vec(case(), 10..=20),
        ],
        asks in prop::collection::vec(ask(), 1..60),
    ) {
        let gateway = Gateway::new(&cases);
        let mut naive = Naive::new(cases);
        let mut pending = VecDeque::new();
        let mut now = Timestamp::from_secs(1_700_000_040);
        for ask in asks {
            now = now.plus(Duration::from_millis(ask.after));
            let decided = gateway.decide(&ask, now);
            let expected = naive.decide(&ask, now);
            pending.push_back((ask.lag, ask, decided, expected));
            for (lag, ..) in &mut pending {
                *lag = lag.saturating_sub(1);
            }
            while pending.front().is_some_and(|(lag, ..)| *lag == 0) {
                let Some((_, ask, mut decided, mut expected)) = pending.pop_front() else {
                    break;
                };
                gateway.settle(&ask, &mut decided, now);
                naive.settle(&ask, &mut expected, now);
                prop_assert_eq!(Outcome::of(&decided), expected, "{:?}", ask);
            }
        }
    }
}

fn case() -> impl Strategy<Value = Case> {
    let counts = prop_oneof![
        3 => Just(Counts::Same),
        2 => Just(Counts::Paths(&["/a"])),
        1 => Just(Counts::Paths(&["/b", "/c"])),
        1 => Just(Counts::Status401(EVERYWHERE)),
        1 => Just(Counts::Status401(&["/b"])),
    ];
    let action = prop_oneof![
        5 => Just(Action::Block),
        2 => Just(Action::Shadow),
        2 => Just(Action::Log),
        1 => Just(Action::Allow),
    ];
    (
        counts,
        prop::sample::select(STOPS),
        prop::sample::select(BYS),
        prop_oneof![1 => Just(0u64), 12 => 1u64..5],
        prop::sample::select(&[0u64, 0, 7, 25][..]),
        (action, prop::bool::weighted(0.15)),
    )
        .prop_map(|(counts, stops, by, limit, ban, (action, dry_run))| Case {
            counts,
            stops,
            by,
            limit,
            ban,
            action,
            dry_run,
        })
}

fn ask() -> impl Strategy<Value = Ask> {
    let after = prop_oneof![4 => Just(0u64), 4 => 1u64..1_500, 1 => 1_500u64..15_000];
    (
        after,
        prop::sample::select(&["/a", "/a", "/b", "/c"][..]),
        0u8..2,
        prop::sample::select(&[None, Some(""), Some("k")][..]),
        prop::sample::select(&[200u16, 401][..]),
        1usize..4,
    )
        .prop_map(|(after, path, client, header, status, lag)| Ask {
            after,
            path,
            client,
            header,
            status,
            lag,
        })
}

// === impl Gateway ===

impl Gateway {
    fn new(cases: &[Case]) -> Self {
        let store = Memory::new(lockgate::store::Bounds::keys(10_000));
        let rules = cases.iter().enumerate();
        let rules = rules.map(|(at, case)| case.rule(at, &store)).collect();
        Self {
            rules: RuleSet::new(rules),
            store,
        }
    }

    fn decide(&self, ask: &Ask, now: Timestamp) -> Decision {
        ask.facts(now, |facts| {
            let plan = self.rules.plan(facts);
            let findings = self.store.apply(&plan, now);
            let mut decision = self.rules.decide(&plan, &findings, now);
            if let Some(full) = self.rules.look_again(&plan, &findings, &decision) {
                let found = self.store.apply(&full, now);
                self.rules.lengthen(&mut decision, &found, now);
            }
            decision
        })
    }

    /// As the pipeline does: only what was forwarded is counted once it is answered.
    fn settle(&self, ask: &Ask, decision: &mut Decision, now: Timestamp) {
        if decision.verdict != Verdict::Forward {
            return;
        }
        let headers = http::HeaderMap::new();
        let response = ResponseFacts {
            status: ask.status,
            headers: &headers,
            duration_ms: 0,
            body_size: None,
            upstream: None,
            upstream_error: None,
        };
        ask.facts(now, |facts| {
            let counted = facts.with_response(&response);
            let plan = self.rules.settle(&counted, decision.settle_before);
            self.rules.settled(decision, &plan);
            self.store.apply(&plan, now);
        });
    }
}

// === impl Case ===

impl Case {
    fn rule(&self, at: usize, store: &Memory) -> Rule {
        let name = format!("rule-{at}");
        let id = store.register(at as u64, &name);
        let period = Duration::from_secs(PERIOD);
        let limiter = Limiter::new(Algorithm::SlidingWindow, self.limit, period);
        Rule {
            key: self.key(),
            limiter: (self.limit > 0).then_some(limiter),
            ban: Duration::from_secs(self.ban).into(),
            action: self.action,
            dry_run: self.dry_run,
            ..Rule::new(name.into(), id, self.scope())
        }
    }

    fn scope(&self) -> Scope {
        let compile = |text: &str| predicate(text, &env()).unwrap();
        let mitigate = compile(&any_of(self.stops));
        match self.counts {
            Counts::Same => Scope::Same(mitigate),
            Counts::Paths(paths) => Scope::Separate {
                count: compile(&any_of(paths)),
                mitigate,
            },
            Counts::Status401(EVERYWHERE) => Scope::Separate {
                count: compile("http.response.code eq 401"),
                mitigate,
            },
            Counts::Status401(paths) => Scope::Separate {
                count: compile(&format!("http.response.code eq 401 and {}", any_of(paths))),
                mitigate,
            },
        }
    }

    fn key(&self) -> Key {
        let text = match self.by {
            By::Everybody => None,
            By::Address => Some("ip.src"),
            By::Header | By::HeaderOrSkip => Some(r#"http.request.headers["x-k"]"#),
        };
        let part = |text| KeyPart {
            scalar: scalar(text, &env()).unwrap(),
            prefixes: (self.by == By::Address).then_some(Prefixes { v4: 32, v6: 64 }),
            secret: false,
        };
        Key {
            parts: text.map(part).into_iter().collect(),
            missing: match self.by {
                By::HeaderOrSkip => Missing::Skip,
                _ => Missing::Group,
            },
        }
    }
}

fn any_of(paths: &[&str]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
    format!("http.request.uri.path in {{{}}}", paths.join(" "))
}

fn env() -> Env<'static> {
    static LISTS: std::sync::LazyLock<Lists> = std::sync::LazyLock::new(Lists::default);
    Env {
        scheme: &Fields,
        lists: &LISTS,
        allow_response: true,
    }
}

// === impl Ask ===

impl Ask {
    fn facts<T>(&self, now: Timestamp, then: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
        let mut request = http::Request::get(self.path).header("host", "a.example");
        if let Some(value) = self.header {
            request = request.header("x-k", value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = Head::read(&parts, false).unwrap();
        let connection = Connection {
            peer: "127.0.0.1:1".parse().unwrap(),
            listener: "plain".into(),
            tls: None,
        };
        let client = IpAddr::from([203, 0, 113, self.client]);
        let facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, &NoGeo);
        then(&facts)
    }
}
