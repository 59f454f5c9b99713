//! Pictures of the dashboard during an attack, among them the one in the README.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::super::{Browser, Element};
use super::attack::AttackScene;
use super::fixture::{ENTER, assert_no_problem, open_page, resize, set_theme, wait_until_live};
use crate::harness::wait_until;

/// How long the attack lasts.
const SHORT: Duration = Duration::from_secs(40);
/// How long it lasts for the README: it fills the chart.
const WHOLE_CHART: Duration = Duration::from_secs(15 * 60 + 10);
/// The picture of the README. `UPDATE_PICTURE=1` writes it.
const PICTURE: &str = "docs/dashboard.png";
const WIDTH: u32 = 1440;
const MAX_BYTES: u64 = 300_000;

/// What the page says during the attack.
const EXPECTED: [&str; 12] = [
    "login-stuffing shadows",
    "The last reload was refused",
    "is unhealthy",
    "reload refused",
    "shop.example",
    "days left",
    "python-requests/2.32",
    "AS64501",
    "challenged",
    "shadowed",
    "closed",
    "By hand 1",
];

#[test]
fn pictures_of_an_attack() {
    let is_for_readme = std::env::var_os("UPDATE_PICTURE").is_some();
    let scene = AttackScene::start(if is_for_readme { WHOLE_CHART } else { SHORT });
    scene.play_calm();
    let browser = Browser::start();
    browser.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    set_theme(&browser, "dark");
    open_page(&browser, &scene.url(), WIDTH, 900);
    wait_until_live(&browser);
    save_page(&browser, WIDTH, "calm");
    scene.play_attack();
    for text in EXPECTED {
        wait_patiently_for(&browser, text);
    }
    for layer in ["forward", "delay", "challenge", "shadow", "block"] {
        let rate =
            format!("return document.querySelector('#legend .{layer}').parentElement.innerText");
        wait_until(&format!("there are decisions of {layer}"), || {
            browser
                .run(&rate)
                .as_str()
                .is_some_and(|text| !text.ends_with(" 0"))
        });
    }
    save_top(&browser, is_for_readme);
    for theme in ["light", "dark"] {
        set_theme(&browser, theme);
        for width in [360, 900, WIDTH] {
            save_page(&browser, width, &format!("attack-{width}-{theme}"));
        }
    }
    save_details(&browser);
    assert_no_problem(&browser);
}

/// Waits until the page shows `text`, up to a minute: a slow machine sends the attack late.
#[track_caller]
fn wait_patiently_for(browser: &Browser, text: &str) {
    for _ in 0..300 {
        if browser.text().contains(text) {
            return;
        }
        sleep(Duration::from_millis(200));
    }
    panic!("the page does not show {text:?}: {}", browser.text());
}

/// Saves the page down to the end of the rules: the picture of the README.
fn save_top(browser: &Browser, is_for_readme: bool) {
    let end =
        "return document.querySelector('#rules').getBoundingClientRect().bottom + scrollY + 14";
    let height = browser.run(end).as_f64().unwrap();
    resize(browser, WIDTH, height as u32);
    let picture = browser.save_screenshot("attack");
    if is_for_readme {
        fs::copy(picture, root().join(PICTURE)).unwrap();
    }
}

/// Saves the whole page.
fn save_page(browser: &Browser, width: u32, name: &str) {
    resize(browser, width, 900);
    let height = browser.run("return document.documentElement.scrollHeight");
    resize(browser, width, height.as_u64().unwrap() as u32);
    // The chart follows the size of its box in the next frame.
    browser.wait_for(
        "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
    browser.save_screenshot(name);
}

/// Saves what opens on demand: rules, a client, Undo, an explanation, the errors of a reload.
fn save_details(browser: &Browser) {
    resize(browser, WIDTH, 900);
    for rule in ["login-stuffing", "plan-silver"] {
        find(browser, &format!("[aria-controls=rule-panel-{rule}]")).click();
        wait_until("the keys are listed", || {
            browser
                .find(&format!("#rule-panel-{rule} .keys tbody tr"))
                .is_some()
        });
    }
    save_page(browser, WIDTH, "attack-rules");
    save_page(browser, 360, "attack-rules-360");
    resize(browser, WIDTH, 900);
    browser.run("document.activeElement.blur(); scrollTo(0, 0)");
    browser.press("/");
    browser.focused().enter("203.0.113.");
    browser.press(ENTER);
    wait_until("the dialog opens", || {
        browser.find("#details[open]").is_some()
    });
    browser.save_screenshot("attack-unknown-client");
    find(browser, "#details .quiet").click();
    find(browser, ".decisions .link.mono").click();
    wait_until("the client is shown", || {
        browser.find("#details[open]").is_some()
    });
    browser.save_screenshot("attack-client");
    find(browser, "#details .row button:nth-child(2)").click();
    wait_until("the request is explained", || {
        browser.find("#explanation .why").is_some()
    });
    browser.save_screenshot("attack-explained");
    find(browser, ".bans .small").click();
    browser.wait_for_text("unbanned");
    browser.run("document.querySelector('#bans').scrollIntoView()");
    browser.save_screenshot("attack-undo");
    browser.run("scrollTo(0, 0)");
    find(browser, "#tile-config button").click();
    browser.wait_for_text("unknown field `http.request.uri.pth`");
    browser.save_screenshot("attack-reload-refused");
}

#[track_caller]
fn find<'a>(browser: &'a Browser, css: &str) -> Element<'a> {
    browser.find(css).unwrap_or_else(|| panic!("{css}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_picture_of_the_readme_is_small() {
    let png = fs::read(root().join(PICTURE)).unwrap();
    // The width of an image is behind the signature and the name of the first chunk.
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert_eq!(width, WIDTH);
    assert!(png.len() as u64 <= MAX_BYTES, "{} bytes", png.len());
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(PICTURE));
}
