//! Accessibility, layout shift, and memory over a long time.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::super::Browser;
use super::super::accessibility::breaks_no_rule_of_axe;
use super::fixture::{Dashboard, resize, set_theme};
use crate::harness::wait_until;

/// How many ticks the page receives in the test of its memory: more than an hour of them.
const TICKS: u32 = 4_000;

/// Replaces the stream with the first tick of the real one, repeated for a later time each.
const FAST_STREAM: &str = r#"
    const original = window.fetch;
    window.ticksSent = 0;
    window.fetch = async (path, options) => {
        if (!String(path).startsWith("api/events")) return original(path, options);
        const response = await original(path, options), reader = response.body.getReader();
        let text = "";
        while (!/event: ?tick\n.*\n\n/.test(text)) text += new TextDecoder().decode((await reader.read()).value);
        reader.cancel();
        const tick = JSON.parse(/event: ?tick\ndata: ?(.*)\n\n/.exec(text)[1]), start = Date.parse(tick.ts);
        const decision = { id: "", client_ip: "203.0.113.7", method: "GET", path: "/", rule: "stuffing", action: "shadow" };
        const send = (controller) => {
            for (let count = 0; count < 20; count += 1) {
                const ts = new Date(start + 1000 * ++window.ticksSent).toISOString();
                const made = { ...decision, ts, path: `/${window.ticksSent}` };
                const events = `event: decision\ndata: ${JSON.stringify(made)}\n\nevent: tick\ndata: ${JSON.stringify({ ...tick, ts })}\n\n`;
                controller.enqueue(new TextEncoder().encode(events));
            }
        };
        return new Response(new ReadableStream({ start(controller) { setInterval(send, 100, controller); } }));
    };
"#;

#[test]
fn the_page_breaks_no_rule_of_accessibility() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    let _traffic = dashboard.attack();
    dashboard.open(&browser);
    wait_until("a ban is listed", || {
        browser.find(".bans tbody tr").is_some()
    });
    browser
        .find("[aria-controls=rule-panel-stuffing]")
        .unwrap()
        .click();
    wait_until("the keys are listed", || {
        browser.find(".keys tbody tr").is_some()
    });
    for theme in ["light", "dark"] {
        set_theme(&browser, theme);
        for width in [360, 900, 1440] {
            resize(&browser, width, 900);
            breaks_no_rule_of_axe(&browser);
        }
    }
    browser.find(".bans .link").unwrap().click();
    wait_until("the dialog opens", || {
        browser.find("#details[open]").is_some()
    });
    breaks_no_rule_of_axe(&browser);
}

#[test]
fn nothing_jumps() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    let _traffic = dashboard.attack();
    dashboard.open(&browser);
    for section in ["strip", "rules", "bans", "explain"] {
        browser.run(&format!(
            "document.getElementById('{section}').scrollIntoView()"
        ));
        sleep(Duration::from_secs(6));
    }
    let shift = browser.run("return window.shift").as_f64().unwrap();
    assert!(shift <= 0.02, "layout shift {shift}");
    dashboard.assert_no_problem(&browser);
}

#[test]
fn memory_is_flat_over_a_long_time() {
    let (dashboard, browser) = (Dashboard::start(), Browser::start());
    let script = json!({"source": FAST_STREAM});
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", script);
    dashboard.open(&browser);
    let sent = || {
        let ticks = browser.run("return window.ticksSent");
        ticks.as_u64().unwrap_or_default()
    };
    // All lists are full after some hundred ticks.
    wait_until("the lists are full", || sent() >= 500);
    let (before, nodes) = (used_bytes(&browser), count_nodes(&browser));
    for _ in 0..3 {
        let next = sent() + u64::from(TICKS / 3);
        wait_until("ticks arrive", || sent() >= next);
    }
    let after = used_bytes(&browser);
    assert!(after < before * 1.2 + 500_000.0, "{before} → {after} bytes");
    assert!(count_nodes(&browser) < nodes + nodes / 10);
    dashboard.assert_no_problem(&browser);
}

fn count_nodes(browser: &Browser) -> u64 {
    let count = browser.run("return document.querySelectorAll('*').length");
    count.as_u64().unwrap()
}

/// Returns the bytes that live objects use: the least of some measurements, because others include recent garbage.
fn used_bytes(browser: &Browser) -> f64 {
    let measure = |_| {
        browser.devtools("HeapProfiler.collectGarbage", json!({}));
        let usage = browser.devtools("Runtime.getHeapUsage", json!({}));
        usage["usedSize"].as_f64().unwrap()
    };
    (0..5).map(measure).fold(f64::INFINITY, f64::min)
}
