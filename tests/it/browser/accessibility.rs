//! The page of the challenge for people who use a keyboard, a screen reader, or strong contrasts.

use serde_json::json;

use super::Browser;
use super::challenge::Site;
use crate::harness::wait_until;

const TAB: &str = "\u{e004}";

#[test]
fn the_page_is_accessible() {
    let (site, browser) = (Site::start(), Browser::start());
    site.open_stopped(&browser);
    wait_until("the page stops", || {
        browser.find("button:not([hidden])").is_some()
    });
    let heading = browser.find("h1").unwrap();
    assert_eq!(
        (heading.role(), heading.label()),
        ("heading".into(), "Browser check".into())
    );
    assert_eq!(browser.find("main").unwrap().role(), "main");
    let status = browser.find("[role=status]").unwrap();
    assert_eq!(status.role(), "status");
    assert!(!status.text().is_empty());
    assert_eq!(browser.run("return document.documentElement.lang"), "en");
    assert_eq!(browser.run("return document.title"), "Browser check");
    // From anywhere, one key leads to the only control.
    browser.run("const h = document.querySelector('h1'); h.tabIndex = -1; h.focus()");
    browser.press(TAB);
    assert_eq!(browser.focused().label(), "Try again");
    for scheme in ["light", "dark"] {
        set_color_scheme(&browser, scheme);
        let contrasts = browser.run(CONTRASTS);
        browser.save_screenshot(&format!("challenge-{scheme}"));
        let contrasts = contrasts.as_array().unwrap();
        assert_eq!(contrasts.len(), 4);
        // WCAG 2.2, success criterion 1.4.3.
        assert!(
            contrasts.iter().all(|ratio| ratio.as_f64().unwrap() >= 4.5),
            "{scheme}: {contrasts:?}"
        );
        breaks_no_rule_of_axe(&browser);
    }
    // WCAG 2.2, success criterion 1.4.10: no scrolling sideways at 320 pixels.
    let phone = json!({"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": true});
    browser.devtools("Emulation.setDeviceMetricsOverride", phone);
    browser.save_screenshot("challenge-narrow");
    assert_eq!(
        browser.run("return document.documentElement.scrollWidth"),
        320
    );
}

/// A page whose solutions are lost tries again some times, and says so.
#[test]
fn the_page_is_accessible_while_it_works() {
    let (site, browser) = (Site::start(), Browser::start());
    browser.open(&site.url("/free"));
    browser.devtools("Network.enable", json!({}));
    let lost = json!({"urls": ["*/.lockgate/challenge"]});
    browser.devtools("Network.setBlockedURLs", lost);
    browser.open(&site.url("/p/page"));
    let status = browser.find("[role=status]").unwrap();
    assert_eq!(status.role(), "status");
    assert!(!status.text().is_empty());
    for scheme in ["light", "dark"] {
        set_color_scheme(&browser, scheme);
        breaks_no_rule_of_axe(&browser);
    }
}

fn set_color_scheme(browser: &Browser, scheme: &str) {
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    browser.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
}

/// Runs axe-core (`$LOCKGATE_AXE`) on the page. Without it, only the other checks count.
#[track_caller]
pub fn breaks_no_rule_of_axe(browser: &Browser) {
    let Some(path) = std::env::var_os("LOCKGATE_AXE") else {
        return;
    };
    browser.run(&std::fs::read_to_string(path).unwrap());
    let found = browser.wait_for(
        "const { passes, violations } = await axe.run();
         const say = ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(' ')}`;
         return [passes.length, violations.map(say)];",
    );
    assert_eq!(found[1], json!([]), "{found}");
    assert!(found[0].as_u64() > Some(10), "axe did not run: {found}");
}

/// The contrast of each text of the page with its background.
const CONTRASTS: &str = r#"
    const canvas = document.createElement("canvas").getContext("2d");
    const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const over = (top, below, opacity) => top.slice(0, 3).map((c, i) => c * opacity + below[i] * (1 - opacity));
    const part = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const page = dark ? [18, 18, 18] : [255, 255, 255];
    return ["h1", "[role=status]", ".why", "button"].map((css) => {
        const style = getComputedStyle(document.querySelector(css)), own = rgba(style.backgroundColor);
        const below = own[3] ? own : page;
        const [a, b] = [light(over(rgba(style.color), below, +style.opacity)), light(below)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    });
"#;
