//! What an operator changes: bans, exemptions, servers, the configuration.

use super::super::Browser;
use super::fixture::{Dashboard, ESCAPE, assert_no_problem};
use crate::harness::wait_until;

fn click(browser: &Browser, css: &str) {
    wait_until(&format!("{css} appears"), || browser.find(css).is_some());
    browser.find(css).unwrap().click();
}

/// Clicks the button with this text, in the part of the page that `css` selects.
fn click_button(browser: &Browser, css: &str, text: &str) {
    let script = format!(
        "const found = [...document.querySelectorAll('{css} button')].find((b) => b.textContent.startsWith('{text}'));
         found?.click(); return found !== undefined;"
    );
    wait_until(&format!("the button {text:?} appears"), || {
        browser.run(&script) == true
    });
}

fn open_client(browser: &Browser, query: &str) {
    browser.press("/");
    browser.focused().enter(query);
    browser.press(super::ENTER);
    wait_until("the dialog opens", || {
        browser.find("#details[open]").is_some()
    });
}

#[test]
fn an_unbanned_row_stays_with_undo() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.ban("203.0.113.7");
    dashboard.open(&browser);
    let row = ".bans tbody tr:first-child";
    click(&browser, ".bans tbody tr:first-child .small");
    wait_until("the row offers Undo", || {
        let text = browser.find(row).unwrap().text();
        text.contains("Undo") && text.contains("unbanned")
    });
    assert!(!dashboard.is_banned("203.0.113.7"));
    click(&browser, ".bans tbody tr:first-child .small");
    wait_until("the ban is restored", || dashboard.is_banned("203.0.113.7"));
    wait_until("the row offers Unban", || {
        browser.find(row).unwrap().text().contains("Unban")
    });
    assert_no_problem(&browser);
}

#[test]
fn bans_are_searched_and_unbanned_together() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    for address in ["203.0.113.7", "203.0.113.8", "192.0.2.1"] {
        dashboard.ban(address);
    }
    dashboard.open(&browser);
    browser.press("b");
    browser.focused().enter("203.0.113");
    browser.wait_for_text("2 found");
    click_button(&browser, "#bans", "Unban all 2");
    browser.wait_for_text("Unban 2 keys?");
    click_button(&browser, "#question", "Unban 2");
    browser.wait_for_text("2 keys unbanned.");
    assert!(!dashboard.is_banned("203.0.113.8"));
    assert!(dashboard.is_banned("192.0.2.1"));
    assert_no_problem(&browser);
}

#[test]
fn a_client_is_exempted_and_not_banned_again() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.ban("203.0.113.7");
    dashboard.open(&browser);
    open_client(&browser, "203.0.113.7");
    click_button(&browser, "#details", "Unban and exempt for 1 h");
    browser.wait_for_text("203.0.113.7 is unbanned and is exempt for 1 h.");
    let login = dashboard.client("203.0.113.7").wants(401).post("/login");
    login.times(10).all_are(401);
    click_button(&browser, "#bans-views", "Exempt 1");
    click_button(&browser, ".bans", "Remove");
    browser.wait_for_text("203.0.113.7 is no longer exempt.");
    login.times(7).last_is(200);
    assert_no_problem(&browser);
}

#[test]
fn a_decision_is_explained() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    let traffic = dashboard.attack();
    wait_until("a decision arrives", || {
        browser.find(".decisions .chip.shadow").is_some()
    });
    drop(traffic);
    let explain = "[...document.querySelectorAll('.decisions tbody tr')].find((r) => r.querySelector('.shadow')).querySelector('small .link').click()";
    browser.run(explain);
    browser.wait_for_text("by stuffing; the client receives 200");
    let explanation = browser.find("#explanation").unwrap().text();
    assert!(explanation.contains("searching"), "{explanation}");
    assert_no_problem(&browser);
}

#[test]
fn the_last_server_is_drained_only_after_a_question() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    click_button(&browser, "#upstreams", "Drain");
    browser.wait_for_text("Drain the last server of site?");
    browser.press(ESCAPE);
    wait_until("the question is closed", || {
        browser.find("#question[open]").is_none()
    });
    assert_eq!(dashboard.client("192.0.2.1").get("/").send().status, 200);
    click_button(&browser, "#upstreams", "Drain");
    click_button(&browser, "#question", "Drain");
    browser.wait_for_text("drains: it takes no new requests.");
    wait_until("no server takes requests", || {
        dashboard.client("192.0.2.1").get("/").send().status == 503
    });
    click_button(&browser, "#upstreams", "Ready");
    wait_until("the server takes requests", || {
        dashboard.client("192.0.2.1").get("/").send().status == 200
    });
    assert_no_problem(&browser);
}

#[test]
fn a_refused_reload_shows_its_errors() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    let wrong = dashboard
        .config()
        .replace("uri.path eq \"/search\"", "uri.pth eq \"/search\"");
    dashboard.gateway.reload(&wrong);
    browser.wait_for_text("The last reload was refused");
    browser.wait_for_text("reload refused");
    click(&browser, "#tile-config button");
    browser.wait_for_text("unknown field `http.request.uri.pth`");
    browser.wait_for_text("^^^^");
    browser.save_screenshot("dashboard-reload-refused");
    dashboard.gateway.reload(&dashboard.config());
    click_button(&browser, "#details", "Reload again");
    browser.wait_for_text("The configuration is reloaded: 2 rules.");
    wait_until("the tile is calm", || {
        browser.find("#tile-config.crit").is_none()
    });
    assert_no_problem(&browser);
}
