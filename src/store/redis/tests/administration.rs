//! Changes that people make on one gateway apply to all.

use std::time::Duration;

use super::async_node::{TestNode, ban_check, banning, start_nodes, until};
use super::on_a_core;
use super::server::TestServer;
use crate::clock::{Clock, Timestamp};
use crate::rules::BanId;
use crate::rules::plan::{Step, StoreMode};
use crate::store::redis::FleetKey;
use crate::store::{
    AdminError, AdminNote, BanAuthor, BanKey, BanRequest, BanTerms, ChangeScope, ExemptionEntry,
    ListedBan, ListedKey, StoreAdmin,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn now() -> Timestamp {
    Timestamp::from_micros(Clock::System.now().as_micros())
}

fn request(rule: &Step, key: &str, lasts: Duration) -> BanRequest {
    let note = AdminNote::new("scraper").unwrap();
    BanRequest {
        rule: rule.id,
        key: BanKey::of(key.as_bytes()),
        text: key.into(),
        cause: "by hand: scraper".into(),
        terms: BanTerms::by_hand(now(), now().plus(lasts), note),
    }
}

fn exemption(network: &str) -> ExemptionEntry {
    ExemptionEntry {
        network: network.parse().unwrap(),
        since: now(),
        until: now().plus(HOUR),
        note: AdminNote::new("partner").unwrap(),
        scope: ChangeScope::Node,
    }
}

fn in_both_modes(name: &str) -> [Step; 2] {
    let exact = Step {
        mode: StoreMode::Exact,
        ..banning(&format!("{name}-exact"), 5)
    };
    [banning(&format!("{name}-async"), 5), exact]
}

impl TestNode {
    fn admin(&self) -> StoreAdmin {
        StoreAdmin::new(self.0.store.clone(), Clock::System)
    }

    async fn lists(&self, rule: &Step) -> Vec<ListedBan> {
        let mut bans = self.admin().list_bans(vec![rule.id]).await.unwrap();
        bans.sort_by_key(|ban| ban.until);
        bans
    }

    fn local_end(&self) -> Option<Timestamp> {
        let bans = self.0.store().bans(Clock::System.now());
        bans.first().map(|ban| ban.until)
    }

    async fn bans(&self, rule: &Step, key: &str) {
        let check = ban_check(rule);
        until("the node bans the key", async || {
            !self.admits(&check, key).await
        })
        .await;
    }

    async fn admits_again(&self, rule: &Step, key: &str) {
        let check = ban_check(rule);
        until("the node admits the key", async || {
            self.admits(&check, key).await
        })
        .await;
    }
}

/// One node writes a ban, another ends it and announces that, and only then the first one announces its ban.
#[test]
fn the_last_change_in_the_store_wins_on_all_nodes() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        for rule in in_both_modes("crossing") {
            let change = nodes[0].admin().ban(request(&rule, "k", HOUR)).await;
            let until = change.unwrap().record.until;
            for node in &nodes {
                node.bans(&rule, "k").await;
            }
            let key = FleetKey::new(rule.id, b"k");
            let link = nodes[0].0.link.as_ref().unwrap();
            link.delete_record(key).await.unwrap();
            nodes[0].0.announce_newer(link, key, Some(until)).await;
            for node in &nodes {
                node.admits_again(&rule, "k").await;
            }
            // The other way round: the end is announced, but the store has a ban.
            link.write_ban(key, until, 0).await.unwrap();
            nodes[1].0.announce_newer(link, key, None).await;
            for node in &nodes {
                node.bans(&rule, "k").await;
            }
            link.delete_record(key).await.unwrap();
            nodes[0].0.announce_newer(link, key, Some(until)).await;
        }
    });
}

#[test]
fn a_ban_by_hand_and_its_end_reach_all_nodes_in_both_modes() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<3>(&server).await;
        for rule in in_both_modes("hand") {
            for node in &nodes {
                assert!(node.admits(&rule, "k").await);
            }
            let change = nodes[0]
                .admin()
                .ban(request(&rule, "k", HOUR))
                .await
                .unwrap();
            assert_eq!(change.scope, ChangeScope::Fleet);
            for node in &nodes {
                node.bans(&rule, "k").await;
            }
            let id = BanKey::Id(BanId::of(rule.id, b"k"));
            let removed = nodes[1].admin().unban(rule.id, id.clone()).await.unwrap();
            assert_eq!(removed.record, change.record);
            for node in &nodes {
                node.admits_again(&rule, "k").await;
            }
            let again = nodes[2].admin().unban(rule.id, id.clone()).await;
            assert_eq!(again, Err(AdminError::NotFound));
            // A node that has never seen the key restores the ban by its id.
            let undo = BanRequest {
                key: id,
                terms: removed.record.terms(),
                ..request(&rule, "k", HOUR)
            };
            let restored = nodes[2].admin().ban(undo).await.unwrap();
            assert_eq!(restored, change);
            for node in &nodes {
                node.bans(&rule, "k").await;
            }
            nodes[0]
                .admin()
                .unban(rule.id, BanKey::of(b"k"))
                .await
                .unwrap();
        }
    });
}

#[test]
fn a_cached_ban_is_replaced_by_one_by_hand() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        for rule in in_both_modes("replace") {
            while nodes[0].admits(&rule, "k").await {}
            for node in &nodes {
                node.bans(&rule, "k").await;
            }
            let change = nodes[0]
                .admin()
                .ban(request(&rule, "k", HOUR))
                .await
                .unwrap();
            for node in &nodes {
                until("the node knows the new end", async || {
                    node.admits(&ban_check(&rule), "k").await;
                    node.local_end() == Some(change.record.until)
                })
                .await;
            }
            nodes[1]
                .admin()
                .unban(rule.id, BanKey::of(b"k"))
                .await
                .unwrap();
            for node in &nodes {
                node.admits_again(&rule, "k").await;
            }
        }
    });
}

#[test]
fn every_node_lists_the_bans_of_the_fleet() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        let [_, rule] = in_both_modes("list");
        while nodes[0].admits(&rule, "started").await {}
        let started = nodes[0].0.store().bans(Clock::System.now()).remove(0);
        let cause = "6 × POST /login 401 in 8 s";
        let started = ListedBan {
            cause: Some(cause.into()),
            ..ListedBan::of_entry(started, true)
        };
        nodes[0]
            .0
            .index_started_ban(started.clone(), "h:12345".into());
        let by_hand = nodes[0]
            .admin()
            .ban(request(&rule, "by hand", HOUR))
            .await
            .unwrap()
            .record;
        let started = ListedBan {
            key: ListedKey::Text("h:12345".into()),
            ..started
        };
        until("the index has both", async || {
            nodes[1].lists(&rule).await.len() == 2
        })
        .await;
        for node in &nodes {
            let listed = node.lists(&rule).await;
            assert_eq!(listed.len(), 2);
            assert_eq!(listed[0], by_hand);
            assert!(matches!(&listed[0].by, BanAuthor::Manual(note) if note.as_str() == "scraper"));
            let since = listed[1].since;
            assert_eq!(
                listed[1],
                ListedBan {
                    since,
                    ..started.clone()
                }
            );
        }
        // Its end is gone from the listing of both at once, although the copies are younger than five seconds.
        nodes[0]
            .admin()
            .unban(rule.id, BanKey::of(b"started"))
            .await
            .unwrap();
        assert_eq!(nodes[0].lists(&rule).await.len(), 1);
        until("the other one has heard of it", async || {
            nodes[1].lists(&rule).await.len() == 1
        })
        .await;
    });
}

#[test]
fn many_bans_of_the_fleet_end() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        let [_, rule] = in_both_modes("many");
        for n in 0..100 {
            nodes[0]
                .admin()
                .ban(request(&rule, &n.to_string(), HOUR))
                .await
                .unwrap();
        }
        nodes[1].bans(&rule, "7").await;
        let bans = nodes[1].lists(&rule).await;
        assert_eq!(bans.len(), 100);
        let ids = bans.iter().map(|ban| (ban.rule, ban.ban_id)).collect();
        let change = nodes[1].admin().unban_all(ids).await.unwrap();
        assert_eq!((change.record, change.scope), (100, ChangeScope::Fleet));
        for node in &nodes {
            for key in ["7", "99"] {
                node.admits_again(&rule, key).await;
            }
            until("nothing is listed", async || {
                node.lists(&rule).await.is_empty()
            })
            .await;
        }
    });
}

/// The server deletes the records after the node has given up, and the node then removes the bans from the index.
#[test]
fn bans_that_end_late_are_not_listed() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        let [_, rule] = in_both_modes("late");
        for key in ["k", "l"] {
            let request = request(&rule, key, HOUR);
            nodes[0].admin().ban(request).await.unwrap();
            nodes[1].bans(&rule, key).await;
        }
        let listed = nodes[1].lists(&rule).await;
        let ids = listed.iter().map(|ban| (ban.rule, ban.ban_id)).collect();
        server.signal("STOP");
        let change = nodes[0].admin().unban_all(ids).await.unwrap();
        assert_eq!(change.scope, ChangeScope::Node);
        server.signal("CONT");
        until("no node has or lists the bans", async || {
            nodes[0].0.retry_index().await;
            let is_free = nodes[1].admits(&ban_check(&rule), "k").await
                && nodes[1].admits(&ban_check(&rule), "l").await;
            let listed = [nodes[0].lists(&rule).await, nodes[1].lists(&rule).await];
            is_free && listed.concat().is_empty()
        })
        .await;
    });
}

/// A ban whose record the server has evicted is still listed, and can be ended.
#[test]
fn a_listed_ban_without_a_record_is_ended() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        let [_, rule] = in_both_modes("evicted");
        let change = nodes[0].admin().ban(request(&rule, "k", HOUR)).await;
        nodes[1].bans(&rule, "k").await;
        let link = nodes[0].0.connected_link().unwrap();
        let key = FleetKey::new(rule.id, b"k");
        link.delete_record(key).await.unwrap();
        let removed = nodes[0].admin().unban(rule.id, BanKey::of(b"k")).await;
        assert_eq!(removed, change);
        nodes[1].admits_again(&rule, "k").await;
        assert_eq!(nodes[0].lists(&rule).await, []);
    });
}

#[test]
fn an_exemption_reaches_all_nodes_and_new_ones() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let nodes = start_nodes::<2>(&server).await;
        let added = nodes[0]
            .admin()
            .exempt(exemption("203.0.113.0/24"))
            .await
            .unwrap();
        assert_eq!(added.scope, ChangeScope::Fleet);
        let list = [added.record.clone()];
        let third = TestNode::start(&server.url()).await;
        for node in [&nodes[0], &nodes[1], &third] {
            until("the node knows it", async || {
                node.admin().exemptions() == list
            })
            .await;
        }
        let ended = third
            .admin()
            .end_exemption(added.record.network)
            .await
            .unwrap();
        assert_eq!(ended, added);
        for node in [&nodes[0], &nodes[1], &third] {
            until("the node knows its end", async || {
                node.admin().exemptions().is_empty()
            })
            .await;
        }
    });
}

#[test]
fn a_change_during_an_outage_applies_to_one_node() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let port = server.port;
        let nodes = start_nodes::<2>(&server).await;
        let [_, rule] = in_both_modes("outage");
        while nodes[0].admits(&rule, "cached").await {}
        drop(server);
        until("the node notices the outage", async || nodes[0].is_down()).await;
        let admin = nodes[0].admin();
        let change = admin.ban(request(&rule, "k", HOUR)).await.unwrap();
        assert_eq!(
            (change.scope, change.record.scope),
            (ChangeScope::Node, ChangeScope::Node)
        );
        assert!(!nodes[0].admits(&rule, "k").await);
        assert!(nodes[1].admits(&rule, "k").await);
        let listed = nodes[0].lists(&rule).await;
        let scopes: Vec<_> = listed.iter().map(|ban| ban.scope).collect();
        assert_eq!(scopes, [ChangeScope::Node, ChangeScope::Fleet]);
        let unbanned = admin.unban(rule.id, BanKey::of(b"cached")).await.unwrap();
        assert_eq!(unbanned.scope, ChangeScope::Node);
        assert!(nodes[0].admits(&rule, "cached").await);
        let exemption = exemption("203.0.113.7/32");
        assert_eq!(
            admin.exempt(exemption).await.unwrap().scope,
            ChangeScope::Node
        );

        let _server = TestServer::try_start("redis-server", port, &[]).unwrap();
        until("the node notices the end", async || !nodes[0].is_down()).await;
        // What it has alone stays.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(nodes[0].admin().exemptions().len(), 1);
        assert_eq!(nodes[1].admin().exemptions(), []);
        assert!(!nodes[0].admits(&rule, "k").await);
    });
}

/// Another program has written to the names of the index and of the exemptions.
#[test]
fn names_with_another_type_are_healed_or_skipped() {
    on_a_core(async {
        let server = TestServer::start(&[]);
        let client = redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let [_, rule] = in_both_modes("types");
        let names = super::super::key_names::KeyNames::new("test:");
        for name in names.index(rule.id.identity) {
            redis::cmd("SET")
                .arg(name)
                .arg("x")
                .exec(&mut connection)
                .unwrap();
        }
        let mut garbage = redis::cmd("HSET");
        garbage
            .arg(names.exemptions())
            .arg("10.0.0.0/8")
            .arg("garbage");
        garbage
            .arg("text")
            .arg(&b"\x01"[..])
            .exec(&mut connection)
            .unwrap();
        let [node, other] = start_nodes::<2>(&server).await;
        node.admin().ban(request(&rule, "k", HOUR)).await.unwrap();
        assert_eq!(other.lists(&rule).await.len(), 1);
        assert_eq!(other.admin().exemptions(), []);

        let mut text = redis::cmd("SET");
        text.arg(names.exemptions())
            .arg("x")
            .exec(&mut connection)
            .unwrap();
        let exemption = exemption("10.0.0.0/8");
        assert_eq!(
            node.admin().exempt(exemption).await.unwrap().scope,
            ChangeScope::Fleet
        );
        until("the other node knows it", async || {
            other.admin().exemptions().len() == 1
        })
        .await;
    });
}
