//! A thousand rules of the kinds that people write, none of which matches the request that
//! browses the shop. The same rules in every run.

use std::time::Duration;

use lockgate::expr::{self, ExprEnv, NamedLists};
use lockgate::facts::{FieldTable, IpPrefixes};
use lockgate::limit::{Algorithm, Limiter};
use lockgate::rules::{HeaderStyle, Key, KeyPart, MissingPart, Rule, RuleId, RuleScope, RuleSet};

use crate::cases::{Random, predicate};

/// What a rule says, as text.
pub struct Draft {
    /// What is counted; `None`: what is stopped.
    pub count: Option<String>,
    /// What is stopped.
    pub mitigate: String,
    /// Whom it counts.
    pub key: &'static str,
}

/// Words that paths, hosts and values are made of.
const WORDS: &[&str] = &[
    "account", "admin", "api", "auth", "backup", "billing", "cart", "checkout", "comment",
    "config", "coupon", "debug", "download", "export", "feed", "graphql", "import", "internal",
    "invite", "invoice", "login", "logout", "mail", "media", "order", "password", "payment",
    "profile", "report", "reset", "search", "session", "setup", "signup", "status", "token",
    "transfer", "upload", "user", "webhook",
];
const METHODS: &[&str] = &["POST", "PUT", "PATCH", "DELETE"];
const BOTS: &[&str] = &[
    "python-requests",
    "Go-http-client",
    "curl/",
    "Wget",
    "Scrapy",
    "HeadlessChrome",
    "sqlmap",
    "nikto",
    "AhrefsBot",
    "SemrushBot",
    "GPTBot",
    "Bytespider",
    "okhttp",
    "Java/1.8",
    "libwww-perl",
];
const HEADERS: &[&str] = &[
    "x-api-key",
    "x-client",
    "x-tenant",
    "accept-language",
    "x-app-version",
];
const COOKIES: &[&str] = &["session", "plan", "experiment", "theme"];
const ARGUMENTS: &[&str] = &["q", "page", "redirect", "size", "token"];
const COUNTRIES: &[&str] = &["CN", "RU", "KP", "IR", "VN", "BR", "IN", "ID", "NG", "UA"];

/// `count` rules in file order.
pub fn drafts(count: usize) -> Vec<Draft> {
    let mut random = Random(1);
    (0..count).map(|at| draft(at, &mut random)).collect()
}

/// The drafts, compiled.
pub fn set(count: usize) -> RuleSet {
    let drafts = drafts(count).into_iter().enumerate();
    RuleSet::new(drafts.map(|(at, draft)| rule(at, &draft)).collect())
}

/// Of fifty rules, twenty-eight ask for a path first and one has a regular expression.
fn draft(at: usize, r: &mut Random) -> Draft {
    match at % 50 {
        0..8 => plain(format!("{} and {}", method(r), path_is(r))),
        8..13 => plain(path_is(r)),
        13..16 => plain(format!("{} and {}", method(r), prefix(r))),
        16..19 => plain(prefix(r)),
        19..22 => plain(wildcard(r)),
        22..25 => plain(format!(
            "http.host eq \"{}.shop.example\" and {}",
            word(r),
            prefix(r)
        )),
        25..28 => plain(header_is(r)),
        28 => plain(format!(
            "any(http.request.headers[\"x-forwarded-proto\"][*] contains \"{}\")",
            word(r)
        )),
        29..32 => plain(format!(
            "http.request.cookies[\"{}\"][0] eq \"{}-{}\"",
            r.of(COOKIES),
            word(r),
            r.below(100)
        )),
        32..34 => plain(format!(
            "http.user_agent contains \"{}\" and {}",
            r.of(BOTS),
            prefix(r)
        )),
        34 => plain(format!(
            "lower(http.user_agent) contains \"{}bot\"",
            word(r)
        )),
        35 => plain(agent_matches(r)),
        36..39 => plain(addresses(r)),
        39..41 => plain(format!("ip.src.asnum in {{{}}}", numbers(r))),
        41..43 => plain(format!(
            "ip.src.country in {{{}}} and {}",
            countries(r),
            prefix(r)
        )),
        43..45 => plain(argument_is(r)),
        45..48 => by_response(r),
        48 => plain(format!(
            "tls.ja4 in {{\"t13d{:04}h2_{:012x}_0\" \"t12i0\"}}",
            r.below(9999),
            r.next() >> 16
        )),
        _ => plain(odd(r)),
    }
}

fn plain(mitigate: String) -> Draft {
    Draft {
        count: None,
        mitigate,
        key: "ip.src",
    }
}

/// Counts failures and stops the next try.
fn by_response(r: &mut Random) -> Draft {
    let path = path_is(r);
    Draft {
        count: Some(format!("http.response.code in {{401 403 429}} and {path}")),
        mitigate: path,
        key: r.of(&["ip.src", "tls.ja4", "http.request.headers[\"x-api-key\"]"]),
    }
}

fn word(r: &mut Random) -> &'static str {
    r.of(WORDS)
}

fn method(r: &mut Random) -> String {
    format!("http.request.method eq \"{}\"", r.of(METHODS))
}

fn path(r: &mut Random) -> String {
    format!("/{}/{}/{}{}", word(r), word(r), word(r), r.below(10))
}

fn path_is(r: &mut Random) -> String {
    format!("http.request.uri.path eq \"{}\"", path(r))
}

fn prefix(r: &mut Random) -> String {
    format!(
        "starts_with(http.request.uri.path, \"/{}/{}{}/\")",
        word(r),
        word(r),
        r.below(10)
    )
}

fn wildcard(r: &mut Random) -> String {
    format!(
        "http.request.uri.path wildcard \"/{}/*/{}{}\"",
        word(r),
        word(r),
        r.below(10)
    )
}

fn header_is(r: &mut Random) -> String {
    let (name, value) = (r.of(HEADERS), word(r));
    format!(
        "http.request.headers[\"{name}\"][0] eq \"{value}-{}\"",
        r.below(1000)
    )
}

fn argument_is(r: &mut Random) -> String {
    let (name, value) = (r.of(ARGUMENTS), word(r));
    format!(
        "http.request.uri.args[\"{name}\"][0] eq \"{value}{}\"",
        r.below(100)
    )
}

fn agent_matches(r: &mut Random) -> String {
    match r.below(3) {
        0 => format!(
            "http.user_agent matches \"(?i)({}|{})-?(bot|spider)\"",
            word(r),
            word(r)
        ),
        1 => format!("http.user_agent matches \"^{}/[0-9]+\\.[0-9]+$\"", word(r)),
        _ => format!(
            "http.user_agent matches \"{}/(1[0-9]|2[0-4])\\.\"",
            r.of(&["Firefox", "OPR", "Edg"])
        ),
    }
}

fn addresses(r: &mut Random) -> String {
    let mut block = || format!("203.{}.{}.0/24", r.below(256), r.below(256));
    let blocks: Vec<String> = (0..4).map(|_| block()).collect();
    format!("ip.src in {{{}}}", blocks.join(" "))
}

fn numbers(r: &mut Random) -> String {
    let numbers: Vec<String> = (0..6)
        .map(|_| (64_512 + r.below(1000)).to_string())
        .collect();
    numbers.join(" ")
}

fn countries(r: &mut Random) -> String {
    format!("\"{}\" \"{}\"", r.of(COUNTRIES), r.of(COUNTRIES))
}

fn odd(r: &mut Random) -> String {
    match r.below(4) {
        0 => format!(
            "http.request.uri.path.extension in {{\"php\" \"asp\" \"{}\"}}",
            word(r)
        ),
        1 => format!("http.request.body.size gt {}", 1_000_000 + r.below(1000)),
        2 => format!("http.referer contains \"{}.invalid\"", word(r)),
        _ => format!("not ssl and {}", prefix(r)),
    }
}

fn rule(at: usize, draft: &Draft) -> Rule {
    let compile = |text: &str| predicate(text, &NamedLists::new());
    let mitigate = compile(&draft.mitigate);
    let at = u16::try_from(at).unwrap();
    let id = RuleId {
        identity: u64::from(at),
        slot: at,
    };
    let scope = match &draft.count {
        Some(count) => RuleScope::Separate {
            count: compile(count),
            mitigate,
        },
        None => RuleScope::Same(mitigate),
    };
    let minute = Duration::from_secs(60);
    Rule {
        key: key(draft.key),
        limiter: Some(Limiter::new(Algorithm::SlidingWindow, 100, minute)),
        ban: Duration::from_secs(600).into(),
        headers: HeaderStyle::None,
        ..Rule::new(format!("rule-{at}").into(), id, scope)
    }
}

fn key(text: &str) -> Key {
    let lists = NamedLists::new();
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: false,
    };
    let part = KeyPart {
        scalar: expr::scalar(text, &env).unwrap(),
        prefixes: (text == "ip.src").then_some(IpPrefixes { v4: 32, v6: 64 }),
        secret: false,
    };
    Key {
        parts: vec![part],
        missing: MissingPart::Group,
    }
}
