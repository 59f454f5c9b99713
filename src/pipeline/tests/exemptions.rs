//! Requests of an address with an exemption pass all rules, in both phases.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request};

use crate::clock::{Clock, Timestamp};
use crate::decision::{Decision, Verdict};
use crate::expr::{ExprEnv, NamedLists, predicate};
use crate::facts::{ClientConnection, FieldTable, NoGeo, RequestFacts, RequestHead, ResponseFacts};
use crate::pipeline::engine::{Engine, Evaluation, ResponsePhase};
use crate::rules::{Rule, RuleId, RuleScope, RuleSet};
use crate::store::{AdminNote, ChangeScope, ExemptionEntry, Store, StoreBounds, StoreHandle};

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn deny_all() -> RuleSet {
    let lists = NamedLists::default();
    let env = ExprEnv {
        scheme: &FieldTable,
        lists: &lists,
        allow_response: true,
    };
    let all = predicate("true", &env).ok().unwrap();
    let id = RuleId::unregistered(1);
    RuleSet::new(vec![Rule::new("deny".into(), id, RuleScope::Same(all))])
}

async fn decide(store: &Rc<StoreHandle>, client: &str, now: Timestamp) -> (Decision, bool) {
    let request = Request::get("/").header("host", "a").body(()).unwrap();
    let parts = request.into_parts().0;
    let head = RequestHead::read(&parts, false).unwrap();
    let client: IpAddr = client.parse().unwrap();
    let connection = ClientConnection {
        peer: SocketAddr::from((client, 7)),
        listener: "".into(),
        tls: None,
    };
    let facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, &NoGeo);
    let (rules, mut evaluation) = (deny_all(), Evaluation::default());
    let engine = Engine {
        rules: &rules,
        store,
    };
    let mut decision = Decision::default();
    engine
        .decide(&facts, now, &mut evaluation, &mut decision)
        .await;
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
        now,
    };
    let mut settlement = Evaluation::default();
    let settled = engine.settle(&phase, &mut settlement, &mut decision, || unreachable!());
    (decision, settled || !evaluation.plan.steps.is_empty())
}

#[tokio::test]
async fn an_exempt_address_passes_all_rules_until_its_end() {
    let store = Arc::new(Store::memory(StoreBounds::keys(100)));
    let handle = StoreHandle::new(store.clone(), Clock::System);
    let until = NOW.plus(Duration::from_secs(60));
    let exemption = ExemptionEntry {
        network: "203.0.113.0/24".parse().unwrap(),
        since: NOW,
        until,
        note: AdminNote::default(),
        scope: ChangeScope::Fleet,
    };
    let refused = decide(&handle, "203.0.113.7", NOW).await.0;
    assert!(matches!(refused.verdict, Verdict::Block { .. }));
    store.exemptions().add(exemption, NOW).unwrap();
    let (passed, is_counted) = decide(&handle, "203.0.113.7", NOW).await;
    assert_eq!((passed.verdict, is_counted), (Verdict::Forward, false));
    assert_eq!(
        (passed.action_name(), passed.decided_by),
        (Some("allow"), None)
    );
    for (client, now) in [("203.0.113.7", until), ("203.0.114.7", NOW)] {
        let decision = decide(&handle, client, now).await.0;
        assert_eq!(decision.action_name(), Some("block"));
    }
}
