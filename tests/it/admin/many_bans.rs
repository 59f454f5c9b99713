//! As many bans as the store can hold: listed page by page, searched and ended, while requests are served.

use std::sync::atomic::{AtomicBool, Ordering};

use lockgate::admin;
use lockgate::clock::Timestamp;
use lockgate::store::{AdminNote, BanKey, BanTerms};
use serde_json::Value;

use super::{json, list};
use crate::harness::{Client, Running};

const BANS: u32 = 250_000;
const PAGE: usize = 1_000;
/// The number of pages that are read. Each reads every ban.
const PAGES: usize = 3;

const CONFIG: &str = r#"
[admin]
address = "127.0.0.1:0"
[[rules]]
name = "scan"
mitigate = 'http.request.uri.path eq "/.env"'
key = ["ip.src"]
limit = 1
period = "1h"
duration = "10m"
"#;

/// Ends the requests when the test ends, also when it fails.
struct RequestsEnd<'a>(&'a AtomicBool);

impl Drop for RequestsEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The address with this number.
fn address(number: u32) -> String {
    let [_, a, b, c] = number.to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// Bans all addresses. Each ban ends a second after the one before it.
fn ban_all(gateway: &Running) {
    let live = gateway.gateway().live();
    let (store, now) = (live.process.store.local(), live.process.clock.now());
    let snapshot = live.current.load();
    let (_, rule) = snapshot.rules.iter().next().unwrap();
    for number in 0..BANS {
        let key = BanKey::of(&rule.key.read(&address(number)).unwrap());
        let until = Timestamp::from_secs(now.as_secs() + 3_600 + u64::from(number));
        let terms = BanTerms::by_hand(now, until, AdminNote::new("").unwrap());
        store.add_ban(rule.id, &key, terms, false, now).unwrap();
    }
}

#[test]
fn a_quarter_of_a_million_bans_are_listed_while_requests_are_served() {
    let gateway = Running::with(CONFIG);
    ban_all(&gateway);
    let port = gateway.gateway().admin().borrow().clone().unwrap();
    let admin = Client::admin(port.socket.local_addr().unwrap());
    let read = |path: &str| -> Value { json(&admin.clone().get(path).send()) };
    let is_done = AtomicBool::new(false);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::harness::run(async {
                let _server = admin::start(gateway.gateway());
                _ = stopped.await;
            });
        });
        let served = scope.spawn(|| {
            let mut served = 0;
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(gateway.client().get("/").send().status, 200);
                served += 1;
            }
            served
        });
        let end = RequestsEnd(&is_done);
        let mut cursor = String::new();
        let mut expected = (0..BANS).rev().map(address);
        for _ in 0..PAGES {
            let page = read(&format!("/api/mitigations?limit={PAGE}&cursor={cursor}"));
            assert_eq!((&page["total"], &page["all"]), (&BANS.into(), &BANS.into()));
            let keys = list(&page["items"]).iter();
            let keys: Vec<_> = keys.map(|item| item["key"].as_str().unwrap()).collect();
            assert_eq!(keys, expected.by_ref().take(PAGE).collect::<Vec<_>>());
            cursor = page["next"].as_str().unwrap().to_owned();
        }
        let found = read("/api/mitigations?q=10.3.208.");
        assert_eq!(found["total"], 144);
        let ended = admin
            .clone()
            .method("DELETE", "/api/mitigations?q=10.3.208.");
        assert_eq!(json(&ended.send())["removed"], 144);
        assert_eq!(read("/api/status")["store"]["bans"], BANS - 144);
        drop(end);
        assert!(served.join().unwrap() > 0);
        drop(stop);
    });
}
