//! The challenge as people meet it.

use std::time::Instant;

use serde_json::{Value, json};

use super::Browser;
use crate::harness::{Origin, Process, Seen, wait_until};

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
/// How often the time of a solution is measured.
const SAMPLES: usize = 20;

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[[listeners]]
address = "127.0.0.1:0"
[listeners.tls]
[[upstreams]]
name = "site"
servers = ["{origin}"]
[[routes]]
upstream = "site"
[challenge]
origins = [{origins}]
[[rules]]
name = "challenged"
mitigate = 'starts_with(http.request.uri.path, "/p")'
action = "challenge"
"#;

/// A gateway before a site whose pages below `/p` are challenged.
struct Site {
    gateway: Process,
    origin: Origin,
}

impl Site {
    fn start() -> Self {
        let origin = Origin::answering(pages);
        let gateway = Process::run(&config(&origin, ""));
        Self { gateway, origin }
    }

    fn port(&self) -> u16 {
        self.gateway.address(0).port()
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port())
    }

    /// Lets pages of another site read challenges.
    fn allow_origin(&self, origin: &str) {
        let origins = format!("\"{origin}\"");
        self.gateway.reload(&config(&self.origin, &origins));
    }

    /// What the origin got below `/p`.
    fn challenged(&self) -> Vec<Seen> {
        let mut seen = self.origin.seen();
        seen.retain(|seen| seen.line.contains(" /p"));
        seen
    }
}

fn config(origin: &Origin, origins: &str) -> String {
    let address = origin.address.to_string();
    CONFIG
        .replace("{origin}", &address)
        .replace("{origins}", origins)
}

/// The site's pages. `/form` posts two fields of one name, one called `submit` and one with line ends.
fn pages(request: &Seen) -> Vec<u8> {
    let form = r#"<form method="post" action="/p/login"><input name="user" value="Zoë &amp; &lt;b&gt;">
        <input name="user" value="second"><textarea name="text">"one"
two</textarea><input name="submit" value="x"><button id="send">Send</button></form>"#;
    let body = match request.line.split(' ').nth(1).unwrap_or_default() {
        "/form" => form.to_owned(),
        path => format!(
            "<p>the site: {path} {}</p>",
            String::from_utf8_lossy(&request.body)
        ),
    };
    let allowed = request.header("origin").map_or(String::new(), |origin| {
        format!(
            "access-control-allow-origin: {origin}\r\naccess-control-allow-credentials: true\r\n"
        )
    });
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n{allowed}\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn a_navigation_continues_after_the_challenge() {
    let (site, browser) = (Site::start(), Browser::start());
    let mut times = Vec::new();
    for sample in 0..SAMPLES {
        if sample > 0 {
            browser.delete_cookies();
        }
        // Rounds that succeed must not count as a loop here.
        browser.open(&site.url("/free"));
        browser.run("sessionStorage.clear()");
        let start = Instant::now();
        browser.open(&site.url("/p/page?a=1"));
        browser.wait_for_text("the site: /p/page?a=1");
        times.push(start.elapsed());
    }
    let seen = site.challenged();
    assert_eq!(seen.len(), SAMPLES);
    let marked = |seen: &Seen| seen.header("x-lockgate-challenge") == Some("challenged");
    assert!(seen.iter().all(marked));
    times.sort();
    let (median, p95) = (times[SAMPLES / 2], times[SAMPLES * 95 / 100]);
    println!(
        "from the navigation to the page behind the challenge: median {median:?}, p95 {p95:?}"
    );

    let cookies = browser.cookies();
    let cookie = &cookies[0];
    assert_eq!(cookie["name"], "__Host-lockgate-clearance");
    assert_eq!(
        (&cookie["httpOnly"], &cookie["secure"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&cookie["sameSite"], &cookie["path"]),
        (&json!("Lax"), &json!("/"))
    );
}

#[test]
fn a_form_survives_the_challenge() {
    let (site, browser) = (Site::start(), Browser::start());
    let send = || {
        browser.open(&site.url("/form"));
        browser.find("textarea").unwrap().enter("!");
        browser.find("#send").unwrap().click();
        browser.wait_for_text("the site: /p/login");
        assert_eq!(browser.url(), site.url("/p/login"));
    };
    send();
    send();
    let bodies: Vec<_> = site
        .challenged()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    // The second was sent directly, thanks to the clearance.
    assert_eq!(bodies.len(), 2);
    assert_eq!(
        String::from_utf8_lossy(&bodies[0]),
        String::from_utf8_lossy(&bodies[1])
    );
    assert!(
        bodies[0].starts_with(
            b"user=Zo%C3%AB+%26+%3Cb%3E&user=second&text=%22one%22%0D%0Atwo%21&submit=x"
        )
    );
}

#[test]
fn an_upload_is_sent_again_by_the_user() {
    let (site, browser) = (Site::start(), Browser::start());
    browser.open(&site.url("/form"));
    browser.run("document.forms[0].enctype = 'multipart/form-data'");
    browser.find("#send").unwrap().click();
    browser.wait_for_text("Done. Go back and send the form again.");
    assert!(site.challenged().is_empty());
    browser.open(&site.url("/p/page"));
    assert!(browser.text().contains("the site: /p/page"));
}

#[test]
fn a_script_solves_with_the_module() {
    let (site, browser) = (Site::start(), Browser::start());
    browser.open(&site.url("/app"));
    let solved = browser.wait_for(
        "const { solve } = await import('/.lockgate/challenge.js');
         const first = await fetch('/p/api', { method: 'POST', body: '{}' });
         const parts = [];
         await solve(first, { onProgress: (done, all) => parts.push(`${done}/${all}`) });
         const second = await fetch('/p/api', { method: 'POST', body: '{}' });
         return [first.status, first.headers.get('x-lockgate-challenge'), second.status, parts.join(' ')];",
    );
    let parts = "1/8 2/8 3/8 4/8 5/8 6/8 7/8 8/8";
    assert_eq!(solved, json!([429, "required", 200, parts]));
    assert_eq!(rejected(&browser, "await solve({})"), "no_challenge");
    let wrong = "await solve({ challenge: { token: 'A'.repeat(64), salt: 'a', iterations: 1, bits: 1, parts: 8,
        url: '/.lockgate/challenge' } })";
    assert_eq!(rejected(&browser, wrong), "wrong");
    browser.delete_cookies();
    let aborted = "const c = new AbortController(); const r = await fetch('/p/api');
        const s = solve(r, { signal: c.signal, onProgress: () => c.abort() }); await s";
    assert_eq!(rejected(&browser, aborted), "aborted");
}

/// The reason of the error that `code` throws.
fn rejected(browser: &Browser, code: &str) -> Value {
    browser.wait_for(&format!(
        "const {{ solve }} = await import('/.lockgate/challenge.js');
         try {{ {code}; return 'resolved' }} catch (error) {{ return error.reason || String(error) }}"
    ))
}

#[test]
fn a_page_of_a_listed_origin_solves_and_others_do_not() {
    let (site, browser) = (Site::start(), Browser::start());
    let foreign = format!("https://127.0.0.1:{}", site.port());
    let solve = format!(
        "const {{ solve }} = await import('{0}');
         const fetchIt = () => fetch('{1}', {{ credentials: 'include' }});
         const first = await fetchIt();
         await solve(first);
         return [first.status, (await fetchIt()).status];",
        site.url("/.lockgate/challenge.js"),
        site.url("/p/api"),
    );
    browser.open(&format!("{foreign}/app"));
    let refused = browser.wait_for(&solve);
    assert!(
        refused
            .as_str()
            .is_some_and(|text| text.contains("failed: TypeError")),
        "{refused}"
    );
    site.allow_origin(&foreign);
    assert_eq!(browser.wait_for(&solve), json!([429, 200]));
}

#[test]
fn the_page_says_what_is_missing() {
    let site = Site::start();
    let no_cookies = json!({"profile.default_content_setting_values.cookies": 2});
    let browser = Browser::with(&[], no_cookies);
    browser.open(&site.url("/p/page"));
    browser.wait_for_text("This check needs cookies. Allow cookies for this site, then try again.");
    drop(browser);

    let no_scripts = json!({"profile.managed_default_content_settings.javascript": 2});
    let browser = Browser::with(&[], no_scripts);
    browser.open(&site.url("/p/page"));
    let text = browser.find("main").unwrap().text();
    assert!(
        text.contains(
            "This check needs JavaScript. Turn on JavaScript for this site and reload the page."
        ),
        "{text}"
    );
    assert!(
        !text.contains("Checking your browser") && !text.contains("Try again"),
        "{text}"
    );
    assert!(site.challenged().is_empty());
}

#[test]
fn a_browser_without_a_compiler_solves_it() {
    let (site, browser) = (
        Site::start(),
        Browser::with(&["--js-flags=--jitless"], json!({})),
    );
    let start = Instant::now();
    browser.open(&site.url("/p/page"));
    browser.wait_for_text("the site: /p/page");
    println!("without a compiler: {:?}", start.elapsed());
}

#[test]
fn a_browser_that_forgets_the_clearance_does_not_loop() {
    let (site, browser) = (Site::start(), Browser::start());
    browser.open(&site.url("/free"));
    // As after three rounds.
    browser.run("const now = Date.now(); sessionStorage.setItem('lockgate-rounds', JSON.stringify([now, now, now]))");
    browser.open(&site.url("/p/page"));
    browser.wait_for_text("Your browser may not store cookies.");
    assert!(site.challenged().is_empty());
    let button = browser.focused();
    assert_eq!(
        (button.role(), button.label()),
        ("button".into(), "Try again".into())
    );
    browser.press(ENTER);
    browser.wait_for_text("the site: /p/page");
}

#[test]
fn the_page_is_accessible() {
    let (site, browser) = (Site::start(), Browser::start());
    browser.open(&site.url("/free"));
    let stopped = || {
        browser.run("const now = Date.now(); sessionStorage.setItem('lockgate-rounds', JSON.stringify([now, now, now]))");
        browser.open(&site.url("/p/page"));
        wait_until("the page stops", || {
            browser.find("button:not([hidden])").is_some()
        });
    };
    stopped();
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
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
        let contrasts = browser.run(CONTRASTS);
        browser.save_screenshot(&format!("challenge-{scheme}"));
        let contrasts = contrasts.as_array().unwrap();
        assert_eq!(contrasts.len(), 4);
        // WCAG 2.2, success criterion 1.4.3.
        assert!(
            contrasts.iter().all(|ratio| ratio.as_f64().unwrap() >= 4.5),
            "{scheme}: {contrasts:?}"
        );
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
