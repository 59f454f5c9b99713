//! The challenge as people meet it.

use std::time::Instant;

use serde_json::{Value, json};

use super::Browser;
use crate::harness::{Origin, Process, Seen};

const ENTER: &str = "\u{e007}";
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
pub struct Site {
    gateway: Process,
    origin: Origin,
}

impl Site {
    /// A site and its gateway.
    pub fn start() -> Self {
        let origin = Origin::answering(pages);
        let gateway = Process::run(&config(&origin, ""));
        Self { gateway, origin }
    }

    fn port(&self) -> u16 {
        self.gateway.address(0).port()
    }

    /// The address of a page.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port())
    }

    /// Opens a challenge page that does nothing, as after three rounds.
    pub fn open_stopped(&self, browser: &Browser) {
        browser.open(&self.url("/free"));
        browser.run("const now = Date.now(); sessionStorage.setItem('lockgate-rounds', JSON.stringify([now, now, now]))");
        browser.open(&self.url("/p/page"));
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
    for other in [
        "{}",
        "null",
        "undefined",
        "'text'",
        "{ challenge: { url: '/' } }",
        "await fetch('/app')",
        "await fetch('/app').then(async (page) => { await page.text(); return page })",
    ] {
        let code = format!("await solve({other})");
        assert_eq!(rejected(&browser, &code), "no_challenge", "{other}");
    }
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
    site.open_stopped(&browser);
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
