//! Rules and requests as data, for the gateway and the model alike.

use std::net::IpAddr;
use std::time::Duration;

use http::HeaderName;
use lockgate::clock::Timestamp;
use lockgate::decision::Action;
use lockgate::expr::{ExprEnv, NamedLists, predicate, scalar};
use lockgate::facts::{ClientConnection, FieldTable, IpPrefixes, NoGeo, RequestFacts, RequestHead};
use lockgate::limit::{Algorithm, Limiter};
use lockgate::rules::plan::RuleId;
use lockgate::rules::{
    BanLength, CandidateLimit, Key, KeyPart, MissingPart, Rule, RuleCost, RuleScope,
};
use proptest::prelude::*;

/// The period of every rule, in seconds.
pub const PERIOD: u64 = 10;
/// How long a rule holds at the most, in seconds.
pub const MAX_DELAY: u64 = 3;
/// The lengths of bans that escalate, in seconds.
pub const ESCALATE: [u64; 3] = [4, 11, 7];
const STOPS: &[&[&str]] = &[&["/a"], &["/b"], &["/a", "/b"], &["/a", "/b", "/c"]];
const EVERYWHERE: &[&str] = &["/a", "/b", "/c"];
const BANS: &[Bans] = &[Bans::Never, Bans::Never, Bans::For(7), Bans::Escalating];
const BYS: &[By] = &[By::Everybody, By::Address, By::Header, By::HeaderOrSkip];

/// What a rule counts.
#[derive(Clone, Debug)]
pub enum Counts {
    /// What it stops.
    Same,
    /// These paths.
    Paths(&'static [&'static str]),
    /// Answers with 401 at these paths.
    Status401(&'static [&'static str]),
}

/// Whom a rule counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    Everybody,
    Address,
    Header,
    HeaderOrSkip,
}

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Costs {
    Fixed(u64),
    /// What the request says.
    Asked,
    /// What the answer says.
    Answered,
}

/// How long passing the limit bans a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bans {
    Never,
    /// In seconds.
    For(u64),
    Escalating,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Case {
    pub counts: Counts,
    pub stops: &'static [&'static str],
    pub by: By,
    /// `None`: no limit.
    pub limiter: Option<Limiter>,
    pub ban: Bans,
    pub cost: Costs,
    pub action: Action,
    pub dry_run: bool,
    pub candidate: Option<Limiter>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Milliseconds since the one before.
    pub after: u64,
    pub path: &'static str,
    pub client: u8,
    pub header: Option<&'static str>,
    /// What it says that it costs.
    pub cost: Option<i64>,
    /// What the origin answers.
    pub status: u16,
    /// What the origin says that it cost.
    pub answer_cost: Option<&'static str>,
    /// How many other requests come before the answer.
    pub lag: usize,
    /// It is a CORS preflight, which no rule challenges.
    pub is_preflight: bool,
    /// Nobody can be held any more.
    pub crowded: bool,
}

/// Any rule that a configuration may have.
pub fn case() -> impl Strategy<Value = Case> {
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
        1 => Just(Action::Divert),
        2 => Just(Action::Delay),
        2 => Just(Action::Tarpit),
        1 => Just(Action::Close),
        1 => Just(Action::Tag),
        1 => Just(Action::Log),
        1 => Just(Action::Allow),
        2 => Just(Action::Challenge),
    ];
    let cost = prop_oneof![
        6 => Just(Costs::Fixed(1)),
        1 => Just(Costs::Fixed(2)),
        1 => Just(Costs::Asked),
        1 => Just(Costs::Answered),
    ];
    let scope = (counts, prop::sample::select(STOPS));
    let limit = (prop::option::weighted(0.93, limiter()), cost);
    let does = (action, prop::bool::weighted(0.15));
    let tries = prop::option::weighted(0.3, limiter());
    (
        scope,
        prop::sample::select(BYS),
        limit,
        prop::sample::select(BANS),
        does,
        tries,
    )
        .prop_map(|(scope, by, limit, ban, does, candidate)| Case {
            counts: scope.0,
            stops: scope.1,
            by,
            limiter: limit.0,
            ban,
            cost: limit.1,
            action: does.0,
            dry_run: does.1,
            candidate,
        })
        .prop_map(Case::possible)
}

fn limiter() -> impl Strategy<Value = Limiter> {
    let algorithm = prop_oneof![
        4 => Just((Algorithm::SlidingWindow, 1)),
        1 => Just((Algorithm::SlidingWindow, 5)),
        1 => Just((Algorithm::FixedWindow, 1)),
        1 => Just((Algorithm::SlidingLog, 1)),
        1 => Just((Algorithm::TokenBucket, 1)),
        2 => Just((Algorithm::LeakyBucket, 1)),
        1 => Just((Algorithm::Gcra, 1)),
        2 => Just((Algorithm::Concurrency, 1)),
    ];
    (algorithm, 1u64..5, 1u64..7, 0u32..4).prop_map(|((algorithm, slices), limit, burst, queue)| {
        let period = match algorithm {
            Algorithm::Concurrency => Duration::ZERO,
            _ => Duration::from_secs(PERIOD),
        };
        Limiter {
            burst,
            slices,
            queue,
            max_wait: Duration::from_secs(MAX_DELAY),
            ..Limiter::new(algorithm, limit, period)
        }
    })
}

/// Any request.
pub fn ask() -> impl Strategy<Value = Ask> {
    let after = prop_oneof![4 => Just(0u64), 4 => 1u64..1_500, 1 => 1_500u64..15_000];
    let says = prop::sample::select(&[None, Some(-3), Some(0), Some(1), Some(2), Some(9)][..]);
    let costs = prop::sample::select(&[None, Some("2"), Some("0"), Some("many")][..]);
    let answer = (prop::sample::select(&[200u16, 401][..]), costs, 1usize..4);
    (
        after,
        prop::sample::select(&["/a", "/a", "/b", "/c"][..]),
        0u8..2,
        prop::sample::select(&[None, Some(""), Some("k")][..]),
        says,
        answer,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(after, path, client, header, cost, answer, crowded, is_preflight)| Ask {
                after,
                path,
                client,
                header,
                cost,
                status: answer.0,
                answer_cost: answer.1,
                lag: answer.2,
                is_preflight,
                crowded,
            },
        )
}

// === impl Case ===

impl Case {
    /// Without what a configuration may not say: places in flight are never counted late.
    fn possible(mut self) -> Self {
        let late = matches!(self.counts, Counts::Status401(_)) || self.cost == Costs::Answered;
        let limiters = [&mut self.limiter, &mut self.candidate];
        for limiter in limiters.into_iter().flatten() {
            if late && limiter.algorithm == Algorithm::Concurrency {
                let period = Duration::from_secs(PERIOD);
                *limiter = Limiter::new(Algorithm::SlidingWindow, limiter.limit, period);
            }
        }
        self
    }

    pub fn rule(&self, at: usize) -> Rule {
        let name = format!("rule-{at}");
        let id = |slot: usize| RuleId {
            identity: slot as u64,
            slot: slot as u16,
        };
        Rule {
            key: self.key(),
            limiter: self.limiter,
            ban: self.ban.lengths(),
            cost: self.cost.cost(),
            max_delay: Duration::from_secs(MAX_DELAY),
            candidate: self.candidate.map(|limiter| CandidateLimit {
                id: id(1_000 + at),
                limiter,
            }),
            action: self.action,
            dry_run: self.dry_run,
            ..Rule::new(name.into(), id(at), self.scope())
        }
    }

    fn scope(&self) -> RuleScope {
        let compile = |text: &str| predicate(text, &env()).unwrap();
        let mitigate = compile(&any_of(self.stops));
        match self.counts {
            Counts::Same => RuleScope::Same(mitigate),
            Counts::Paths(paths) => RuleScope::Separate {
                count: compile(&any_of(paths)),
                mitigate,
            },
            Counts::Status401(EVERYWHERE) => RuleScope::Separate {
                count: compile("http.response.code eq 401"),
                mitigate,
            },
            Counts::Status401(paths) => RuleScope::Separate {
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
            prefixes: (self.by == By::Address).then_some(IpPrefixes { v4: 32, v6: 64 }),
            secret: false,
        };
        Key {
            parts: text.map(part).into_iter().collect(),
            missing: match self.by {
                By::HeaderOrSkip => MissingPart::Skip,
                _ => MissingPart::Group,
            },
        }
    }
}

// === impl Costs ===

impl Costs {
    fn cost(self) -> RuleCost {
        let asked = r#"lookup_json_integer(http.request.headers["x-asked"][0], "cost")"#;
        match self {
            Costs::Fixed(cost) => RuleCost::Fixed(cost),
            Costs::Asked => RuleCost::Computed(scalar(asked, &env()).unwrap()),
            Costs::Answered => RuleCost::Header(HeaderName::from_static("x-cost")),
        }
    }
}

// === impl Bans ===

impl Bans {
    fn lengths(self) -> BanLength {
        match self {
            Bans::Never => BanLength::Never,
            Bans::For(seconds) => BanLength::For(Duration::from_secs(seconds)),
            Bans::Escalating => BanLength::Escalating(ESCALATE.map(Duration::from_secs).into()),
        }
    }
}

fn any_of(paths: &[&str]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
    format!("http.request.uri.path in {{{}}}", paths.join(" "))
}

fn env() -> ExprEnv<'static> {
    static LISTS: std::sync::LazyLock<NamedLists> = std::sync::LazyLock::new(NamedLists::default);
    ExprEnv {
        scheme: &FieldTable,
        lists: &LISTS,
        allow_response: true,
    }
}

// === impl Ask ===

impl Ask {
    pub fn facts<T>(&self, now: Timestamp, then: impl FnOnce(&RequestFacts<'_>) -> T) -> T {
        let mut request = http::Request::get(self.path).header("host", "a.example");
        if self.is_preflight {
            request = request
                .method("OPTIONS")
                .header("origin", "https://b.example")
                .header("access-control-request-method", "POST");
        }
        if let Some(value) = self.header {
            request = request.header("x-k", value);
        }
        if let Some(cost) = self.cost {
            request = request.header("x-asked", format!("{{\"cost\":{cost}}}"));
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = RequestHead::read(&parts, false).unwrap();
        let connection = ClientConnection {
            peer: "127.0.0.1:1".parse().unwrap(),
            listener: "plain".into(),
            tls: None,
        };
        let client = IpAddr::from([203, 0, 113, self.client]);
        let facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, &NoGeo);
        then(&facts)
    }
}
