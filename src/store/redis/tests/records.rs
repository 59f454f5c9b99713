//! Records that another program, another version or a fault has left under a key of ours.

use redis::Value;

use super::differential::Draws;
use super::server::TestServer;
use super::{connected, on_a_core};
use crate::rules::plan::{PlanResult, StepOp};
use crate::store::StoreHandle;
use crate::store::fixture::{Rule, at, limiters, plan};
use crate::store::redis::connector::RedisConnection;

const CASES: usize = 400;

/// Makes every key of the store a value of any kind: bytes, a list, a hash or a sorted set.
async fn corrupt(connection: &mut RedisConnection, draws: &mut Draws) {
    let mut keys = redis::cmd("KEYS");
    let Value::Array(keys) = connection.call(keys.arg("*")).await.unwrap() else {
        panic!("keys");
    };
    for key in keys {
        let Value::BulkString(key) = key else {
            continue;
        };
        let mut delete = redis::cmd("DEL");
        connection.call(delete.arg(&key)).await.unwrap();
        let length = draws.below(40) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| draws.next() as u8).collect();
        if let Some(kind) = bytes.first_mut() {
            *kind = draws.one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 65, 69, 70, 128, *kind]);
        }
        let mut write = match draws.below(6) {
            0 => redis::cmd("RPUSH"),
            1 => redis::cmd("SADD"),
            _ => redis::cmd("SET"),
        };
        connection.call(write.arg(&key).arg(bytes)).await.unwrap();
    }
}

/// Runs one step of each algorithm.
async fn run_all(store: &StoreHandle, draws: &mut Draws) {
    for (name, limiter) in limiters(3) {
        let op = draws.one_of(&[StepOp::Admit, StepOp::Charge, StepOp::Peek]);
        let ban = if draws.chance(2) { 0 } else { 10 };
        let rule = Rule {
            ban,
            ..Rule::counting(store, &format!("corrupt-{name}-{ban}"), limiter)
        };
        let plan = plan([("k", rule.step(op, draws.one_of(&[0, 1, 3, 9])))]);
        let mut result = PlanResult::default();
        let done = store
            .call(
                &plan,
                0..plan.steps.len(),
                at(draws.below(100)),
                &mut result,
            )
            .await;
        assert_eq!(done, Ok(()), "{name} {op:?}");
        assert_eq!(result.steps.len(), 1);
    }
}

#[test]
fn no_value_under_a_key_makes_a_call_fail() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let store = connected(&server).await;
        let settings = super::settings(&server.url());
        let mut connection = RedisConnection::open(&settings).await.unwrap();
        let mut draws = Draws(7);
        for _ in 0..CASES {
            run_all(&store, &mut draws).await;
            corrupt(&mut connection, &mut draws).await;
        }
    });
}
