//! Rules with a ratio on several nodes in async mode.

use super::async_node::{TestNode, all_know_the_ban, ban_check, banning, start_nodes, until};
use super::on_a_core;
use super::server::TestServer;
use crate::limit::{ShareCounts, ShareRatio};
use crate::rules::plan::Step;

/// An async step that bans above the limit and half of the total.
fn share(name: &str, limit: u64) -> Step {
    let mut step = banning(name, limit);
    step.limiter.ratio = Some(ShareRatio::nearest(0.5));
    step
}

/// A request that matches only `total`.
fn other(rule: &Step) -> Step {
    Step {
        only_total: true,
        ..rule.clone()
    }
}

async fn counts(node: &TestNode, rule: &Step, key: &str) -> (u32, u32) {
    let ShareCounts { count, total } = node.peek(rule, key).await.reading.unwrap().share;
    (count, total)
}

#[test]
fn the_share_of_all_nodes_bans_a_key() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        let rule = share("async-share", 6);
        let check = ban_check(&rule);
        for node in &nodes {
            for _ in 0..3 {
                assert!(node.admits(&rule, "k").await);
                assert!(node.admits(&other(&rule), "k").await);
            }
        }
        // 9 of at least 18 requests are above the limit, but not above half. A node learns of them when it reports.
        for node in &nodes {
            until("the node knows the requests of all", async || {
                node.run(&other(&rule), "k").await;
                counts(node, &rule, "k").await.0 == 9
            })
            .await;
            assert!(node.admits(&check, "k").await);
        }
        until("more than half of the requests match", async || {
            nodes[0].run(&rule, "k").await;
            !nodes[0].admits(&check, "k").await
        })
        .await;
        all_know_the_ban(&nodes, &check, "k").await;
    });
}

/// The store merges what a node has admitted alone with the limit and the ratio of the fleet.
#[test]
fn units_of_an_outage_ban_no_client_below_the_limit_or_the_share() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let [first, second] = start_nodes(&server).await;
        let rule = share("async-share-outage", 10);
        for _ in 0..4 {
            assert!(second.admits(&rule, "below the limit").await);
        }
        for _ in 0..20 {
            assert!(second.admits(&other(&rule), "below the share").await);
        }
        for _ in 0..8 {
            assert!(second.admits(&rule, "below the share").await);
        }
        first.sees_outage(&server).await;
        for key in ["below the limit", "below the share"] {
            for _ in 0..4 {
                assert!(first.admits(&rule, key).await);
            }
        }
        first.sees_recovery(&server).await;
        let expected = [("below the limit", (8, 8)), ("below the share", (12, 32))];
        for (key, merged) in expected {
            until("the fleet knows all units", async || {
                counts(&first, &rule, key).await == merged
            })
            .await;
            for node in [&first, &second] {
                assert!(node.admits(&other(&rule), key).await);
            }
        }
    });
}

#[test]
fn a_node_that_leaves_reports_requests_of_the_total() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let url = server.url();
        let rule = share("async-share-leave", 10);
        let first = TestNode::start(&url).await;
        for _ in 0..3 {
            assert!(first.admits(&other(&rule), "k").await);
        }
        first.finish().await;
        let second = TestNode::start(&url).await;
        assert!(second.admits(&rule, "k").await);
        until(
            "the node knows what the first one has counted",
            async || counts(&second, &rule, "k").await == (1, 4),
        )
        .await;
    });
}
