//! A node in async mode, and what several of them do on one server.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::server::TestServer;
use super::settings;
use crate::clock::Clock;
use crate::limit::{Algorithm, Limiter};
use crate::rules::plan::{
    BanLength, KeyStatus, OnStoreFailure, Plan, PlanResult, Step, StepOp, StepResult, StoreMode,
};
use crate::store::fixture::{Rule, plan};
use crate::store::{Store, StoreBounds, StoreHandle};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A gateway of one core.
pub(super) struct TestNode(pub(super) Rc<StoreHandle>);

impl TestNode {
    pub(super) async fn start(url: &str) -> Self {
        let settings = super::RedisSettings {
            timeout: Duration::from_millis(500),
            ..settings(url)
        };
        let store = Store::memory(StoreBounds::keys(10_000));
        let store = store.shared(settings, 0.5, OnStoreFailure::Local);
        let handle = StoreHandle::new(Arc::new(store), Clock::System);
        tokio::task::spawn_local(handle.clone().run());
        handle.first_attempt().await;
        Self(handle)
    }

    pub(super) async fn apply(&self, plan: &Plan) -> PlanResult {
        let mut result = PlanResult::default();
        let now = Clock::System.now();
        let refusing_rule = self.0.apply(&mut plan.clone(), now, &mut result).await;
        assert_eq!(refusing_rule, None);
        result
    }

    pub(super) async fn run(&self, step: &Step, key: &str) -> StepResult {
        let result = self.apply(&plan([(key, step.clone())])).await;
        result.steps[0]
    }

    pub(super) async fn admits(&self, step: &Step, key: &str) -> bool {
        self.run(step, key).await.status == KeyStatus::Within
    }

    pub(super) fn is_down(&self) -> bool {
        self.0.counters().unwrap().is_down()
    }

    /// The number of nodes that this one knows.
    pub(super) fn fleet_size(&self) -> u32 {
        self.0.counters().unwrap().fleet().nodes
    }

    /// Leaves the fleet.
    pub(super) async fn finish(&self) {
        self.0.finish().await;
    }

    /// What the key has counted, without charging it.
    pub(super) async fn peek(&self, rule: &Step, key: &str) -> StepResult {
        let peek = Step {
            op: StepOp::Peek,
            ..rule.clone()
        };
        self.run(&peek, key).await
    }

    /// Stops the server and waits until this node notices it.
    pub(super) async fn sees_outage(&self, server: &TestServer) {
        server.signal("STOP");
        until("the node notices the outage", async || self.is_down()).await;
    }

    /// Lets the server continue and waits until this node notices it.
    pub(super) async fn sees_recovery(&self, server: &TestServer) {
        server.signal("CONT");
        until("the node notices the end", async || !self.is_down()).await;
    }
}

/// Starts this many nodes, which know each other.
pub(super) async fn start_nodes<const N: usize>(server: &TestServer) -> [TestNode; N] {
    let url = server.url();
    let mut nodes = Vec::new();
    for _ in 0..N {
        nodes.push(TestNode::start(&url).await);
    }
    until("every node knows the fleet", async || {
        nodes.iter().all(|node| node.fleet_size() as usize == N)
    })
    .await;
    nodes.try_into().ok().unwrap()
}

/// Waits until every node refuses what `check` asks.
pub(super) async fn all_know_the_ban(nodes: &[TestNode], check: &Step, key: &str) {
    for node in nodes {
        until("the node knows the ban", async || {
            !node.admits(check, key).await
        })
        .await;
    }
}

/// An async step that admits one unit.
pub(super) fn step(name: &str, algorithm: Algorithm, limit: u64) -> Step {
    let rule = Rule::counting(&(), name, Limiter::new(algorithm, limit, DAY));
    Step {
        mode: StoreMode::Async,
        ..rule.step(StepOp::Admit, 1)
    }
}

pub(super) fn banning(name: &str, limit: u64) -> Step {
    Step {
        ban: BanLength::For(DAY),
        ..step(name, Algorithm::SlidingWindow, limit)
    }
}

/// The step that only asks whether a key is banned.
pub(super) fn ban_check(rule: &Step) -> Step {
    Step {
        op: StepOp::CheckBan,
        ..rule.clone()
    }
}

pub(super) async fn until(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not in time: {what}");
}
