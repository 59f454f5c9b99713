//! `lockgate top` in a pseudo-terminal, against a running gateway.

use super::{CONFIG, Operated, WATCHED, list};
use crate::harness::Terminal;

/// The view of a gateway.
fn top(gateway: &Operated, options: &[&str], width: u16, height: u16) -> Terminal {
    let url = format!("http://{}", gateway.admin);
    let arguments = [&["top", "--admin", &url][..], options].concat();
    let terminal = Terminal::run(&gateway.process.folder, &arguments, width, height);
    terminal.shows("● live");
    terminal
}

/// Bans 203.0.113.7 by the rule `scan`.
fn ban(gateway: &Operated) {
    let scan = gateway.client().from("203.0.113.7").get("/.env");
    scan.times(2).last_is(429);
}

#[test]
fn an_operator_unbans_a_key_and_takes_it_back() {
    let gateway = Operated::run(WATCHED);
    let scan = gateway.client().from("203.0.113.7").get("/.env");
    ban(&gateway);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.shows("▶login");
    assert!(terminal.is_alternate());
    terminal.press("/scan\r");
    terminal.shows("rule 2 of 6");
    terminal.shows("▶203.0.113.7");
    terminal.shows("over 1");
    terminal.shows("Selected    2 × GET /.env");
    terminal.press("u");
    terminal.shows("Unban 203.0.113.7 from scan?  y  n");
    terminal.press("n");
    scan.times(1).all_are(429);
    terminal.press("uy");
    terminal.shows("203.0.113.7 is unbanned. z undoes.");
    scan.times(1).all_are(200);
    terminal.press("z");
    terminal.shows("The ban is restored.");
    scan.times(1).all_are(429);
}

#[test]
fn a_client_is_found_and_exempted() {
    let gateway = Operated::run(WATCHED);
    let scan = gateway.client().from("203.0.113.7").get("/.env");
    ban(&gateway);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.press("/203.0.113.7\r");
    terminal.shows("203.0.113.7, ZZ AS64500. 1 ban applies.");
    terminal.press("U");
    terminal.shows("Unban 203.0.113.7 and exempt it for 1 h?  y  n");
    terminal.press("y");
    terminal.shows("203.0.113.7 is unbanned and is exempt for 1 h. z undoes.");
    terminal.shows("○ Exempt for another");
    scan.times(5).all_are(200);
    terminal.press("z");
    terminal.shows("The ban is restored. The exemption is removed.");
    scan.times(1).all_are(429);
    assert!(list(&gateway.read("/api/exemptions")).is_empty());
    terminal.press("\x1b/192.0.2.9\r");
    terminal.shows("nothing is known about this client");
    terminal.press("b");
    terminal.shows("Bans: 1; all 1");
    terminal.press("w");
    terminal.shows("Client 203.0.113.7");
}

#[test]
fn decisions_of_a_rule_arrive_and_are_explained() {
    let gateway = Operated::run(WATCHED);
    let terminal = top(&gateway, &[], 120, 30);
    terminal.shows("denied");
    terminal.press("d");
    terminal.shows("Decisions, mitigated requests only");
    let get = |path: &str| gateway.client().from("203.0.113.9").get(path);
    get("/denied").times(1).all_are(429);
    terminal.shows("GET /denied");
    terminal.press("\x1b");
    terminal.shows("MATCHED/S");
    terminal.press("/scan\rd");
    terminal.shows("Decisions of scan");
    // The stream is open again when the head is live, and the gateway has the filter.
    terminal.shows("No decision has arrived yet.");
    for number in 0.. {
        get("/denied").times(1).all_are(429);
        get("/.env").times(2).last_is(429);
        if terminal.text().contains("GET /.env") || number == 1000 {
            break;
        }
    }
    terminal.shows("GET /.env");
    assert!(!terminal.text().contains("/denied"), "{}", terminal.text());
    terminal.press("x");
    terminal.shows("decision  – blocked by scan; the client receives 429");
    terminal.shows("VERDICT");
}

#[test]
fn a_ban_without_a_recorded_request_is_not_explained() {
    let gateway = Operated::run(WATCHED);
    let body = r#"{"rule": "scan", "key": "203.0.113.7", "duration": "10m"}"#;
    let banned = gateway.admin().post("/api/mitigations").json(body).send();
    assert_eq!(banned.status, 201);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.press("b");
    terminal.shows("203.0.113.7");
    terminal.press("x");
    terminal.shows("No request of this key was recorded.");
    assert!(
        !terminal.text().contains("forwarded"),
        "{}",
        terminal.text()
    );
}

#[test]
fn the_terminal_is_restored_at_every_end() {
    let gateway = Operated::run(CONFIG);
    for (keys, signal) in [
        ("q", None),
        ("?\x03", None),
        ("", Some("TERM")),
        ("", Some("INT")),
    ] {
        let mut terminal = top(&gateway, &[], 80, 24);
        terminal.press(keys);
        if let Some(name) = signal {
            terminal.signal(name);
        }
        assert_eq!(terminal.ends().code(), Some(0), "{keys:?} {signal:?}");
        assert!(terminal.is_restored(), "{keys:?} {signal:?}");
    }
}

#[test]
fn the_screen_follows_its_size_and_needs_no_other_characters_than_ascii() {
    let gateway = Operated::run(CONFIG);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.shows("15 MIN, MITIGATED");
    terminal.shows("KEYS");
    terminal.resize(59, 20);
    terminal.shows("MITIGATED/S");
    assert!(!terminal.text().contains("15 MIN"), "{}", terminal.text());
    terminal.press("p");
    terminal.shows("paused, ");
    let url = format!("http://{}", gateway.admin);
    let arguments = ["top", "--ascii", "--admin", &url];
    let plain = Terminal::run(&gateway.process.folder, &arguments, 80, 24);
    plain.shows("o live");
    plain.shows(">login/site");
    assert!(plain.text().is_ascii(), "{}", plain.text());
}

#[test]
fn a_lost_gateway_is_said_in_words() {
    let gateway = Operated::run(CONFIG);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.shows("login/site");
    gateway.process.signal("KILL");
    terminal.shows("○ lost, last update ");
    terminal.shows("retrying in ");
    terminal.shows("cannot reach the gateway");
    assert!(terminal.text().contains("login/site"), "values stay");
}

#[test]
fn a_reload_asks_first() {
    let gateway = Operated::run(CONFIG);
    let terminal = top(&gateway, &[], 100, 30);
    terminal.press("r");
    terminal.shows("Reload the configuration?  y  n");
    terminal.press("y");
    terminal.shows("The configuration is reloaded: 2 rules.");
    gateway.process.folder.write("gateway.toml", "nonsense");
    terminal.press("ry");
    terminal.shows("the configuration was refused: gateway.toml:1:");
}
