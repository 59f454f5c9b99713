//! Tests of the hub, with the recorder of a core.

use std::time::Instant;

use super::super::decision_record::tests::blocked;
use super::super::key_hits::tests::plan;
use super::super::tick::tests::figures;
use super::super::{BanStart, CoreActivity, DecidedKey, MarkerKind, RuleFigures};
use super::*;
use crate::clock::ManualClock;
use crate::rules::PlanResult;

const SECOND: Duration = Duration::from_secs(1);
const RULE: RuleId = RuleId {
    identity: 1,
    slot: 1,
};

/// A hub with one core, on a clock that the test moves.
struct Stage {
    hub: Arc<ActivityHub>,
    core: CoreActivity,
    clock: ManualClock,
    started: Instant,
}

impl Stage {
    fn new() -> Self {
        let hub = Arc::new(ActivityHub::new(1000));
        Self {
            core: CoreActivity::new(hub.clone()),
            hub,
            clock: ManualClock::at(Timestamp::from_secs(1_700_000_000)),
            started: crate::clock::Clock::System.instant(),
        }
    }

    /// Lets a second pass.
    fn pass(&self, rules: &[RuleFigures]) {
        self.clock.advance(SECOND);
        self.collect();
        self.hub.tick(&TickInput {
            now: self.clock.now(),
            elapsed: SECOND,
            connections: 3,
            rules: rules.to_vec(),
        });
    }

    fn collect(&self) {
        let now = self.clock.now();
        let passed = now.since(Timestamp::from_secs(1_700_000_000));
        self.core.flush(self.started + passed);
        self.hub.collect(now, SECOND);
    }

    fn block(&self, name: &Arc<str>, client: [u8; 4]) {
        let by = DecidedKey {
            hash: self.core.hash_key(RULE, b"k"),
            name,
            action: "block",
            client: client.into(),
        };
        self.core.count(ActionClass::Block, None);
        let record = || blocked(name, client);
        self.core.decide(&by, (b"/login", 429), record);
    }

    fn ban(&self, name: &Arc<str>, key: u8) {
        let until = self.clock.now().plus(SECOND * 60);
        self.core.start_ban(name, || BanStart {
            rule: RULE,
            name: name.clone(),
            key: [key].into(),
            until,
            cause: "6 × POST /login".into(),
        });
        let seen = (self.clock.now(), [192, 0, 2, 1].into());
        let hash = self.core.hash_key(RULE, &[key]);
        self.core.hit_ban(hash, (RULE, &[key]), until, seen);
    }
}

#[test]
fn a_tick_has_the_rates_of_a_second() {
    let stage = Stage::new();
    assert_eq!(stage.hub.latest_tick(), None);
    let rule = |matched| [figures("login", matched, 0)];
    stage.pass(&rule(0));
    for _ in 0..40 {
        let latency = Some(Duration::from_millis(20));
        stage.core.count(ActionClass::Forward, latency);
    }
    stage.core.count(ActionClass::Own, None);
    stage.pass(&rule(12));
    let tick = stage.hub.latest_tick().unwrap();
    assert_eq!(tick.requests_per_s(), 41.0);
    assert_eq!(tick.actions_per_s[ActionClass::Forward.index()], 40.0);
    assert_eq!(tick.rules[0].matched_per_s, 12.0);
    assert!((tick.latency.unwrap().p50 - 20.0).abs() < 1.0);
    stage.pass(&rule(12));
    let tick = stage.hub.latest_tick().unwrap();
    assert_eq!(tick.requests_per_s(), 0.0);
    assert!(tick.latency.is_some(), "it covers ten seconds");
    let (history, _) = stage.hub.history(900, stage.clock.now());
    let forwarded = &history.actions_per_s[ActionClass::Forward.index()];
    assert_eq!(forwarded.iter().sum::<f32>(), 40.0 / 3.0);
    assert_eq!(history.rules[0].matched_per_s.iter().sum::<f32>(), 4.0);
}

#[test]
fn a_stream_gets_ticks_decisions_and_markers() {
    let stage = Stage::new();
    stage.pass(&[]);
    assert!(!stage.hub.is_watched());
    let stream = stage.hub.subscribe(DecisionFilter::default());
    assert!(stage.core.is_watched());
    assert!(
        stream.take().unwrap().tick.is_some(),
        "it starts with a tick"
    );
    let rule: Arc<str> = "login".into();
    (0..5).for_each(|_| stage.block(&rule, [192, 0, 2, 1]));
    stage.block(&rule, [192, 0, 2, 2]);
    stage.hub.mark(Marker {
        ts: stage.clock.now(),
        kind: MarkerKind::Reload,
        bad: false,
        label: "reloaded".to_owned(),
        text: String::new(),
    });
    stage.core.count(ActionClass::Forward, None);
    stage.pass(&[]);
    let events = stream.take().unwrap();
    assert_eq!(events.decisions.len(), 2);
    assert!(events.decisions[0].contains("\"repeat\":5"));
    assert!(events.marks[0].contains("\"kind\":\"reload\""));
    assert!(events.tick.unwrap().contains("\"block\":6.0"));
    assert_eq!(events.skipped, 1, "the forwarded request");
    drop(stream);
    assert!(!stage.hub.is_watched());
}

#[test]
fn a_client_is_found_by_its_decisions() {
    let stage = Stage::new();
    let rule: Arc<str> = "login".into();
    (0..3).for_each(|_| stage.block(&rule, [192, 0, 2, 1]));
    stage.pass(&[]);
    let client = ClientQuery::Address([192, 0, 2, 1].into());
    let found = stage.hub.decisions(&client);
    assert_eq!((found.newest.len(), found.mitigated), (1, 3));
    assert_eq!(
        stage.hub.decision_by_id("0123"),
        found.newest.first().cloned()
    );
}

#[test]
fn the_first_ban_and_many_bans_are_marked() {
    let stage = Stage::new();
    let rule: Arc<str> = "login".into();
    stage.ban(&rule, 0);
    stage.pass(&[]);
    (1..30).for_each(|key| stage.ban(&rule, key));
    stage.pass(&[]);
    let (_, markers) = stage.hub.history(5, stage.clock.now());
    let texts: Vec<&str> = markers.iter().map(|marker| &*marker.text).collect();
    assert_eq!(
        texts,
        [
            "banned a key for the first time in 15 minutes",
            "30 keys banned within 30 s"
        ]
    );
}

#[test]
fn a_ban_has_figures_until_it_ends() {
    let stage = Stage::new();
    let rule: Arc<str> = "login".into();
    stage.ban(&rule, 7);
    stage.pass(&[]);
    let id = BanId::of(RULE, &[7]);
    let figures = stage.hub.ban_figures(id).unwrap();
    assert_eq!((figures.mitigated, figures.addresses()), (1, 1));
    assert_eq!(figures.cause.as_deref(), Some("6 × POST /login"));
    let forgotten = stage.hub.forget_ban(id).unwrap();
    assert!(stage.hub.ban_figures(id).is_none());
    stage.hub.restore_ban(id, forgotten.until);
    assert_eq!(stage.hub.ban_figures(id).unwrap().mitigated, 1);
    (0..70).for_each(|_| stage.pass(&[]));
    assert!(stage.hub.ban_figures(id).is_none());
}

#[test]
fn a_removed_rule_leaves_nothing_but_its_decisions() {
    let stage = Stage::new();
    let rule: Arc<str> = "login".into();
    let result = PlanResult::default();
    stage
        .core
        .count_keys(&plan(RULE, b"k"), &result, || "{}".into());
    stage.ban(&rule, 7);
    stage.block(&rule, [192, 0, 2, 1]);
    stage.pass(&[figures("login", 1, 1)]);
    let hottest = stage.hub.hottest(RULE, 10);
    assert_eq!((hottest.len(), &*hottest[0].key), (1, b"k".as_slice()));
    assert_eq!(hottest[0].sample.as_deref(), Some("{}"));
    stage.hub.keep_rules(&[]);
    assert!(stage.hub.hottest(RULE, 10).is_empty());
    assert!(stage.hub.ban_figures(BanId::of(RULE, &[7])).is_none());
    let (history, _) = stage.hub.history(5, stage.clock.now());
    assert!(history.rules.is_empty());
    let client = ClientQuery::Key("192.0.2.1".to_owned());
    assert_eq!(stage.hub.decisions(&client).newest.len(), 1);
}

#[test]
fn a_core_keeps_its_batch_while_the_inbox_is_full() {
    let stage = Stage::new();
    for n in 0..2 * MAX_INBOX as u32 {
        stage.core.count(ActionClass::Forward, None);
        stage.core.flush(stage.started + SECOND * n);
    }
    stage.pass(&[]);
    stage.pass(&[]);
    let (history, _) = stage.hub.history(5, stage.clock.now());
    let forwarded = history.actions_per_s[ActionClass::Forward.index()][0];
    assert_eq!((forwarded * 2.0).round(), 2.0 * MAX_INBOX as f32);
}
