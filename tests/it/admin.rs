//! The admin port over real sockets: access, limits, streams, and what its endpoints return and change.

mod access;
mod bans;
mod commands;
mod docs;
mod endpoints;
mod explain;
mod figures;
mod many_bans;
mod streams;
mod top;

use std::net::SocketAddr;

use serde_json::Value;

use crate::harness::{Answer, Client, Process};

/// A gateway with an admin port, two rules and a disabled one.
const CONFIG: &str = r#"
[server]
workers = 1
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
[[rules]]
name = "login/site"
mitigate = 'http.request.uri.path eq "/login"'
key = ["ip.src"]
limit = 2
period = "1m"
algorithm = "token_bucket"
candidate = { limit = 1 }
[[rules]]
name = "off"
mitigate = 'http.request.uri.path eq "/off"'
enabled = false
[[rules]]
name = "scan"
mitigate = 'http.request.uri.path eq "/.env"'
key = ["ip.src"]
limit = 1
period = "1h"
duration = "10m"
dry_run = true
"#;

/// A gateway that knows its clients' addresses. With one worker, what it records arrives in order.
const WATCHED: &str = r#"
[server]
workers = 1
[log]
access = "off"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[geo.overrides]
"203.0.113.0/24" = { asn = 64500, country = "ZZ" }
[admin]
address = "127.0.0.1:0"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
[[rules]]
name = "login"
mitigate = 'http.request.uri.path eq "/login"'
key = ["ip.src", 'http.request.cookies["sid"]']
limit = 2
period = "1h"
candidate = { limit = 1 }
[[rules]]
name = "scan"
mitigate = 'http.request.uri.path eq "/.env"'
key = ["ip.src"]
limit = 1
period = "1h"
duration = "10m"
[[rules]]
name = "share"
mitigate = 'http.request.uri.path eq "/share"'
key = ["ip.src", "http.user_agent"]
limit = 1
period = "1h"
duration = "10m"
[[rules]]
name = "session"
mitigate = 'http.request.uri.path eq "/session"'
key = ['http.request.cookies["sid"]']
limit = 1
period = "1h"
duration = "10m"
[[rules]]
name = "trial"
mitigate = 'http.request.uri.path eq "/trial"'
key = ["ip.src"]
limit = 1
period = "1h"
dry_run = true
[[rules]]
name = "denied"
mitigate = 'http.request.uri.path eq "/denied"'
"#;

/// A running gateway with its admin port.
struct Operated {
    process: Process,
    admin: SocketAddr,
}

impl Operated {
    fn run(config: &str) -> Self {
        let process = Process::run(config);
        let admin = process.admin();
        Self { process, admin }
    }

    /// A client of the admin port.
    fn admin(&self) -> Client {
        Client::admin(self.admin)
    }

    /// A client of the first listener.
    fn client(&self) -> Client {
        Client::plain(self.process.address(0))
    }

    /// The object at a path.
    #[track_caller]
    fn read(&self, path: &str) -> Value {
        let answer = self.admin().get(path).send();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        json(&answer)
    }
}

/// The values of a list.
#[track_caller]
fn list(value: &Value) -> &Vec<Value> {
    let list = value.as_array();
    list.unwrap_or_else(|| panic!("no list: {value}"))
}

/// The body of a response.
#[track_caller]
fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}
