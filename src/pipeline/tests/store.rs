//! Requests on a store that is down, slow, loses replies or runs on another clock: over real sockets, and through
//! the engine alone where a test steers one store call.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::Poll;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::*;
use crate::action::QuotaNames;
use crate::clock::{ManualClock, Timestamp};
use crate::decision::Decision;
use crate::expr::{ExprEnv, NamedLists, Predicate, predicate};
use crate::facts::{FieldTable, NoGeo, ResponseFacts};
use crate::limit::{Algorithm, Limiter};
use crate::pipeline::engine::{Engine, Evaluation, ResponsePhase};
use crate::rules::plan::BanLength;
use crate::rules::{OnStoreFailure, Rule, RuleId, RuleScope, RuleSet};
use crate::store::{OnSettled, Store, StoreBounds, StoreHandle};

const MINUTE: Duration = Duration::from_secs(60);
/// The start of a minute.
const NOW: Timestamp = Timestamp::from_secs(1_700_000_040);
/// Longer than any loaded machine takes for a request.
const LONG: Duration = Duration::from_secs(10);

/// A gateway of one core, on a store that fails on demand.
struct TestGateway {
    core: Rc<CoreState>,
    address: SocketAddr,
}

/// What a client receives.
struct Received {
    status: u16,
    head: String,
}

// === impl TestGateway ===

impl TestGateway {
    /// Runs `test` on a gateway that has one rule.
    fn run(rule: Rule, clock: Clock, test: impl AsyncFnOnce(&Self)) {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockgate-store-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("gateway.toml");
        std::fs::write(&config, CONFIG).unwrap();
        let (mut process, mut snapshot) = load(&config, clock);
        process.store = Arc::new(Store::faulty(StoreBounds::keys(1000)));
        snapshot.rules = RuleSet::new(vec![rule]);
        snapshot.quota_names = QuotaNames::of(&snapshot.rules);
        let live = Arc::new(live(process, snapshot));
        let runtime = tokio::runtime::LocalRuntime::new().unwrap();
        runtime.block_on(async {
            let gateway = Self::start(live).await;
            test(&gateway).await;
        });
        std::fs::remove_dir_all(&folder).unwrap();
    }

    async fn start(live: Arc<RunningGateway>) -> Self {
        let (drain, gate) = (DrainTrigger::default().core(), ConnectionLimit::new(100));
        let pool = Pool::new(Clock::System);
        let timers = ConnectionTimers::spawn(drain.clone(), |_| {});
        let core = Rc::new(CoreState::new(live, drain.clone(), pool, timers));
        tokio::task::spawn_local(core.store.clone().run());
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let accepting = core.clone();
        tokio::task::spawn_local(async move {
            loop {
                let (tcp, peer) = socket.accept().await.unwrap();
                let listener = accepting.snapshot().listeners[0].clone();
                let permit = gate.try_enter(&drain).unwrap();
                let connection = connection(accepting.clone(), listener, tcp, peer, permit);
                tokio::task::spawn_local(connection);
            }
        });
        Self { core, address }
    }

    fn store(&self) -> &Store {
        self.core.store.store()
    }

    /// Sends a request and reads the response to the end of the connection.
    async fn get(&self) -> Received {
        let mut client = self.send().await;
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        Received {
            status,
            head: response.to_ascii_lowercase(),
        }
    }

    async fn send(&self) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        client
    }

    async fn statuses<const N: usize>(&self) -> [u16; N] {
        let mut statuses = [0; N];
        for status in &mut statuses {
            *status = self.get().await.status;
        }
        statuses
    }
}

/// A rule that throttles all requests together.
fn rule(limiter: Limiter, on_store_failure: OnStoreFailure) -> Rule {
    let id = RuleId {
        identity: 1,
        slot: 1,
    };
    Rule {
        limiter: Some(limiter),
        on_store_failure,
        ..Rule::new(
            "rule".into(),
            id,
            RuleScope::Same(compile("ip.src ne 192.0.2.1")),
        )
    }
}

fn compile(text: &str) -> Predicate {
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &NamedLists::default(),
        allow_response: true,
    };
    predicate(text, &env).unwrap()
}

fn one_a_minute() -> Limiter {
    Limiter::new(Algorithm::FixedWindow, 1, MINUTE)
}

fn one_in_flight() -> Limiter {
    Limiter::new(Algorithm::Concurrency, 1, MINUTE)
}

#[test]
fn each_rule_chooses_its_behaviour_during_a_store_outage() {
    for (on_failure, expected) in [
        (OnStoreFailure::Local, [200, 429]),
        (OnStoreFailure::Open, [200, 200]),
        (OnStoreFailure::Closed, [503, 503]),
    ] {
        TestGateway::run(
            rule(one_a_minute(), on_failure),
            Clock::System,
            async |gateway| {
                let is_down = &gateway.store().faults().is_down;
                is_down.store(true, Ordering::SeqCst);
                assert_eq!(gateway.statuses().await, expected, "{on_failure:?}");
            },
        );
    }
}

#[test]
fn a_slot_that_was_taken_without_the_store_is_released() {
    let rule = rule(one_in_flight(), OnStoreFailure::Local);
    TestGateway::run(rule, Clock::System, async |gateway| {
        let is_down = &gateway.store().faults().is_down;
        is_down.store(true, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [200, 200, 200]);
    });
}

#[test]
fn a_deny_rule_needs_no_store() {
    let deny = Rule {
        limiter: None,
        ..rule(one_a_minute(), OnStoreFailure::Closed)
    };
    TestGateway::run(deny, Clock::System, async |gateway| {
        let faults = gateway.store().faults();
        faults.is_down.store(true, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [429]);
        assert_eq!(faults.calls.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_store_decides_again_after_an_outage() {
    let rule = rule(
        Limiter::new(Algorithm::FixedWindow, 100, MINUTE),
        OnStoreFailure::Closed,
    );
    TestGateway::run(rule, Clock::System, async |gateway| {
        let is_down = &gateway.store().faults().is_down;
        is_down.store(true, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [503]);
        is_down.store(false, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [200, 200]);
    });
}

#[test]
fn a_request_does_not_wait_for_a_slow_store() {
    let rule = rule(one_a_minute(), OnStoreFailure::Closed);
    TestGateway::run(rule, Clock::System, async |gateway| {
        let latency = &gateway.store().faults().latency;
        latency.store(60_000, Ordering::SeqCst);
        let began = Instant::now();
        assert_eq!(gateway.statuses().await, [503]);
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    });
}

#[test]
fn a_plan_whose_reply_is_lost_has_counted() {
    let rule = rule(one_a_minute(), OnStoreFailure::Closed);
    TestGateway::run(rule, Clock::Manual(ManualClock::at(NOW)), async |gateway| {
        let lost = &gateway.store().faults().lost_replies;
        lost.store(1, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [503, 429]);
    });
}

#[test]
fn a_disconnect_frees_the_slot_for_the_next_client() {
    let rule = rule(one_in_flight(), OnStoreFailure::Closed);
    TestGateway::run(rule, Clock::System, async |gateway| {
        let faults = gateway.store().faults();
        faults.lost_replies.store(1, Ordering::SeqCst);
        let client = gateway.send().await;
        while faults.calls.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        drop(client);
        // A lease that is not released would expire after thirty seconds.
        let began = Instant::now();
        while gateway.get().await.status != 200 {
            assert!(began.elapsed() < LONG, "the lease was not released");
            sleep(Duration::from_millis(10)).await;
        }
        // A request that has ended leaves its slot too.
        while gateway.get().await.status != 200 {
            assert!(began.elapsed() < LONG, "the lease was not released");
            sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn the_decision_uses_the_clock_of_the_store() {
    let clock = || Clock::Manual(ManualClock::at(NOW));
    let throttle = rule(one_a_minute(), OnStoreFailure::Closed);
    TestGateway::run(throttle, clock(), async |gateway| {
        gateway
            .store()
            .faults()
            .skew
            .store(40_000, Ordering::SeqCst);
        assert_eq!(gateway.get().await.status, 200);
        let refused = gateway.get().await;
        assert_eq!(refused.status, 429);
        assert!(
            refused.head.contains("\r\nretry-after: 20\r\n"),
            "{}",
            refused.head
        );
    });
    let ban = Rule {
        ban: BanLength::For(Duration::from_secs(600)),
        ..rule(one_a_minute(), OnStoreFailure::Closed)
    };
    TestGateway::run(ban, clock(), async |gateway| {
        let skew = &gateway.store().faults().skew;
        skew.store(3_600_000, Ordering::SeqCst);
        assert_eq!(gateway.statuses().await, [200, 429]);
        skew.store(3_700_000, Ordering::SeqCst);
        let refused = gateway.get().await;
        assert!(
            refused.head.contains("\r\nretry-after: 500\r\n"),
            "{}",
            refused.head
        );
        skew.store(4_200_000, Ordering::SeqCst);
        assert_eq!(gateway.get().await.status, 200, "the ban is over");
    });
}

/// Decides about a request through the engine alone.
async fn decide(
    store: &Rc<StoreHandle>,
    rules: &RuleSet,
    evaluation: &mut Evaluation,
    decision: &mut Decision,
) {
    with_facts(async |facts| {
        let engine = Engine { rules, store };
        engine.decide(facts, NOW, evaluation, decision).await;
    })
    .await;
}

async fn with_facts(then: impl AsyncFnOnce(&RequestFacts<'_>)) {
    let request = Request::get("/").header("host", "a").body(()).unwrap();
    let parts = request.into_parts().0;
    let head = RequestHead::read(&parts, false).unwrap();
    let connection = ClientConnection {
        peer: SocketAddr::from(([192, 0, 2, 7], 7)),
        listener: "".into(),
        tls: None,
    };
    let client = connection.peer.ip();
    let facts = RequestFacts::new(&head, &parts.headers, &connection, client, NOW, &NoGeo);
    then(&facts).await;
}

/// Settles a response with status 401, which only queues it.
async fn settle_401(
    store: &Rc<StoreHandle>,
    rules: &RuleSet,
    on_settled: impl FnOnce() -> OnSettled,
) {
    with_facts(async |facts| {
        let response = ResponseFacts {
            status: 401,
            headers: &HeaderMap::new(),
            duration_ms: 0,
            body_size: None,
            upstream: None,
            upstream_error: None,
        };
        let phase = ResponsePhase {
            facts: &facts.with_response(&response),
            countable: true,
            now: NOW,
        };
        let (mut settlement, mut decision) = (Evaluation::default(), Decision::default());
        let engine = Engine { rules, store };
        let settled = engine.settle(&phase, &mut settlement, &mut decision, on_settled);
        assert!(!settled, "it is only queued");
    })
    .await;
}

fn handle() -> Rc<StoreHandle> {
    let store = Arc::new(Store::faulty(StoreBounds::keys(1000)));
    StoreHandle::new(store, Clock::Manual(ManualClock::at(NOW)))
}

#[tokio::test]
async fn a_disconnect_during_the_store_call_releases_its_slot() {
    let (store, rules) = (
        handle(),
        RuleSet::new(vec![rule(one_in_flight(), OnStoreFailure::Closed)]),
    );
    let faults = store.store().faults();
    faults.lost_replies.store(1, Ordering::SeqCst);
    let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
    {
        let mut deciding = Box::pin(decide(&store, &rules, &mut evaluation, &mut decision));
        let is_pending = poll_fn(|cx| Poll::Ready(deciding.as_mut().poll(cx).is_pending()));
        assert!(is_pending.await);
    }
    // The client disconnects: the request is dropped with all that it holds.
    drop(evaluation);
    for expected in [false, true] {
        let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
        decide(&store, &rules, &mut evaluation, &mut decision).await;
        assert_eq!(decision.verdict == Verdict::Forward, expected);
        store.send_queued().await;
    }
}

#[tokio::test]
async fn responses_are_counted_in_the_background_and_dropped_if_the_queue_is_full() {
    const QUEUE: u64 = 1024;
    let id = RuleId {
        identity: 1,
        slot: 1,
    };
    let scope = RuleScope::Separate {
        count: compile("http.response.code eq 401"),
        mitigate: compile("ip.src ne 192.0.2.1"),
    };
    let rules = RuleSet::new(vec![Rule {
        limiter: Some(Limiter::new(Algorithm::FixedWindow, QUEUE - 1, MINUTE)),
        ..Rule::new("rule".into(), id, scope)
    }]);
    let store = handle();
    let settled = Rc::new(AtomicU64::new(0));
    let on_settled = || -> OnSettled {
        let settled = settled.clone();
        Box::new(move |_, _| {
            settled.fetch_add(1, Ordering::SeqCst);
        })
    };
    for _ in 0..QUEUE + 3 {
        settle_401(&store, &rules, on_settled).await;
    }
    assert_eq!(store.store().faults().calls.load(Ordering::SeqCst), 0);
    assert_eq!(store.store().settle_dropped(), 3);
    let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
    decide(&store, &rules, &mut evaluation, &mut decision).await;
    assert_eq!(decision.verdict, Verdict::Forward);
    store.send_queued().await;
    assert_eq!(settled.load(Ordering::SeqCst), QUEUE);
    let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
    decide(&store, &rules, &mut evaluation, &mut decision).await;
    assert!(matches!(decision.verdict, Verdict::Block { .. }));
}

#[tokio::test]
async fn a_response_that_the_store_cannot_count_is_counted_locally() {
    let store = handle();
    store.store().faults().is_down.store(true, Ordering::SeqCst);
    for (on_failure, expected) in [(OnStoreFailure::Local, false), (OnStoreFailure::Open, true)] {
        let scope = RuleScope::Separate {
            count: compile("http.response.code eq 401"),
            mitigate: compile("ip.src ne 192.0.2.1"),
        };
        let rules = RuleSet::new(vec![Rule {
            scope,
            ..rule(one_a_minute(), on_failure)
        }]);
        settle_401(&store, &rules, || Box::new(|_, _| {})).await;
        store.send_queued().await;
        let (mut evaluation, mut decision) = (Evaluation::default(), Decision::default());
        decide(&store, &rules, &mut evaluation, &mut decision).await;
        let is_forwarded = decision.verdict == Verdict::Forward;
        assert_eq!(is_forwarded, expected, "{on_failure:?}");
    }
}
