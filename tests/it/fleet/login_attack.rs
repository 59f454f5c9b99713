//! An attack on the login preset of a fleet whose store goes away. The alarm goes on, and known devices notice nothing.

use std::cell::Cell;

use super::fleet_gateway::{FleetConfig, FleetGateway};
use super::server::TestServer;
use crate::harness::{Client, Origin, wait_until};
use crate::presets::{log_in, password_origin};

const RULES: &str = r#"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[[protect]]
kind = "login"
path = "/login"
user_field = "user"
rules.site = { limit = 10 }
"#;

/// A site behind two gateways, with customers whose devices are known.
struct AttackedSite {
    gateways: [FleetGateway; 2],
    /// The cookies of the customers.
    cookies: Vec<String>,
    guesses: Cell<u32>,
    _origin: Origin,
}

#[test]
fn known_devices_log_in_during_an_attack_and_an_outage() {
    for mode in ["exact", "async"] {
        let server = TestServer::start(&[]);
        let site = AttackedSite::start(&server, mode);
        site.is_attacked_until("both gateways challenge", || site.is_alarmed());

        let port = server.port;
        drop(server);
        site.is_attacked_until("both gateways notice the outage", || {
            site.gateways.iter().all(FleetGateway::is_down)
        });
        // The ban is known without the store.
        assert!(site.is_alarmed(), "{mode}");

        // It comes back empty.
        let _server = TestServer::try_start("redis-server", port, &[]).unwrap();
        site.is_attacked_until("both gateways use the store again", || {
            !site.gateways.iter().any(FleetGateway::is_down)
        });
        site.is_attacked_until("both gateways challenge", || site.is_alarmed());
        println!("{mode}: {} guesses", site.guesses.get());
    }
}

// === impl AttackedSite ===

impl AttackedSite {
    fn start(server: &TestServer, mode: &str) -> Self {
        let origin = password_origin();
        let store = format!("mode = \"{mode}\"\ntimeout = \"500ms\"");
        let config = FleetConfig::new(&server.url(), RULES)
            .store(&store)
            .upstream("/login", origin.address);
        let gateways = [config.start(), config.start()];
        let customer = |number: usize| {
            let user = format!("customer{number}");
            let client = gateways[number % 2].client().from("192.0.2.1");
            let answer = log_in(client, &user, "right").send();
            let cookie = answer.header("set-cookie").unwrap();
            cookie.split(';').next().unwrap().to_owned()
        };
        let cookies = (0..4).map(customer).collect();
        Self {
            gateways,
            cookies,
            guesses: Cell::new(0),
            _origin: origin,
        }
    }

    /// Sends guesses and logins of all customers to both gateways until `is_so`. No customer may be refused.
    #[track_caller]
    fn is_attacked_until(&self, what: &str, is_so: impl Fn() -> bool) {
        wait_until(what, || {
            self.guess();
            self.customers_log_in();
            is_so()
        });
    }

    /// Sends a guess to each gateway, from new addresses, and returns the statuses.
    fn guess(&self) -> [u16; 2] {
        self.gateways.each_ref().map(|gateway| {
            let number = self.guesses.replace(self.guesses.get() + 1);
            let [_, a, b, c] = number.to_be_bytes();
            let client = secure(gateway).from(&format!("10.{a}.{b}.{c}"));
            let answer = log_in(client, &format!("victim{number}"), "guess").send();
            assert!(matches!(answer.status, 401 | 429), "{}", answer.status);
            answer.status
        })
    }

    /// Whether both gateways challenge new devices.
    fn is_alarmed(&self) -> bool {
        self.guess() == [429, 429]
    }

    #[track_caller]
    fn customers_log_in(&self) {
        for (number, cookie) in self.cookies.iter().enumerate() {
            for gateway in &self.gateways {
                let client = secure(gateway).from("192.0.2.1").header("cookie", cookie);
                let answer = log_in(client, &format!("customer{number}"), "right").send();
                assert_eq!(answer.status, 204, "{}", answer.text());
            }
        }
    }
}

/// A client of a trusted proxy that terminates TLS.
fn secure(gateway: &FleetGateway) -> Client {
    gateway.client().header("x-forwarded-proto", "https")
}
