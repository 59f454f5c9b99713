//! Instructions and allocations of what runs for every request and every connection, under
//! callgrind and DHAT. `benches/instructions/run` runs it and compares with the goals.
//!
//! Only evaluation is counted. Making the rules and the request, and one evaluation to warm up
//! (a regular expression fills its cache at the first), come before.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "not part of the gateway"
)]

#[allow(dead_code, reason = "shared with other programs")]
mod cases;
#[allow(dead_code, reason = "shared with other programs")]
#[path = "../store/load.rs"]
mod load;
mod rules;

use std::hash::Hasher as _;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use gungraun::{library_benchmark, library_benchmark_group, main};
use lockgate::expr::{FieldFacts, NamedLists, Predicate};
use lockgate::fingerprint::{ClientHello, client_hello, ja3, ja4};
use lockgate::observe::activity::{
    ActionClass, ActivityHub, CoreActivity, DecidedKey, DecisionRecord,
};
use lockgate::rules::plan::{KeyStatus, PlanResult, StepResult};
use lockgate::rules::{Plan, RuleSet};
use lockgate::store::{Store, StoreBounds};
use siphasher::sip128::{Hash128, SipHasher13};

use cases::{Asked, Place, leak};

/// A test and what it looks at.
#[derive(Clone, Copy)]
struct Case {
    predicate: &'static Predicate,
    facts: &'static dyn FieldFacts,
}

/// Rules and what they look at.
#[derive(Clone, Copy)]
struct Crowd {
    rules: &'static RuleSet,
    facts: &'static dyn FieldFacts,
}

/// A store, the plan of a request that one rule counts, and room for what is found.
struct Counted {
    store: &'static Store,
    plan: &'static Plan,
    result: &'static mut PlanResult,
}

/// The recorder of a core, and the plan of a request that several rules count, with its result.
#[derive(Clone, Copy)]
struct Recorder {
    activity: &'static CoreActivity,
    plan: &'static Plan,
    result: &'static PlanResult,
    name: &'static Arc<str>,
}

#[library_benchmark]
#[bench::method_and_prefix(method_and_prefix())]
#[bench::agent_and_address_inside(agent_and_address(cases::CRAWLER, "203.0.113.7", true))]
#[bench::agent_and_address_outside(agent_and_address(cases::CRAWLER, "10.0.0.1", false))]
#[bench::agent_disguised(agent_and_address(cases::DISGUISED, "203.0.113.7", true))]
#[bench::agent_of_a_browser(agent_of_a_browser())]
#[bench::status_and_country(status_and_place(*b"RU", 3320))]
#[bench::status_and_asn(status_and_place(*b"DE", 64501))]
fn reference(case: Case) -> bool {
    case.predicate.test(case.facts)
}

#[library_benchmark]
#[bench::v4_100k(address("100.255.3.9", &cases::blocks_v4(100_000)))]
#[bench::v6_100k(address("2a02:8100:1:2::3", &cases::blocks_v6(100_000)))]
#[bench::strings_100k(agents())]
fn list(case: Case) -> bool {
    case.predicate.test(case.facts)
}

#[library_benchmark]
#[bench::r10(crowd(10))]
#[bench::r100(crowd(100))]
#[bench::r1000(crowd(1000))]
fn plan(crowd: Crowd) -> Plan {
    crowd.rules.plan(crowd.facts)
}

#[library_benchmark]
#[bench::r10(crowd_answered(10))]
#[bench::r100(crowd_answered(100))]
#[bench::r1000(crowd_answered(1000))]
fn settle(crowd: Crowd) -> Plan {
    crowd.rules.settle(crowd.facts, None)
}

// A key that was counted a second before.
#[library_benchmark]
#[bench::sliding_window(counted("sliding_window"))]
#[bench::slices_60(counted("slices_60"))]
#[bench::fixed_window(counted("fixed_window"))]
#[bench::sliding_log(counted("sliding_log"))]
#[bench::token_bucket(counted("token_bucket"))]
#[bench::leaky_bucket(counted("leaky_bucket"))]
#[bench::gcra(counted("gcra"))]
#[bench::concurrency(counted("concurrency"))]
#[bench::ratio(counted("ratio"))]
#[bench::banned(banned())]
fn decision(case: Counted) -> &'static PlanResult {
    let now = load::now().plus(Duration::from_secs(1));
    load::memory(case.store).apply(case.plan, now, case.result);
    case.result
}

// What the gateway remembers of a request: its class and its latency.
#[library_benchmark]
#[bench::request(recorder(1))]
fn record(case: Recorder) {
    let latency = Some(Duration::from_millis(20));
    case.activity.count(ActionClass::Forward, latency);
}

// The keys that a request counts, at a rate at which every request is recorded.
#[library_benchmark]
#[bench::rule(recorder(1))]
#[bench::rules_5(recorder(5))]
fn record_keys(case: Recorder) {
    case.record_keys();
}

// A request of a key that is banned: the figures of the ban, and a decision that has occurred before.
#[library_benchmark]
#[bench::repeated(recorder(1))]
fn record_ban(case: Recorder) {
    case.record_ban();
}

// The cookie of a known client on its first use, which checks the signature.
#[library_benchmark]
#[bench::known_client(known_client())]
fn cookie(case: Case) -> bool {
    case.predicate.test(case.facts)
}

// The whole hash of a key, of which the store makes the second half only where there are bans.
#[library_benchmark]
#[bench::key(SipHasher13::new_with_key(&[7; 16]))]
fn hash(mut hasher: SipHasher13) -> Hash128 {
    hasher.write_u64(7);
    hasher.hash(&[1; 8])
}

// From TLS records to the fingerprint, as for a connection.
#[library_benchmark]
#[bench::chrome(hello("chrome146"))]
#[bench::chrome_android(hello("chrome131_android"))]
#[bench::firefox(hello("firefox147"))]
#[bench::safari(hello("safari260"))]
#[bench::tor(hello("tor145"))]
#[bench::curl(hello("curl"))]
#[bench::openssl(hello("openssl"))]
#[bench::openssl_all(hello("openssl_all"))]
#[bench::python(hello("python"))]
#[bench::node(hello("node"))]
fn ja4_of(records: &'static [u8]) -> Option<String> {
    let message = client_hello(records).ok()?;
    Some(ja4(&ClientHello::parse(&message).ok()?))
}

// From TLS records to the fingerprint, as for a connection.
#[library_benchmark]
#[bench::chrome(hello("chrome146"))]
#[bench::chrome_android(hello("chrome131_android"))]
#[bench::firefox(hello("firefox147"))]
#[bench::safari(hello("safari260"))]
#[bench::tor(hello("tor145"))]
#[bench::curl(hello("curl"))]
#[bench::openssl(hello("openssl"))]
#[bench::openssl_all(hello("openssl_all"))]
#[bench::python(hello("python"))]
#[bench::node(hello("node"))]
fn ja3_of(records: &'static [u8]) -> Option<(String, String)> {
    let message = client_hello(records).ok()?;
    Some(ja3(&ClientHello::parse(&message).ok()?))
}

library_benchmark_group!(
    name = evaluation,
    benchmarks = [reference, list, plan, settle, cookie]
);
library_benchmark_group!(name = store, benchmarks = [decision, hash]);
library_benchmark_group!(
    name = activity,
    benchmarks = [record, record_keys, record_ban]
);
library_benchmark_group!(name = fingerprints, benchmarks = [ja4_of, ja3_of]);
main!(library_benchmark_groups = [evaluation, store, activity, fingerprints]);

// === impl Case ===

impl Case {
    /// Runs it once, and makes sure that it says what is expected.
    fn warm(
        text: &str,
        lists: &NamedLists,
        facts: &'static dyn FieldFacts,
        expected: bool,
    ) -> Case {
        let predicate = leak(cases::predicate(text, lists));
        assert_eq!(predicate.test(facts), expected, "{text}");
        Case { predicate, facts }
    }
}

// === impl Counted ===

impl Counted {
    fn new(store: &'static Store, plan: &'static Plan) -> Counted {
        Counted {
            store,
            plan,
            result: Box::leak(Box::default()),
        }
    }
}

// === impl Recorder ===

impl Recorder {
    fn record_keys(&self) {
        (self.activity).count_keys(self.plan, self.result, || "{}".into());
    }

    fn record_ban(&self) {
        let (step, client) = (&self.plan.steps[0], [192, 0, 2, 1].into());
        let key = self.plan.key(step);
        let by = DecidedKey {
            hash: self.activity.hash_key(step.id, key),
            name: self.name,
            action: "block",
            client,
        };
        let until = load::now().plus(Duration::from_secs(60));
        let seen = (load::now(), client);
        (self.activity).hit_ban(by.hash, (step.id, key), until, seen);
        let record = || decided(self.name);
        self.activity.decide(&by, (b"/login", 429), record);
    }
}

/// A recorder after some requests, so that its buffers have their size and its samples are taken.
fn recorder(rules: usize) -> Recorder {
    let mut rule = load::Rule::throttle("sliding_window", 1_000);
    let mut plan = rule.plan(7).clone();
    let step = plan.steps[0].clone();
    plan.steps.extend(iter::repeat_n(step, rules - 1));
    let within = |step| StepResult::without_counter(step, KeyStatus::Within);
    let result = PlanResult {
        steps: (0..rules as u16).map(within).collect(),
        ..PlanResult::default()
    };
    let recorder = Recorder {
        activity: leak(CoreActivity::new(Arc::new(ActivityHub::new(100)))),
        plan: leak(plan),
        result: leak(result),
        name: leak("rule".into()),
    };
    (0..70).for_each(|_| recorder.record_keys());
    recorder.record_ban();
    recorder
}

fn decided(rule: &Arc<str>) -> DecisionRecord {
    DecisionRecord {
        ts: load::now(),
        id: "".into(),
        client_ip: [192, 0, 2, 1].into(),
        asn: None,
        country: None,
        ja4: None,
        method: "POST".into(),
        host: Box::default(),
        path: Box::default(),
        query: None,
        status: 429,
        user_agent: None,
        rule: Some(rule.clone()),
        action: "block",
        key: None,
        dry_run: false,
        banned: true,
        count: None,
        limit: None,
        repeat: 1,
    }
}

fn method_and_prefix() -> Case {
    let asked = Asked {
        method: "POST",
        uri: "/api/orders?page=1",
        ..Asked::browsing()
    };
    Case::warm(
        cases::METHOD_AND_PREFIX,
        &NamedLists::new(),
        asked.facts(),
        true,
    )
}

/// The regular expression matches, so that the address is looked up too.
fn agent_and_address(agent: &'static str, client: &str, expected: bool) -> Case {
    let asked = Asked {
        agent,
        client: client.parse().unwrap(),
        ..Asked::browsing()
    };
    Case::warm(
        cases::AGENT_AND_ADDRESS,
        &thousand(),
        asked.facts(),
        expected,
    )
}

/// The regular expression reads a browser's user agent to its end and does not match.
fn agent_of_a_browser() -> Case {
    let facts = Asked::browsing().facts();
    Case::warm(cases::AGENT_AND_ADDRESS, &thousand(), facts, false)
}

fn thousand() -> NamedLists {
    let mut blocks = cases::blocks_v4(999);
    blocks.push("203.0.113.0/24".to_owned());
    cases::lists("blocks", &blocks)
}

fn status_and_place(country: [u8; 2], asn: u32) -> Case {
    let asked = Asked {
        place: Place { asn, country },
        ..Asked::browsing()
    };
    let facts = cases::answered(asked.facts(), 403);
    Case::warm(cases::STATUS_AND_PLACE, &NamedLists::new(), facts, true)
}

fn address(client: &str, blocks: &[String]) -> Case {
    let lists = cases::lists("blocks", blocks);
    let asked = Asked {
        client: client.parse().unwrap(),
        ..Asked::browsing()
    };
    Case::warm("ip.src in $blocks", &lists, asked.facts(), false)
}

fn agents() -> Case {
    let lists = cases::lists("agents", &cases::strings(100_000));
    let facts = Asked::browsing().facts();
    Case::warm("http.user_agent in $agents", &lists, facts, false)
}

/// The test has run before, on another request: each checks its cookie once.
fn known_client() -> Case {
    let (text, credentials) = ("client.known", cases::credentials());
    let known = || Asked::browsing().known(credentials);
    let case = Case::warm(text, &NamedLists::new(), known(), true);
    Case {
        facts: known(),
        ..case
    }
}

fn crowd(count: usize) -> Crowd {
    let (rules, facts) = (leak(rules::set(count)), Asked::browsing().facts());
    let matches = || !rules.plan(facts).steps.is_empty();
    // What is read often is kept after a few looks.
    assert!(!(0..8).any(|_| matches()), "a rule matches");
    Crowd { rules, facts }
}

fn crowd_answered(count: usize) -> Crowd {
    let (rules, facts) = (leak(rules::set(count)), Asked::browsing().facts());
    let facts = cases::answered(facts, 403);
    let matches = || !rules.settle(facts, None).steps.is_empty();
    assert!(!(0..8).any(|_| matches()), "a rule matches");
    Crowd { rules, facts }
}

/// A thousand keys, one of which comes again.
fn counted(algorithm: &str) -> Counted {
    let store = store();
    let mut rule = load::Rule::throttle(algorithm, 1_000);
    for key in (0..1_000).chain([500; 3]) {
        rule.ask(load::memory(store), key, load::now());
    }
    let plan = leak(rule.plan(500).clone());
    Counted::new(store, plan)
}

/// The secret is always the same, because where a key lies in its bucket, or in which of its two, is
/// seen in the count.
fn store() -> &'static Store {
    leak(Store::memory(StoreBounds::keys(2_000)).keyed(&[7; 32]))
}

fn banned() -> Counted {
    let store = store();
    let mut rule = load::Rule::ban();
    for key in (0..400).chain([300]) {
        rule.ask(load::memory(store), key, load::now());
    }
    let plan = leak(rule.plan(300).clone());
    Counted::new(store, plan)
}

fn hello(name: &str) -> &'static [u8] {
    let records = leak(cases::hello(name));
    assert!(ja3_of_hello(records), "{name} is no hello");
    records
}

fn ja3_of_hello(records: &[u8]) -> bool {
    let message = client_hello(records);
    message.is_ok_and(|message| ClientHello::parse(&message).is_ok())
}
