//! What the gateway remembers for the admin API stays within its bounds, whatever clients send. Each test fills one part
//! several times over and prints what it holds then; `docs/limits.md` has the figures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use lockgate::clock::{Clock, Timestamp};
use lockgate::observe::activity::{
    ActionClass, ActivityHub, BanCause, BanStart, ClientQuery, CoreActivity, DecidedKey,
    DecisionFilter, DecisionRecord, MAX_TEXT, Marker, MarkerKind, RequestSample, RuleFigures, STEP,
    TickInput,
};
use lockgate::rules::BanId;
use lockgate::rules::plan::{Plan, PlanResult, RuleId};

use crate::load::Rule;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);
const RULES: u16 = 100;
/// The streams that the admin port serves at most.
const STREAMS: u16 = 16;
/// The bans of a store with the default `max_keys`.
const MOST_BANS: usize = 250_000;
const KIB: i64 = 1 << 10;

/// A hub with one core.
struct Stage {
    hub: Arc<ActivityHub>,
    core: CoreActivity,
    started: Instant,
    seconds: u32,
}

// === impl Stage ===

impl Stage {
    fn new(max_bans: usize) -> Self {
        let hub = Arc::new(ActivityHub::new(max_bans));
        Self {
            core: CoreActivity::new(hub.clone()),
            hub,
            started: Clock::System.instant(),
            seconds: 0,
        }
    }

    /// Fills a new stage and returns it with the bytes that it holds.
    fn filled(max_bans: usize, fill: impl FnOnce(&mut Self)) -> (Self, i64) {
        let mut filled = None;
        let taken = measure(|| {
            let mut stage = Self::new(max_bans);
            fill(&mut stage);
            // A batch has space for as many keys as the one before.
            (0..3).for_each(|_| stage.collect());
            filled = Some(stage);
        });
        (filled.unwrap(), taken.bytes_current)
    }

    fn now(&self) -> Timestamp {
        NOW.plus(SECOND * self.seconds)
    }

    /// Lets a second pass, in which the batch of the core is merged.
    fn collect(&mut self) {
        self.seconds += 1;
        self.core.flush(self.started + SECOND * self.seconds);
        self.hub.collect(self.now(), SECOND);
    }

    fn tick(&self, rules: &[RuleFigures], elapsed: Duration) {
        self.hub.tick(&TickInput {
            now: self.now(),
            elapsed,
            connections: 1000,
            rules: rules.to_vec(),
        });
    }

    /// Records the decision of a rule about a client.
    fn block(&self, rule: u16, client: u32, length: usize) {
        let name = name(rule);
        let by = DecidedKey {
            hash: self.core.hash_key(id(rule), b"k"),
            name: &name,
            action: "block",
            client: client.to_be_bytes().into(),
        };
        let record = || decision(name.clone(), client, length);
        self.core.decide(&by, (b"/", 429), record);
    }

    fn start_ban(&self, rule: u16, key: u32, cause: &str) {
        let name = name(rule);
        self.core.start_ban(&name, || BanStart {
            rule: id(rule),
            name: name.clone(),
            key: key.to_be_bytes().into(),
            until: until(key),
            cause: cause.into(),
        });
    }

    fn hit_ban(&self, rule: u16, key: u32) {
        let (bytes, seen) = (key.to_be_bytes(), (NOW, [192, 0, 2, 1].into()));
        let hash = self.core.hash_key(id(rule), &bytes);
        self.core
            .hit_ban(hash, (id(rule), &bytes), until(key), seen);
    }

    fn mark(&self, n: u32) {
        self.hub.mark(Marker {
            ts: self.now(),
            kind: MarkerKind::Reload,
            bad: true,
            label: format!("{n:064}"),
            text: format!("{n:0256}"),
        });
    }
}

fn id(rule: u16) -> RuleId {
    RuleId {
        identity: rule.into(),
        slot: rule,
    }
}

/// When the ban of a key ends. No two end together.
fn until(key: u32) -> Timestamp {
    NOW.plus(SECOND * 86_400 + Duration::from_millis(key.into()))
}

/// The longest name of a rule.
fn name(rule: u16) -> Arc<str> {
    format!("{rule:064}").into()
}

fn figures(rule: u16, total: u64) -> RuleFigures {
    RuleFigures {
        name: name(rule),
        id: id(rule),
        dry_run: false,
        matched: total,
        mitigated: total,
        would_mitigate: total,
        candidate: None,
        keys: total,
        bans: total,
    }
}

/// A decision in which each text of the client has `length` bytes, all of them escaped.
fn decision(rule: Arc<str>, client: u32, length: usize) -> DecisionRecord {
    let text = || vec![0xff; length].into_boxed_slice();
    DecisionRecord {
        ts: NOW,
        id: format!("{client:032x}").into(),
        client_ip: client.to_be_bytes().into(),
        asn: Some(u32::MAX),
        country: Some(*b"ZZ"),
        ja4: Some("t13d1516h2_8daaf6152771_02713d6af862".into()),
        method: "POST".into(),
        host: text(),
        path: text(),
        query: Some(text()),
        status: 429,
        user_agent: Some(text()),
        rule: Some(rule),
        action: "block",
        key: Some("\"".repeat(length).into()),
        dry_run: false,
        banned: true,
        count: Some(u64::MAX),
        limit: Some(u64::MAX),
        repeat: 1,
    }
}

/// The plan of a request that one rule counts.
fn plan(rule: u16, key: &[u8]) -> Plan {
    let mut plan = Rule::throttle("sliding_window", 10).plan(0).clone();
    plan.keys.clear();
    plan.keys.extend_from_slice(key);
    plan.steps[0].id = id(rule);
    plan.steps[0].key = 0..key.len() as u32;
    plan
}

/// A key of 2 KiB; the first half is recorded.
fn long_key(n: u32) -> Vec<u8> {
    let mut key = n.to_be_bytes().to_vec();
    key.resize(2 << 10, b'k');
    key
}

/// The largest sample: all that a client sends is escaped.
fn sample() -> String {
    let value = [0xff; 300];
    let (authority, target) = ("h".repeat(255), "\"".repeat(2000));
    let sample = RequestSample {
        method: "POST",
        https: true,
        authority: &authority,
        target: &target,
        ip: [0xffff_u16; 8].into(),
        asn: Some(u32::MAX),
        country: Some(b"ZZ"),
        ja3: Some("cd08e31494f9531f560d64c695473da9"),
        ja4: Some("t13d1516h2_8daaf6152771_02713d6af862"),
        status: Some(429),
    };
    sample.to_json((0..20).map(|n| (format!("{n}"), value)))
}

/// Prints what a part holds, and checks that it was filled and stays within `most` KiB.
#[allow(clippy::print_stdout, reason = "the figures of docs/limits.md")]
fn check(part: &str, bytes: i64, most: i64) {
    println!(
        "{part}: {} KiB, at most {most} KiB",
        (bytes + KIB - 1) / KIB
    );
    assert!(bytes <= most * KIB, "{part}: {bytes} bytes");
    assert!(bytes > most * KIB / 4, "{part}: only {bytes} bytes");
}

#[test]
fn the_history_is_bounded() {
    let (stage, bytes) = Stage::filled(0, |stage| {
        // Each reload replaces all rules.
        for reload in 0..3 {
            for total in 0..200 {
                let rules: Vec<_> = (0..RULES)
                    .map(|rule| figures(reload * RULES + rule, total))
                    .collect();
                stage.core.count(ActionClass::Forward, Some(SECOND));
                stage.collect();
                stage.tick(&rules, STEP);
            }
        }
    });
    let (history, _) = stage.hub.history(900, stage.now());
    assert_eq!(history.rules.len(), usize::from(RULES));
    check("history and newest tick, 100 rules", bytes, 288);
}

#[test]
fn the_hottest_keys_and_their_samples_are_bounded() {
    let (mut stage, bytes) = Stage::filled(0, |stage| {
        for n in 0..400 {
            for rule in 0..RULES {
                let plan = plan(rule, &long_key(n));
                let add = |result| stage.core.count_keys(&plan, result, || "{}".into());
                add(&PlanResult::default());
            }
            if n % 8 == 7 {
                stage.collect();
            }
        }
    });
    let held = stage.hub.hottest(id(0), 1000);
    assert_eq!((held.len(), held[0].key.len()), (256, KIB as usize));
    check("hottest keys, 100 rules", bytes, 30_720);
    let sample = sample();
    check("largest sample", sample.len() as i64, 10);
    let samples = measure(|| {
        for rule in 0..RULES {
            let keys = stage.hub.hottest(id(rule), 160);
            for sixteen in keys.chunks(16) {
                for hot in sixteen {
                    let plan = plan(rule, &hot.key);
                    let add = |result| stage.core.count_keys(&plan, result, || (*sample).into());
                    add(&PlanResult::default());
                }
                stage.collect();
            }
        }
        (0..3).for_each(|_| stage.collect());
    });
    check("their samples", samples.bytes_current, 81_920);
}

#[test]
fn the_ring_of_decisions_is_bounded() {
    for (part, length, most) in [
        ("decisions with short texts", 4, 45_056),
        ("decisions with long texts", MAX_TEXT, 40_960),
    ] {
        let (stage, bytes) = Stage::filled(0, |stage| {
            for client in 0..80_000 {
                stage.block(1, client, length);
                if client % 512 == 511 {
                    stage.collect();
                }
            }
        });
        let first = ClientQuery::Address([0, 0, 0, 0].into());
        assert!(stage.hub.decisions(&first).newest.is_empty());
        check(part, bytes, most);
    }
}

#[test]
fn figures_and_causes_of_bans_are_bounded() {
    let cause = BanCause {
        count: u64::MAX,
        counts_requests: true,
        period: Some(SECOND),
        method: "POST",
        path: &[b'p'; 1000],
        status: Some(401),
        user_agent: Some(&[b'u'; 1000]),
    };
    let cause = cause.to_text();
    let (stage, bytes) = Stage::filled(10_000, |stage| {
        for key in 0..24_000_u32 {
            if key == 12_000 {
                // Bans that were ended can be restored.
                let ids = (0..key).map(|key| BanId::of(id(1), &key.to_be_bytes()));
                ids.for_each(|id| drop(stage.hub.forget_ban(id)));
            }
            stage.start_ban(1, key, &cause);
            if key % 1000 == 999 {
                stage.collect();
            }
        }
    });
    let held = stage.hub.quiet_bans(0).len();
    assert!((9_000..=10_000).contains(&held), "{held}");
    check("10,000 bans with causes", bytes, 5_120);
}

#[test]
fn figures_of_the_most_bans_are_bounded() {
    let (stage, bytes) = Stage::filled(MOST_BANS, |stage| {
        for key in 0..MOST_BANS as u32 + 50_000 {
            stage.hit_ban(1, key);
            if key % 10_000 == 9_999 {
                stage.collect();
            }
        }
    });
    let newest = BanId::of(id(1), &(MOST_BANS as u32 + 49_999).to_be_bytes());
    assert!(stage.hub.ban_figures(newest).is_some());
    check("250,000 bans", bytes, 65_536);
}

#[test]
fn markers_are_bounded() {
    let (stage, bytes) = Stage::filled(0, |stage| {
        (0..1000).for_each(|n| stage.mark(n));
        for _ in 0..100 {
            (0..RULES).for_each(|rule| stage.start_ban(rule, 1, "c"));
            stage.collect();
        }
    });
    assert_eq!(stage.hub.history(5, stage.now()).1.len(), 60);
    check("markers, bans of 100 rules", bytes, 416);
}

#[test]
fn streams_that_nobody_reads_are_bounded() {
    let mut stage = Stage::new(0);
    let rules: Vec<_> = (0..RULES).map(|rule| figures(rule, 1)).collect();
    // No two streams share a decision.
    let open = |rule| {
        stage.hub.subscribe(DecisionFilter {
            rule: Some(name(rule).to_string()),
            ..DecisionFilter::default()
        })
    };
    let streams: Vec<_> = (0..STREAMS).map(open).collect();
    for second in 0..100 {
        for rule in 0..STREAMS {
            (0..30).for_each(|n| stage.block(rule, second << 8 | n, MAX_TEXT));
        }
        stage.mark(second);
        stage.collect();
        stage.tick(&rules, SECOND);
    }
    let freed = measure(|| drop(streams)).bytes_current;
    check("16 streams", -freed, 4_608);
}

#[test]
fn the_batch_of_a_core_is_bounded() {
    let stage = Stage::new(0);
    // The inbox is full, so the core keeps its batch.
    for _ in 0..100 {
        stage.core.flush(stage.started);
    }
    let batch = measure(|| {
        for n in 0..40_000 {
            stage.block(1, n, MAX_TEXT);
            stage.hit_ban(1, n);
            let plan = plan(1, &long_key(n));
            let add = |result| stage.core.count_keys(&plan, result, || "{}".into());
            add(&PlanResult::default());
        }
        for n in 0..2000 {
            stage.start_ban(1, n, &"c".repeat(240));
        }
    });
    check("batch of a core", batch.bytes_current, 6_144);
}
