//! Tests against real servers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use self::server::TestServer;
use super::address::RedisAddress;
use super::encode::lease_member;
use super::key_names::{FleetKey, KeyNames};
use super::script::LuaScript;
use super::{RedisSettings, RedisStore};
use crate::clock::Clock;
use crate::limit::Algorithm;
use crate::rules::plan::{HeldLeases, KeyStatus, LeasedCounter, RuleId, StepOp};
use crate::store::fixture::{Rule, limiters};
use crate::store::{Remote, Store, StoreBounds, StoreHandle, conformance};

mod addresses;
mod administration;
mod async_fleet;
mod async_node;
mod async_shares;
mod differential;
mod merges;
mod records;
mod replies;
#[allow(dead_code, reason = "the integration tests use more of it")]
mod server;

/// The settings of a test with this server.
fn settings(url: &str) -> RedisSettings {
    RedisSettings {
        address: RedisAddress::parse(url).unwrap(),
        timeout: Duration::from_secs(5),
        sync_interval: Duration::from_millis(100),
        prefix: "test:".to_owned(),
        username: None,
        password: None,
        password_source: "none",
        authorities: None,
        client_certificate: None,
    }
}

impl RedisStore {
    /// A store whose scripts take the time from the caller.
    fn with_manual_time(settings: RedisSettings) -> Self {
        let [plan, renew, sync] = LuaScript::with_manual_time();
        Self {
            plan,
            renew,
            sync,
            has_manual_time: true,
            ..Self::new(settings)
        }
    }
}

/// A core's handle of a store on `server`, with the time of the caller.
async fn connected(server: &TestServer) -> Rc<StoreHandle> {
    let shared = RedisStore::with_manual_time(settings(&server.url()));
    let mut store = Store::memory(StoreBounds::keys(100_000));
    store.remote = Some(Remote::Redis(Arc::new(shared)));
    let handle = StoreHandle::new(Arc::new(store), Clock::System);
    tokio::task::spawn_local(handle.clone().run());
    handle.first_attempt().await;
    handle
}

/// Runs a test on one thread, as a core does.
fn on_a_core(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

#[test]
fn redis_conforms() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let store = connected(&server).await;
        conformance::all(&store).await;
        conformance::administration::all(&store).await;
    });
}

#[test]
fn valkey_conforms() {
    let Some(program) = std::env::var_os("LOCKGATE_VALKEY") else {
        return;
    };
    on_a_core(async {
        let server = TestServer::start_program(program.to_str().unwrap(), &[]);
        let store = connected(&server).await;
        conformance::all(&store).await;
        conformance::administration::all(&store).await;
    });
}

#[test]
fn no_key_waits_for_a_clock_that_was_set_back() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let store = connected(&server).await;
        for (name, limiter) in limiters(3) {
            if limiter.algorithm == Algorithm::Concurrency {
                continue;
            }
            let rule = Rule::counting(&*store, &format!("set-back-{name}"), limiter);
            while rule.takes(&*store, "k", 7_200).await {}
            let refused = rule.ask(&*store, StepOp::Admit, "k", 60).await;
            assert_eq!(refused.status, KeyStatus::Over, "{name}");
            let wait = refused.reading.unwrap().retry_after().unwrap();
            assert!(wait <= 2 * limiter.period, "{name} waits {wait:?}");
            let again = 61 + wait.as_secs();
            assert!(rule.takes(&*store, "k", again).await, "{name}");
        }
    });
}

#[test]
fn a_lease_that_the_store_has_evicted_is_restored_while_it_is_held() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let store = connected(&server).await;
        let connect = || {
            let client = redis::Client::open(server.url()).unwrap();
            client.get_connection().unwrap()
        };
        let (mut client, mut counting) = (connect(), connect());
        let (identity, slot) = (1, 0);
        let id = RuleId { identity, slot };
        let [granted, refused] = [b"granted", b"refused"].map(|key| HeldLeases {
            id: store.next_lease(),
            counters: smallvec::smallvec![LeasedCounter {
                id,
                key: key.as_slice().into(),
                units: 1,
            }],
        });
        let [granted_key, refused_key] = [b"granted", b"refused"]
            .map(|key| KeyNames::leases(&KeyNames::new("test:").record(FleetKey::new(id, key))));
        let mut count = |key: &[u8]| redis::cmd("ZCARD").arg(key).query::<i64>(&mut counting);
        let member = lease_member(granted.id, 1);
        let mut add = redis::cmd("ZADD");
        add.arg(&granted_key).arg(1_u64 << 52).arg(member);
        add.exec(&mut client).unwrap();

        let guards = [store.hold(granted), store.hold(refused)];
        store.renew_leases().await;
        redis::cmd("FLUSHDB").exec(&mut client).unwrap();
        store.renew_leases().await;
        assert_eq!(count(&granted_key), Ok(1));
        assert_eq!(count(&refused_key), Ok(0));
        drop(guards);
        store.send_queued().await;
        assert_eq!(count(&granted_key), Ok(0));
        store.renew_leases().await;
        assert_eq!(count(&granted_key), Ok(0));
    });
}
