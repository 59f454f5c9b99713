//! Several nodes in async mode on one server.

use std::time::Duration;

use super::async_node::{TestNode, all_know_the_ban, ban_check, banning, start_nodes, step, until};
use super::on_a_core;
use super::server::TestServer;
use crate::clock::Clock;
use crate::limit::Algorithm;
use crate::rules::plan::{
    KeyStatus, OnStoreFailure, PlanResult, Step, StepOp, StepResult, StoreMode,
};
use crate::store::BanKey;
use crate::store::fixture::plan;

#[test]
fn three_nodes_share_a_limit_with_every_algorithm() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let mut slices = step("async-slices", Algorithm::SlidingWindow, 90);
        slices.limiter.slices = 12;
        let steps = [
            step("async-window", Algorithm::SlidingWindow, 90),
            step("async-fixed", Algorithm::FixedWindow, 90),
            step("async-bucket", Algorithm::TokenBucket, 90),
            step("async-gcra", Algorithm::Gcra, 90),
            slices,
        ];
        for step in &steps {
            let mut admitted = 0;
            // 900 requests at about 1,000 per second.
            for round in 0..300 {
                for node in &nodes {
                    admitted += u64::from(node.admits(step, "k").await);
                }
                if round % 3 == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            println!("{:?}: {admitted} of 90", step.limiter.algorithm);
            // N + R·δ + 1 + N·⌊φL/N⌋, with 1,000 per second and δ of 20 ms on a busy machine.
            assert!(
                (90..=90 + 3 + 20 + 1 + 18).contains(&admitted),
                "{admitted}"
            );
        }
    });
}

#[test]
fn a_ban_reaches_all_nodes_and_so_does_its_end() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let rule = banning("async-ban", 5);
        let id = rule.id;
        while nodes[0].admits(&rule, "k").await {}
        let check = ban_check(&rule);
        for node in &nodes {
            until("the node knows the ban", async || {
                let status = node.run(&check, "k").await.status;
                matches!(status, KeyStatus::Banned { .. })
            })
            .await;
            assert_eq!(node.0.store().bans(Clock::System.now()).len(), 1);
        }
        assert!(nodes[1].admits(&rule, "another").await);

        nodes[2].0.unban(id, &BanKey::of(b"k")).await.unwrap();
        for node in &nodes {
            until("the node knows the end of the ban", async || {
                node.admits(&check, "k").await
            })
            .await;
            assert_eq!(node.0.store().bans(Clock::System.now()).len(), 0);
        }
        assert!(nodes[0].admits(&rule, "k").await);
    });
}

#[test]
fn the_end_of_a_ban_in_exact_mode_reaches_all_nodes() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let rule = Step {
            mode: StoreMode::Exact,
            ..banning("exact-unban", 2)
        };
        let long_key = "k".repeat(1_000);
        for key in ["k", &long_key] {
            while nodes[0].admits(&rule, key).await {}
            for node in &nodes {
                assert!(!node.admits(&rule, key).await);
            }
            nodes[1]
                .0
                .unban(rule.id, &BanKey::of(key.as_bytes()))
                .await
                .unwrap();
            let check = ban_check(&rule);
            for node in &nodes {
                until("the node knows the end of the ban", async || {
                    node.admits(&check, key).await
                })
                .await;
            }
        }
    });
}

#[test]
fn charges_of_responses_ban_a_key() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let charge = Step {
            op: StepOp::Charge,
            ..banning("async-charge", 6)
        };
        let check = ban_check(&charge);
        for count in 0..7 {
            let node = &nodes[count % 3];
            assert!(node.admits(&check, "k").await);
            node.run(&charge, "k").await;
        }
        all_know_the_ban(&nodes, &check, "k").await;
    });
}

#[test]
fn a_plan_mixes_both_modes() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let exact = |name: &str, limit: u64| Step {
            mode: StoreMode::Exact,
            ..step(name, Algorithm::SlidingWindow, limit)
        };
        let mixed = plan([
            ("k", exact("mixed-first", 100)),
            ("k", step("mixed-second", Algorithm::SlidingWindow, 4)),
            ("k", exact("mixed-third", 100)),
        ]);
        let remaining = |result: &PlanResult| -> Vec<(u16, u64)> {
            let left = |done: &StepResult| (done.step, done.reading.unwrap().remaining);
            result.steps.iter().map(left).collect()
        };
        for left in (0..4).rev() {
            let result = nodes[0].apply(&mixed).await;
            assert_eq!(
                remaining(&result),
                [(0, 96 + left), (1, left), (2, 96 + left)]
            );
        }
        // The second rule refuses, so the third one does not count.
        let result = nodes[0].apply(&mixed).await;
        assert_eq!(remaining(&result), [(0, 95), (1, 0)]);
        assert_eq!(result.steps[1].status, KeyStatus::Over);
        let third = plan([("k", exact("mixed-third", 100))]);
        assert_eq!(remaining(&nodes[1].apply(&third).await), [(0, 95)]);
    });
}

#[test]
fn a_node_decides_alone_while_the_store_is_down() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let port = server.port;
        let node = TestNode::start(&server.url()).await;
        let rule = step("async-down", Algorithm::SlidingWindow, 10);
        let ban_rule = Step {
            op: StepOp::Charge,
            ..banning("async-down-ban", 10)
        };
        for _ in 0..3 {
            assert!(node.admits(&rule, "k").await);
        }
        drop(server);
        until("the node notices the outage", async || node.is_down()).await;
        // The counter is warm, and half of the limit applies.
        assert!(node.admits(&rule, "k").await);
        assert!(node.admits(&rule, "k").await);
        assert!(!node.admits(&rule, "k").await);
        // The node starts bans by itself.
        for _ in 0..6 {
            node.run(&ban_rule, "k").await;
        }
        let check = ban_check(&ban_rule);
        assert!(!node.admits(&check, "k").await);
        let open = Step {
            on_failure: OnStoreFailure::Open,
            ..rule.clone()
        };
        assert!(node.apply(&plan([("k", open)])).await.steps.is_empty());
        let mut closed = plan([(
            "k",
            Step {
                on_failure: OnStoreFailure::Closed,
                ..rule.clone()
            },
        )]);
        let mut result = PlanResult::default();
        let now = Clock::System.now();
        let refusing_rule = node.0.apply(&mut closed, now, &mut result).await;
        assert_eq!(refusing_rule, Some(rule.rule));

        let _server = TestServer::try_start("redis-server", port, &[]).unwrap();
        until("the node notices the end", async || !node.is_down()).await;
        // What was admitted during the outage still counts.
        let mut admitted = 0;
        while node.admits(&rule, "k").await {
            admitted += 1;
        }
        assert_eq!(admitted, 5);
    });
}

/// The store merges what a node has admitted alone with the limit of the fleet, not with the node's share of it.
#[test]
fn units_of_an_outage_ban_no_client() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let [first, second] = start_nodes(&server).await;
        let rule = banning("async-outage", 100);
        for _ in 0..60 {
            assert!(second.admits(&rule, "k").await);
        }
        first.sees_outage(&server).await;
        for _ in 0..12 {
            assert!(first.admits(&rule, "k").await);
        }
        first.sees_recovery(&server).await;
        until("the fleet knows 72 units", async || {
            let reading = first.peek(&rule, "k").await.reading;
            reading.is_some_and(|reading| reading.remaining == 100 - 72)
        })
        .await;
        for node in [&first, &second] {
            assert!(node.admits(&rule, "k").await);
        }
    });
}

/// Another program, or another version, has written to the streams.
#[test]
fn foreign_entries_in_the_streams_are_skipped() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let client = redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let unknown_event: &[u8] = b"\x09\x03\x00abc\x02\xff";
        for (field, value) in [("foo", b"garbage".as_slice()), ("e", unknown_event)] {
            for stream in ["bans", "exhausted"] {
                let name = format!("lockgate:1:{{fleet}}{stream}");
                let mut command = redis::cmd("XADD");
                command.arg(name).arg("*").arg(field).arg(value);
                command.query::<String>(&mut connection).unwrap();
            }
        }
        let rule = banning("async-foreign", 5);
        let check = ban_check(&rule);
        while nodes[0].admits(&rule, "k").await {}
        all_know_the_ban(&nodes, &check, "k").await;
        assert!(!nodes.iter().any(TestNode::is_down));
    });
}

#[test]
fn a_node_that_leaves_reports_what_is_left() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let [first, second, third] = start_nodes::<3>(&server).await;
        let rule = step("async-leave", Algorithm::FixedWindow, 90);
        for _ in 0..10 {
            assert!(first.admits(&rule, "k").await);
        }
        first.finish().await;
        until("the node has left", async || {
            second.0.counters().unwrap().fleet().nodes == 2
        })
        .await;
        // Only a report of its own shows a node what others have used.
        for _ in 0..20 {
            assert!(third.admits(&rule, "k").await);
        }
        until("the node has read the fleet's counter", async || {
            let reading = third.peek(&rule, "k").await.reading.unwrap();
            reading.remaining == 90 - 30
        })
        .await;
    });
}

/// A node reports no key of which it has seen little, until it leaves.
#[test]
fn a_node_that_leaves_reports_cold_keys() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let url = server.url();
        let rule = step("async-cold", Algorithm::TokenBucket, 100);
        let first = TestNode::start(&url).await;
        for number in 0..19 {
            assert!(first.admits(&rule, "k").await);
            assert!(first.admits(&rule, &format!("other {number}")).await);
        }
        first.finish().await;
        let second = TestNode::start(&url).await;
        for _ in 0..25 {
            assert!(second.admits(&rule, "k").await);
        }
        until(
            "the node knows what the first one has admitted",
            async || {
                let reading = second.peek(&rule, "k").await.reading;
                reading.is_some_and(|reading| reading.remaining == 100 - 19 - 25)
            },
        )
        .await;
    });
}
