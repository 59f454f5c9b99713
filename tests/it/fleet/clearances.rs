//! Clearances in a fleet: what one gateway has signed, all accept and count together, also while secrets change.

use super::fleet_gateway::{FleetConfig, FleetGateway};
use super::server::TestServer;
use crate::harness::{Challenge, Client, wait_until};

/// Requests of one clearance for `/p/counted` start a ban below `/p/`.
const RULES: &str = r#"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[challenge]
[[rules]]
name = "pages"
mitigate = 'starts_with(http.request.uri.path, "/p/")'
action = "challenge"
[[rules]]
name = "per-clearance"
count = 'http.request.uri.path eq "/p/counted"'
mitigate = 'starts_with(http.request.uri.path, "/p/")'
key = ["client.clearance"]
missing = "skip"
limit = 3
period = "1h"
duration = "1h"
action = "challenge"
"#;

fn config(server: &TestServer, mode: &str) -> FleetConfig {
    // Long enough for a busy machine: no call may time out.
    let store = format!("mode = \"{mode}\"\ntimeout = \"5s\"");
    FleetConfig::new(&server.url(), RULES).store(&store)
}

fn client(gateway: &FleetGateway) -> Client {
    Client::tls(gateway.process.address(1))
}

fn challenge(gateway: &FleetGateway) -> Challenge {
    Challenge::request(&client(gateway), "/p/")
}

fn status(gateway: &FleetGateway, cookie: &str, path: &str) -> u16 {
    let client = client(gateway).header("cookie", cookie);
    client.get(path).send().status
}

#[test]
fn a_clearance_of_one_gateway_is_valid_and_counted_on_the_others() {
    for mode in ["exact", "async"] {
        let server = TestServer::start(&[]);
        let config = config(&server, mode);
        let fleet = [config.start(), config.start()];
        let [first, second] = &fleet;
        // No gateway keeps a challenge, so the other one can verify it.
        let challenge = challenge(first);
        let cookie = challenge.clear(&client(second));
        assert_eq!(challenge.clear(&client(first)), cookie);
        for gateway in &fleet {
            assert_eq!(status(gateway, &cookie, "/p/"), 200, "{mode}");
        }

        let turns = fleet.iter().cycle().take(1000);
        let admitted = turns
            .take_while(|gateway| status(gateway, &cookie, "/p/counted") == 200)
            .count();
        println!("{mode}: {admitted} admitted");
        // In async mode, a gateway learns of the other's requests with its next exchange.
        let is_right = match mode {
            "exact" => admitted == 3,
            _ => (3..1000).contains(&admitted),
        };
        assert!(is_right, "{mode}: {admitted}");
        // No gateway counts these, so a gateway that refuses them knows the ban of the fleet.
        for gateway in &fleet {
            wait_until("the clearance is banned", || {
                status(gateway, &cookie, "/p/other") == 429
            });
        }
        let banned = client(second).header("cookie", &cookie);
        let other = Challenge::request(&banned, "/p/").clear(&client(second));
        assert_ne!(other, cookie);
        for gateway in &fleet {
            assert_eq!(status(gateway, &other, "/p/counted"), 200, "{mode}");
            assert_eq!(gateway.all_errors(), 0.0);
        }
    }
}

#[test]
fn secrets_change_without_a_second_challenge() {
    let server = TestServer::start(&[]);
    let config = config(&server, "exact");
    let (first, second) = (config.start(), config.start());
    let both = [&first, &second];
    let [old, new] = [1, 2].map(|byte: u8| format!("{byte:02x}").repeat(32) + "\n");
    let set = |gateway: &FleetGateway, secrets: &[&str]| {
        gateway.process.folder.write("secret", secrets.concat());
        gateway.process.reload(&config.text());
        assert_eq!(gateway.logged("reload refused").len(), 0);
    };
    let all_are = |cookie: &str, expected: u16| {
        for gateway in both {
            assert_eq!(status(gateway, cookie, "/p/"), expected);
        }
    };
    for gateway in both {
        set(gateway, &[&old]);
    }
    let before = challenge(&first).clear(&client(&second));
    all_are(&before, 200);

    // 1. The new secret verifies, one gateway after the other.
    set(&first, &[&old, &new]);
    let during = challenge(&first).clear(&client(&second));
    all_are(&during, 200);
    set(&second, &[&old, &new]);

    // 2. The new secret signs, one gateway after the other. They sign clearances of one solution differently.
    set(&second, &[&new, &old]);
    let challenge = challenge(&second);
    let by_old = challenge.clear(&client(&first));
    let by_new = challenge.clear(&client(&second));
    assert_ne!(by_old, by_new);
    for cookie in [&before, &during, &by_old, &by_new] {
        all_are(cookie, 200);
    }
    // But they count them together.
    let counted = [
        (&first, &by_old),
        (&second, &by_new),
        (&first, &by_new),
        (&second, &by_old),
    ];
    let statuses = counted.map(|(gateway, cookie)| status(gateway, cookie, "/p/counted"));
    assert_eq!(statuses, [200, 200, 200, 429]);
    set(&first, &[&new, &old]);
    let after = self::challenge(&first).clear(&client(&first));
    all_are(&before, 200);

    // 3. Without the old secret, its clearances are invalid.
    set(&first, &[&new]);
    assert_eq!(status(&first, &before, "/p/"), 429);
    assert_eq!(status(&second, &before, "/p/"), 200);
    set(&second, &[&new]);
    all_are(&before, 429);
    all_are(&after, 200);
}
