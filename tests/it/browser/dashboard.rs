//! The dashboard as an operator uses it, with real traffic.

mod attack;
mod changes;
mod fixture;
mod pictures;
mod quality;
mod states;

use std::time::Duration;

use self::fixture::{Dashboard, ENTER, assert_no_problem};
use super::Browser;
use crate::harness::wait_until;

/// The number in the first element that matches. 0: there is none yet.
fn number(browser: &Browser, css: &str) -> f64 {
    let text = browser
        .find(css)
        .map(|element| element.text())
        .unwrap_or_default();
    text.replace(',', "").parse().unwrap_or(0.0)
}

#[test]
fn figures_move_under_traffic() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    assert_eq!(number(&browser, "#tile-requests .big"), 0.0);
    let traffic = dashboard.attack();
    wait_until("requests are counted", || {
        number(&browser, "#tile-requests .big") > 5.0
    });
    wait_until("a rule matches and mitigates", || {
        let cell = |column| {
            let css = format!("tbody:has(#rule-panel-stuffing) td:nth-child({column})");
            number(&browser, &css)
        };
        cell(6) > 0.5 && cell(7) > 0.5 && cell(8) >= 1.0 && cell(9) >= 1.0
    });
    wait_until("decisions arrive", || {
        browser.find(".decisions .chip.shadow").is_some()
    });
    wait_until("a ban is listed", || {
        browser
            .find(".bans tbody")
            .is_some_and(|rows| rows.text().contains("203.0.113."))
    });
    let share = || {
        let width =
            browser.run("return parseFloat(document.querySelector('.split .shadow').style.width)");
        width.as_f64().unwrap_or_default()
    };
    wait_until("the share of shadow responses is shown", || share() > 1.0);
    let area = "return document.querySelector('#chart .area.shadow').getAttribute('d').length";
    assert!(browser.run(area).as_u64() > Some(100));
    // A dry run is counted in parentheses, and never as mitigated.
    wait_until("the dry run would act", || {
        browser
            .find("tbody:has(#rule-panel-searching) td:nth-child(7)")
            .is_some_and(|cell| cell.text().starts_with('('))
    });
    std::thread::sleep(Duration::from_secs(3));
    browser.save_screenshot("dashboard-attack");
    drop(traffic);
    assert_no_problem(&browser);
}

#[test]
fn a_rule_opens_with_its_hottest_keys() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.ban("203.0.113.7");
    dashboard.open(&browser);
    browser
        .find("[aria-controls=rule-panel-stuffing]")
        .unwrap()
        .click();
    wait_until("the banned key is listed", || {
        browser
            .find("#rule-panel-stuffing .keys tbody")
            .is_some_and(|keys| {
                keys.text().contains("203.0.113.7") && keys.text().contains("Unban")
            })
    });
    let panel = browser.find("#rule-panel-stuffing").unwrap().text();
    for expected in ["5 / 1m", "below 10 %", "over", "http.response.code"] {
        assert!(panel.contains(expected), "{expected}: {panel}");
    }
    browser
        .find("#rule-panel-stuffing .keys button")
        .unwrap()
        .click();
    browser.wait_for_text("203.0.113.7 is unbanned.");
    assert!(!dashboard.is_banned("203.0.113.7"));
    assert_no_problem(&browser);
}

#[test]
fn a_client_is_found_and_unbanned_with_the_keyboard_alone() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.ban("203.0.113.7");
    dashboard.open(&browser);
    browser.press("/");
    assert_eq!(
        browser.focused().label(),
        "Find a client by address, key or request id"
    );
    browser.focused().enter("203.0.113.7");
    browser.press(ENTER);
    wait_until("the dialog offers to unban", || {
        browser.focused().label() == "Unban"
    });
    let dialog = browser.find("#details").unwrap().text();
    assert!(dialog.contains("1 ban applies now."), "{dialog}");
    assert!(dialog.contains("POST /login"), "{dialog}");
    browser.save_screenshot("dashboard-client");
    browser.press(ENTER);
    browser.wait_for_text("203.0.113.7 is unbanned.");
    assert!(!dashboard.is_banned("203.0.113.7"));
    // The same key undoes everywhere.
    browser.press("z");
    wait_until("the ban is restored", || dashboard.is_banned("203.0.113.7"));
    assert_no_problem(&browser);
}

#[test]
fn keys_lead_to_the_sections() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    dashboard.open(&browser);
    let section = || browser.run("return document.activeElement.closest('section')?.id ?? ''");
    for (key, id) in [("b", "bans"), ("r", "rules"), ("e", "explain")] {
        browser.run("document.activeElement.blur()");
        browser.press(key);
        assert_eq!(section(), id);
    }
    // No shortcut acts while the user types.
    browser.press("p");
    let pressed = "return document.querySelector('#pause').getAttribute('aria-pressed')";
    assert_eq!(browser.run(pressed), "false");
    browser.run("document.activeElement.blur()");
    browser.press("p");
    assert_eq!(browser.run(pressed), "true");
    browser.wait_for_text("Paused");
    browser.run("document.querySelector('#chart').focus()");
    let time = "return document.querySelector('#chart').ariaValueNow";
    browser.press("\u{e012}");
    assert_eq!(browser.run(time), "178");
    browser.press("\u{e00e}");
    assert_eq!(browser.run(time), "166");
    assert_no_problem(&browser);
}
