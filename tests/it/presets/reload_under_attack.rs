//! Reloads during an attack that a preset stops: the alarm and the counters stay, and no request fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{log_in, password_origin};
use crate::fleet::avoid_the_end_of_the_day;
use crate::harness::{Client, Origin, Process};

const RELOADS: usize = 12;

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[admin]
address = "127.0.0.1:0"
[client_ip]
trusted_proxies = ["127.0.0.1/32"]
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "origin"
servers = ["{origin}"]
[[routes]]
upstream = "origin"
[[protect]]
kind = "login"
path = "/login"
user_field = "user"
rules.site = { limit = {limit} }
rules.ceiling = { period = "24h" }
"#;

fn config(origin: &Origin, limit: usize) -> String {
    let address = origin.address.to_string();
    CONFIG
        .replace("{origin}", &address)
        .replace("{limit}", &limit.to_string())
}

/// A client at this address, behind a proxy that terminates TLS.
fn client(gateway: &Process, address: &str) -> Client {
    let client = Client::plain(gateway.address(0)).from(address);
    client.header("x-forwarded-proto", "https")
}

/// A guess from a new address.
fn guess(gateway: &Process, number: usize) -> u16 {
    let address = format!("10.0.{}.{}", number / 250, number % 250);
    let client = client(gateway, &address);
    log_in(client, &format!("victim{number}"), "guess")
        .send()
        .status
}

/// Sends requests until the flag is set, and returns their statuses.
fn send_until(has_ended: &AtomicBool, send: impl Fn(usize) -> u16) -> Vec<u16> {
    let running = (0..).take_while(|_| !has_ended.load(Ordering::SeqCst));
    running.map(send).collect()
}

/// The failures that the rule with a limit per day has counted.
fn failures(gateway: &Process) -> String {
    let metrics = Client::admin(gateway.admin()).get("/metrics").send().text();
    let series = "lockgate_rule_count{rule=\"login/ceiling\"} ";
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(series));
    value.unwrap().to_owned()
}

#[test]
fn the_alarm_survives_reloads() {
    avoid_the_end_of_the_day();
    let origin = password_origin();
    let gateway = Process::run(&config(&origin, 10));
    let first = log_in(client(&gateway, "192.0.2.1"), "alice", "right").send();
    let cookie = first.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let statuses: Vec<u16> = (0..12).map(|number| guess(&gateway, number)).collect();
    assert_eq!(statuses, [vec![401; 11], vec![429]].concat());
    let (counted, forwarded) = (failures(&gateway), origin.count());
    assert_eq!(counted, "11");

    let has_ended = AtomicBool::new(false);
    let attack = |first: usize| {
        let send = |number| guess(&gateway, first + number % 10_000);
        send_until(&has_ended, send)
    };
    let customer = |_| {
        let client = client(&gateway, "192.0.2.1").header("cookie", &cookie);
        log_in(client, "alice", "right").send().status
    };
    let (guesses, logins) = thread::scope(|scope| {
        let attacks = [20_000, 40_000].map(|first| scope.spawn(move || attack(first)));
        let customer = scope.spawn(|| send_until(&has_ended, customer));
        for number in 0..RELOADS {
            gateway.reload(&config(&origin, 10 + number % 2));
        }
        has_ended.store(true, Ordering::SeqCst);
        let guesses = attacks.map(|attack| attack.join().unwrap()).concat();
        (guesses, customer.join().unwrap())
    });
    println!("{} guesses, {} logins", guesses.len(), logins.len());
    assert_eq!(gateway.logged(" reloaded ").len(), RELOADS);
    assert!(guesses.len() > RELOADS && logins.len() > RELOADS);
    assert!(guesses.iter().all(|status| *status == 429), "{guesses:?}");
    assert!(logins.iter().all(|status| *status == 204), "{logins:?}");
    assert_eq!(origin.count() - forwarded, logins.len());
    assert_eq!(failures(&gateway), counted);
}
