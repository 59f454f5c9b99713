//! The admin API on the memory store, from another thread than the core.

use super::*;
use crate::rules::plan::{KeyStatus, StepOp, StoreMode};
use crate::store::fixture::{Rule, at, banned};
use crate::store::memory::MemoryStore;
use crate::store::{AdminNote, BanTerms, ListedKey, StoreBounds};

/// Runs `test` on a thread of its own, beside a core of the same store.
fn beside_a_core(test: impl AsyncFnOnce(StoreAdmin) + Send + 'static) {
    let store = Arc::new(Store::memory(StoreBounds::keys(4_096)));
    let clock = Clock::Manual(crate::clock::ManualClock::at(at(0)));
    let admin = StoreAdmin::new(store.clone(), clock.clone());
    let tester = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        { runtime }
            .enable_all()
            .build()
            .unwrap()
            .block_on(test(admin));
    });
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    runtime.block_on(async {
        let handle = StoreHandle::new(store, clock);
        tokio::task::spawn_local(handle.run());
        while !tester.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    tester.join().unwrap();
}

fn request(rule: &Rule, key: &str, until: u64) -> BanRequest {
    BanRequest {
        rule: rule.id,
        key: BanKey::of(key.as_bytes()),
        text: key.into(),
        cause: "by hand: test".into(),
        terms: BanTerms::by_hand(at(0), at(until), AdminNote::new("test").unwrap()),
    }
}

fn status(store: &MemoryStore, rule: &Rule, key: &str, secs: u64) -> KeyStatus {
    let plan = crate::store::fixture::plan([(key, rule.step(StepOp::CheckBan, 1))]);
    store.run(&plan, at(secs))[0].status
}

#[test]
fn a_core_carries_out_changes() {
    beside_a_core(async |admin| {
        let local = admin.store.local();
        let rule = Rule::throttle(&admin.store, "admin-core", 100);
        let change = admin.ban(request(&rule, "k", 60)).await.unwrap();
        assert_eq!(
            change.scope,
            ChangeScope::Fleet,
            "the only gateway is the fleet"
        );
        assert_eq!(status(local, &rule, "k", 59), banned(60, false));
        let listed = admin.list_bans(vec![rule.id]).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].key, ListedKey::Bytes((*b"k").into()));
        assert_eq!(admin.list_bans(Vec::new()).await.unwrap(), []);
        let key = BanKey::Id(listed[0].ban_id);
        let removed = admin.unban(rule.id, key.clone()).await.unwrap().record;
        assert_eq!(removed, listed[0]);
        assert_eq!(status(local, &rule, "k", 1), KeyStatus::Within);
        assert_eq!(
            admin.unban(rule.id, key.clone()).await,
            Err(AdminError::NotFound)
        );
        let undo = BanRequest {
            key,
            terms: removed.terms(),
            ..request(&rule, "", 0)
        };
        admin.ban(undo).await.unwrap();
        assert_eq!(admin.list_bans(vec![rule.id]).await.unwrap(), listed);
        assert_eq!(
            admin.ban(request(&rule, "k", 0)).await,
            Err(AdminError::AlreadyEnded)
        );
    });
}

#[test]
fn many_bans_end_at_once() {
    beside_a_core(async |admin| {
        let rule = Rule::throttle(&admin.store, "admin-many", 100);
        for n in 0..100 {
            admin.ban(request(&rule, &n.to_string(), 60)).await.unwrap();
        }
        let bans = admin.list_bans(vec![rule.id]).await.unwrap();
        let ids: Vec<_> = bans
            .iter()
            .map(|ban| (ban.rule, ban.ban_id))
            .take(70)
            .collect();
        let change = admin.unban_all(ids).await.unwrap();
        assert_eq!((change.record, change.scope), (70, ChangeScope::Fleet));
        assert_eq!(admin.list_bans(vec![rule.id]).await.unwrap().len(), 30);
    });
}

#[test]
fn counters_are_read() {
    beside_a_core(async |admin| {
        let rule = Rule::throttle(&admin.store, "admin-peek", 10);
        let plan = crate::store::fixture::plan([("k", rule.step(StepOp::Admit, 3))]);
        admin.store.local().run(&plan, at(0));
        let inspected = InspectedRule {
            id: rule.id,
            limiter: rule.step(StepOp::Peek, 1).limiter,
            mode: StoreMode::Exact,
        };
        let keys = vec![b"k".to_vec(), b"l".to_vec()];
        let usage = admin.peek(inspected, keys).await.unwrap();
        assert_eq!(usage, [KeyUsage::counted(3), KeyUsage::default()]);
        let levels = admin.fill_levels(inspected).await.unwrap();
        assert_eq!(levels.0, [0, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn exemptions_are_added_and_ended() {
    beside_a_core(async |admin| {
        let exemption = ExemptionEntry {
            network: "10.0.0.0/8".parse().unwrap(),
            since: at(0),
            until: at(60),
            note: AdminNote::default(),
            scope: ChangeScope::Fleet,
        };
        let added = admin.exempt(exemption.clone()).await.unwrap();
        assert_eq!(added.record, exemption);
        assert_eq!(admin.exemptions(), std::slice::from_ref(&exemption));
        let ended = admin.end_exemption(exemption.network).await.unwrap();
        assert_eq!(ended.record, exemption);
        let again = admin.end_exemption(exemption.network).await;
        assert_eq!(again, Err(AdminError::NotFound));
    });
}

#[tokio::test]
async fn without_a_core_nothing_waits_for_ever() {
    let store = Arc::new(Store::memory(StoreBounds::keys(100)));
    let admin = StoreAdmin::new(store.clone(), Clock::System);
    drop(store.commands.claim());
    let rule = Rule::throttle(&store, "admin-alone", 10);
    let change = admin.ban(request(&rule, "k", 60)).await;
    assert_eq!(change, Err(AdminError::Unavailable));
    assert_eq!(admin.list_bans(vec![rule.id]).await, Ok(Vec::new()));
}
