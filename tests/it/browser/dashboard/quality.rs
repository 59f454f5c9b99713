//! Accessibility, layout shift, and memory over a long time.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::super::Browser;
use super::super::accessibility::breaks_no_rule_of_axe;
use super::fixture::{Dashboard, assert_no_problem, resize, set_theme};
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

/// Measures the contrast of each visible text with its background, because axe-core leaves many undecided. Returns how
/// many there are, and those below 4.5 (WCAG 2.2, success criterion 1.4.3).
const PALE_TEXTS: &str = r#"
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const colors = new Map();
    const parse = (color) => {
        if (!colors.has(color)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
            colors.set(color, [r, g, b, a / 255]);
        }
        return colors.get(color);
    };
    const mix = (top, below, share) => [0, 1, 2].map((i) => top[i] * share + below[i] * (1 - share));
    const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const contrast = (a, b) => {
        const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    const page = parse(getComputedStyle(document.body).backgroundColor);
    /** The colours of an element's text and background, behind all groups that are not opaque. */
    const seen = (element) => {
        const chain = [];
        for (let at = element; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
        let below = page, opacity = 1, group = page;
        for (const style of chain) {
            if (style.opacity < 1) { group = below; opacity *= style.opacity; }
            const color = parse(style.backgroundColor);
            below = mix(color, below, color[3]);
        }
        const own = chain.at(-1), text = parse(element instanceof SVGElement ? own.fill : own.color);
        return [mix(text, below, text[3]), below].map((color) => mix(color, group, opacity));
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const pale = [];
    let count = 0;
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        const isOff = element.closest(":disabled, [aria-disabled=true], script, option");
        if (!texts.currentNode.data.trim() || isOff || !element.checkVisibility({ visibilityProperty: true })) continue;
        count += 1;
        const ratio = contrast(...seen(element));
        if (ratio < 4.5) pale.push(`${texts.currentNode.data.trim()}: ${ratio.toFixed(1)}`);
    }
    return [count, [...new Set(pale)]];
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
    is_accessible_everywhere(&browser);
    browser.find(".bans .link").unwrap().click();
    wait_until("the dialog opens", || {
        browser.find("#details[open]").is_some()
    });
    is_accessible_everywhere(&browser);
    assert_no_problem(&browser);
}

/// Checks what the page shows in both themes and three widths.
#[track_caller]
pub fn is_accessible_everywhere(browser: &Browser) {
    for theme in ["light", "dark"] {
        set_theme(browser, theme);
        for width in [360, 900, 1440] {
            resize(browser, width, 900);
            breaks_no_rule_of_axe(browser);
            let pale = browser.run(PALE_TEXTS);
            assert_eq!(pale[1], json!([]), "{theme}, {width}");
            assert!(pale[0].as_u64() > Some(10), "no texts were measured");
        }
    }
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
    assert_no_problem(&browser);
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
    assert_no_problem(&browser);
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
